import { useEffect, useState } from "preact/hooks";
import { estimatedShare, expectedSeconds } from "../model/building";
import { counted } from "../model/format";
import { Loading, Panel } from "../widgets/basics";

/** A report that is stored arrives sooner. */
const SHOWN_AFTER_S = 1;

/** Placeholder until a report arrives. For a large one, it says how long building it usually takes. */
export function Building({ tasks }: { tasks: number }) {
  const [elapsed, setElapsed] = useState(0);
  useEffect(() => {
    const began = Date.now();
    const timer = setInterval(() => setElapsed((Date.now() - began) / 1000), 250);
    return () => clearInterval(timer);
  }, []);
  const expected = expectedSeconds(tasks);
  if (!expected || elapsed < SHOWN_AFTER_S)
    return (
      <Panel title="Loading">
        <Loading lines={8} />
      </Panel>
    );
  const share = estimatedShare(elapsed, expected);
  return (
    <Panel title="Building the report" testid="building">
      <div class="building">
        <p role="status">
          A report of {counted(tasks, "task")} takes about {counted(Math.round(expected), "second")} to build when it is
          opened for the first time. It is then stored.
        </p>
        <div
          class="progress-bar"
          role="progressbar"
          aria-label="Estimated progress"
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={Math.round(100 * share)}
        >
          <i style={{ width: `${100 * share}%`, background: "var(--accent)" }} />
        </div>
        <p class="muted">
          {elapsed > 3 * expected
            ? `${counted(Math.floor(elapsed), "second")} so far. The server is busy, or it builds other reports first.`
            : `${counted(Math.floor(elapsed), "second")} so far. The bar is an estimate.`}
        </p>
      </div>
    </Panel>
  );
}
