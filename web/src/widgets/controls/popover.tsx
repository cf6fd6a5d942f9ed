import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { count } from "../../model/text/format";
import { Icon } from "../icon";

interface Props {
  /** Content of the button. */
  button: ComponentChildren;
  label?: string;
  class?: string;
  testid?: string;
  children: ComponentChildren;
}

/** A button that opens a box below it. Escape or a click elsewhere closes it. */
export function Popover({ button, label, testid, children, ...rest }: Props) {
  const [open, set] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const onDown = (event: PointerEvent) => {
      if (!box.current?.contains(event.target as Node)) set(false);
    };
    addEventListener("pointerdown", onDown);
    return () => removeEventListener("pointerdown", onDown);
  }, [open]);
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !open) return;
    // Close only the box; Escape would also clear the selection of the page.
    event.stopPropagation();
    set(false);
    box.current?.querySelector("button")?.focus();
  };
  return (
    <div class={`colmenu ${rest.class ?? ""}`} ref={box} onKeyDown={onKey}>
      <button
        type="button"
        class="btn sm"
        aria-label={label}
        aria-expanded={open}
        data-testid={testid}
        onClick={() => set(!open)}
      >
        {button}
      </button>
      {open && <div>{children}</div>}
    </div>
  );
}

interface TableMenuProps {
  columns: readonly { id: string; head: string }[];
  hidden: ReadonlySet<string>;
  onChange: (next: ReadonlySet<string>) => void;
  /** Buttons above the columns. */
  children: ComponentChildren;
}

/** The menu of a table: actions, and the columns to show. */
export function TableMenu({ columns, hidden, onChange, children }: TableMenuProps) {
  const toggle = (id: string) => {
    const next = new Set(hidden);
    if (!next.delete(id)) next.add(id);
    onChange(next);
  };
  return (
    <Popover
      button={
        <>
          <Icon name="cols" />
          Options
        </>
      }
    >
      {children}
      <fieldset aria-label="Columns">
        {columns.map((c) => (
          <label key={c.id}>
            <input type="checkbox" checked={!hidden.has(c.id)} onChange={() => toggle(c.id)} />
            {c.head || c.id}
          </label>
        ))}
      </fieldset>
    </Popover>
  );
}

interface MultiPickProps {
  label: string;
  /** The plural of what is chosen, as in "all prefixes" and "3 prefixes". */
  noun: string;
  options: readonly string[];
  /** Names an option; without it, an option is its name. */
  nameOf?: (option: string) => string;
  chosen: readonly string[];
  onChange: (chosen: string[]) => void;
  testid?: string;
}

/** A choice of several options; none means all. */
export function MultiPick({ label, noun, options, nameOf = String, chosen, onChange, testid }: MultiPickProps) {
  const text =
    chosen.length === 0 ? `all ${noun}` : chosen.length === 1 ? nameOf(chosen[0]) : `${count(chosen.length)} ${noun}`;
  const toggle = (option: string) =>
    onChange(chosen.includes(option) ? chosen.filter((c) => c !== option) : [...chosen, option]);
  return (
    <div class="lab">
      {label}
      <Popover
        class="multi"
        testid={testid}
        label={`${label}: ${text}`}
        button={
          <>
            <span class="cut">{text}</span>
            <Icon name="chev" />
          </>
        }
      >
        <fieldset aria-label={label}>
          {options.map((option) => (
            <label key={option} title={option}>
              <input type="checkbox" checked={chosen.includes(option)} onChange={() => toggle(option)} />
              <span class="cut">{nameOf(option)}</span>
            </label>
          ))}
        </fieldset>
        {chosen.length > 0 && (
          <button type="button" class="link" onClick={() => onChange([])}>
            Show all {noun}
          </button>
        )}
      </Popover>
    </div>
  );
}
