import { useEffect, useState } from "preact/hooks";
import { counted } from "../../model/text/format";
import { Loading, Panel } from "../../widgets/basics";

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

// How long the server needs for a report, from what it took to build others.

/** Reports of fewer tasks are built in less than two seconds. */
const FEW = 100_000;
/** Seconds to start building, and per task: five million tasks take 10 s on two cores, and 20 s if they are busy. */
const START_S = 2;
const PER_TASK_S = 2.5e-6;
/** The bar stops here until the report has arrived. */
const LARGEST_SHARE = 0.95;

/** The expected seconds to build a report; 0 if it needs no progress bar. */
export function expectedSeconds(tasks: number): number {
  return tasks > FEW ? START_S + tasks * PER_TASK_S : 0;
}

/** The estimated share that is done after some seconds. It slows down as it gets closer to its largest value, and never goes back. */
export function estimatedShare(elapsed: number, expected: number): number {
  return Math.min(LARGEST_SHARE, 1 - Math.exp((-2 * elapsed) / expected));
}
