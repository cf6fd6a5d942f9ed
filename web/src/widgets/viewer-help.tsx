import { useEffect, useRef } from "preact/hooks";
import { useModel } from "../model/hooks";
import { viewEntries } from "./views";

const KEYS: readonly (readonly [string[], string])[] = [
  [["W", "S"], "Zoom in and out"],
  [["A", "D"], "Move earlier or later"],
  [["↑", "↓", "←", "→"], "In the time ruler: zoom and move. In other charts: next task, value or frame"],
  [["Enter"], "Open the task or zoom into the frame"],
  [["Ctrl", "wheel"], "Zoom the task stream at the pointer"],
  [["Esc"], "Close the dialog, then the item, the activity filter, the time selection"],
  [["/"], "Search (also Ctrl K)"],
  [["[", "]"], "Previous and next item"],
  [["T"], "Switch theme"],
  [["?"], "Keyboard shortcuts"],
];

export function ViewerHelp({ open, onClose }: { open: boolean; onClose: () => void }) {
  const { report } = useModel();
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
          {KEYS.map(([keys, text]) => (
            <Row key={text} keys={keys} text={text} />
          ))}
          {viewEntries(report).map((e) => (
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
