import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

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
