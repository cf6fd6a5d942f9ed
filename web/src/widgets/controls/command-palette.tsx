import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { setTheme } from "../../charts/theme";
import { Icon, type IconName } from "../icon";

export interface Command {
  group: string;
  text: string;
  hint: string;
  icon: IconName;
  run: () => void;
}

/** Commands that every palette offers. */
export function commonCommands(onHelp: () => void): Command[] {
  return [
    { group: "Actions", text: "Light theme", hint: "T", icon: "sun", run: () => setTheme("light") },
    { group: "Actions", text: "Dark theme", hint: "T", icon: "moon", run: () => setTheme("dark") },
    { group: "Actions", text: "System theme", hint: "", icon: "sun", run: () => setTheme("system") },
    { group: "Actions", text: "Keyboard shortcuts", hint: "?", icon: "help", run: onHelp },
  ];
}

interface CommandPaletteProps {
  open: boolean;
  onClose: () => void;
  placeholder: string;
  query: string;
  onQuery: (text: string) => void;
  items: readonly Command[];
}

/** A search dialog. Arrow keys select a result, Enter runs it. */
export function CommandPalette({ open, onClose, placeholder, query, onQuery, items }: CommandPaletteProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const [at, setAt] = useState(0);
  // Before the next key: people type at once, and keys that arrive before the dialog has the focus are lost.
  useLayoutEffect(() => {
    if (open && !ref.current?.open) {
      onQuery("");
      setAt(0);
      ref.current?.showModal();
    }
    if (!open && ref.current?.open) ref.current.close();
  }, [open]);
  const chosen = Math.min(at, items.length - 1);
  const run = (item: Command | undefined) => {
    if (!item) return;
    ref.current?.close();
    onClose();
    item.run();
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setAt(Math.min(chosen + 1, items.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(chosen - 1, 0));
    else if (event.key === "Enter") run(items[chosen]);
    else return;
    event.preventDefault();
  };
  // The close event comes late: the palette may be open again by then. Escape cancels at once.
  const onClosed = () => !ref.current?.open && onClose();
  return (
    <dialog class="palette" ref={ref} onCancel={onClose} onClose={onClosed} aria-label="Search" data-testid="palette">
      <div class="q">
        <Icon name="search" />
        <input
          autofocus
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={`palette-${chosen}`}
          aria-label="Search"
          placeholder={placeholder}
          value={query}
          data-testid="palette-search"
          onInput={(e) => {
            onQuery(e.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={onKey}
        />
      </div>
      <div class="list" id="palette-list" role="listbox" aria-label="Results">
        {open &&
          items.map((item, i) => (
            <Result
              key={`${item.group}${item.text}${i}`}
              item={item}
              first={i === 0 || items[i - 1].group !== item.group}
              index={i}
              selected={i === chosen}
              onRun={() => run(item)}
            />
          ))}
        {items.length === 0 && <p class="callout">No results for “{query}”</p>}
      </div>
    </dialog>
  );
}

function Result({
  item,
  first,
  index,
  selected,
  onRun,
}: {
  item: Command;
  first: boolean;
  index: number;
  selected: boolean;
  onRun: () => void;
}) {
  const ref = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (selected) ref.current?.scrollIntoView({ block: "nearest" });
  }, [selected]);
  return (
    <>
      {first && <h3 role="presentation">{item.group}</h3>}
      <li
        ref={ref}
        id={`palette-${index}`}
        role="option"
        aria-selected={selected}
        class={selected ? "on" : ""}
        onClick={onRun}
      >
        <Icon name={item.icon} />
        <span>{item.text}</span>
        <span class="faint">{item.hint}</span>
      </li>
    </>
  );
}
