import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./icon";

/** Which columns of a table are shown; it closes with Escape and with a click anywhere else. */
export function ColumnMenu({ columns, hidden, onChange }: { columns: readonly { id: string; head: string }[]; hidden: ReadonlySet<string>; onChange: (next: ReadonlySet<string>) => void }) {
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
    // Only this is closed: what is selected on the page stays.
    event.stopPropagation();
    set(false);
    box.current?.querySelector("button")?.focus();
  };
  const flip = (id: string) => {
    const next = new Set(hidden);
    if (!next.delete(id)) next.add(id);
    onChange(next);
  };
  return (
    <div class="colmenu" ref={box} onKeyDown={onKey}>
      <button type="button" class="btn sm" aria-expanded={open} onClick={() => set(!open)}>
        <Icon name="cols" />
        Columns
      </button>
      {open && (
        <div>
          {columns.map((c) => (
            <label key={c.id}>
              <input type="checkbox" checked={!hidden.has(c.id)} onChange={() => flip(c.id)} />
              {c.head || c.id}
            </label>
          ))}
        </div>
      )}
    </div>
  );
}
