import { useEffect, useRef } from "preact/hooks";
import { SECTIONS } from "./frame";

/** The keys of the app; those of a report are in its own help. */
export function Keys({ open, onClose }: { open: boolean; onClose: () => void }) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open && !ref.current?.open) ref.current?.showModal();
    if (!open && ref.current?.open) ref.current.close();
  }, [open]);
  return (
    <dialog class="palette help" ref={ref} onClose={onClose} aria-label="Keys and help">
      <h2>Keys</h2>
      <dl class="kv">
        {SECTIONS.map(([id, name, letter]) => (
          <>
            <dt key={id}><kbd>G</kbd> <kbd>{letter.toUpperCase()}</kbd></dt>
            <dd>{name}</dd>
          </>
        ))}
        <dt><kbd>/</kbd> or <kbd>Ctrl</kbd> <kbd>K</kbd></dt>
        <dd>Search or jump to</dd>
        <dt><kbd>T</kbd></dt>
        <dd>Light or dark</dd>
        <dt><kbd>?</kbd></dt>
        <dd>This help</dd>
      </dl>
      <p class="pfoot"><span>On a report more keys work: press <kbd>?</kbd> there.</span><button type="button" class="btn sm push" onClick={() => ref.current?.close()}>Close</button></p>
    </dialog>
  );
}
