import { useEffect, useRef } from "preact/hooks";
import { ENTRIES } from "./views";

const KEYS: readonly (readonly [string[], string])[] = [
  [["W", "S"], "Zoom in and out"],
  [["A", "D"], "Earlier and later"],
  [["↑", "↓", "←", "→"], "The same with the time ruler focused; in other charts from task to task, value to value, frame to frame"],
  [["Enter"], "Open the task, zoom to the frame"],
  [["Ctrl", "wheel"], "Zoom at the pointer, in the task stream"],
  [["Esc"], "Close, then clear the item, the activity, the time"],
  [["/"], "Search or jump to; also Ctrl K"],
  [["[", "]"], "Previous and next item"],
  [["T"], "Light or dark"],
  [["?"], "This help"],
];

export function Help({ open, onClose }: { open: boolean; onClose: () => void }) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open && !ref.current?.open) ref.current?.showModal();
    if (!open && ref.current?.open) ref.current.close();
  }, [open]);
  return (
    <dialog ref={ref} onClose={onClose} aria-labelledby="help-title" data-testid="help">
      <div class="help">
        <h2 id="help-title">Keys</h2>
        <dl>
          {KEYS.map(([keys, text]) => (
            <Row key={text} keys={keys} text={text} />
          ))}
          {ENTRIES.map((e) => (
            <Row key={e.view} keys={["G", e.key.toUpperCase()]} text={e.name} />
          ))}
        </dl>
        <p style="margin-top:16px;text-align:right">
          <button type="button" class="btn" onClick={onClose}>
            Close
          </button>
        </p>
      </div>
    </dialog>
  );
}

function Row({ keys, text }: { keys: readonly string[]; text: string }) {
  return (
    <>
      <dt>
        {keys.map((k) => (
          <>
            <kbd>{k}</kbd>{" "}
          </>
        ))}
      </dt>
      <dd>{text}</dd>
    </>
  );
}
