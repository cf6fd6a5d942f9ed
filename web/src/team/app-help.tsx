import { useEffect, useRef } from "preact/hooks";
import { SECTIONS } from "./sections";

/** Keyboard shortcuts of the app. Reports have their own help. */
export function AppHelp({ open, onClose }: { open: boolean; onClose: () => void }) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open && !ref.current?.open) ref.current?.showModal();
    if (!open && ref.current?.open) ref.current.close();
  }, [open]);
  return (
    <dialog class="palette help" ref={ref} onClose={onClose} aria-label="Keyboard shortcuts">
      <h2>Keyboard shortcuts</h2>
      <dl class="kv">
        {SECTIONS.map(([id, name, letter]) => (
          <>
            <dt key={id}>
              <kbd>G</kbd> <kbd>{letter.toUpperCase()}</kbd>
            </dt>
            <dd>{name}</dd>
          </>
        ))}
        <dt>
          <kbd>/</kbd> or <kbd>Ctrl</kbd> <kbd>K</kbd>
        </dt>
        <dd>Search</dd>
        <dt>
          <kbd>T</kbd>
        </dt>
        <dd>Switch theme</dd>
        <dt>
          <kbd>?</kbd>
        </dt>
        <dd>Keyboard shortcuts</dd>
      </dl>
      <p class="pfoot">
        <span>
          Reports have more shortcuts: press <kbd>?</kbd> there.
        </span>
        <button type="button" class="btn sm push" onClick={() => ref.current?.close()}>
          Close
        </button>
      </p>
    </dialog>
  );
}
