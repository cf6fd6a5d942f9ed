import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { switchTheme } from "../../charts/theme";
import { Icon, type IconName } from "../icon";

export type Dialog = "" | "help" | "palette";

/** The first link of a page. It moves the focus past the top bar. */
export function SkipLink({ to }: { to: RefObject<HTMLElement | null> }) {
  return (
    <a
      class="skip"
      href="#content"
      onClick={(e) => {
        e.preventDefault();
        to.current?.focus();
      }}
    >
      Skip to content
    </a>
  );
}

interface IconButtonProps {
  icon: IconName;
  label: string;
  /** The key that does the same. */
  shortcut?: string;
  onClick: () => void;
  class?: string;
  testid?: string;
}

export function IconButton({ icon, label, shortcut, onClick, class: kind = "", testid }: IconButtonProps) {
  return (
    <button
      type="button"
      class={`btn ghost iconbtn ${kind}`}
      aria-label={label}
      title={shortcut ? `${label} (${shortcut})` : label}
      onClick={onClick}
      data-testid={testid}
    >
      <Icon name={icon} />
    </button>
  );
}

/** The tools of the top bar: search, the tools of the page, theme and help. */
export function TopTools({ open, children }: { open: (dialog: Dialog) => void; children?: ComponentChildren }) {
  return (
    <>
      <button
        type="button"
        class="searchbtn"
        aria-label="Search"
        onClick={() => open("palette")}
        data-testid="open-palette"
      >
        <Icon name="search" />
        <span>Search</span>
        <kbd>/</kbd>
      </button>
      {children}
      <IconButton icon="sun" label="Switch theme" shortcut="T" onClick={switchTheme} testid="theme" />
      <IconButton icon="help" label="Keyboard shortcuts" shortcut="?" onClick={() => open("help")} class="hide-n" />
    </>
  );
}

export type Shortcut = readonly [keys: readonly string[], text: string];

/** Shortcuts that work on every page. */
export const COMMON_SHORTCUTS: readonly Shortcut[] = [
  [["/"], "Search (also Ctrl K)"],
  [["T"], "Switch theme"],
  [["?"], "Keyboard shortcuts"],
];

interface HelpProps {
  shortcuts: readonly Shortcut[];
  open: boolean;
  onClose: () => void;
  /** A note below the shortcuts. */
  children?: ComponentChildren;
}

/** The keyboard shortcuts of a page. */
export function HelpDialog({ shortcuts, open, onClose, children }: HelpProps) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open && !ref.current?.open) ref.current?.showModal();
    if (!open && ref.current?.open) ref.current.close();
  }, [open]);
  return (
    <dialog ref={ref} onClose={onClose} aria-labelledby="help-title" data-testid="help">
      <div class="help">
        <h2 id="help-title">Keyboard shortcuts</h2>
        <dl>
          {shortcuts.map(([keys, text]) => (
            <>
              <dt>
                {keys.map((key) => (
                  <>
                    <kbd>{key}</kbd>{" "}
                  </>
                ))}
              </dt>
              <dd>{text}</dd>
            </>
          ))}
        </dl>
        {children && <p class="faint">{children}</p>}
        <p style="margin-top:16px;text-align:right">
          <button type="button" class="btn" onClick={onClose}>
            Close
          </button>
        </p>
      </div>
    </dialog>
  );
}
