import { useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { HttpSource, limitedReload, loadReport } from "../../api/source";
import { StreamClient, warmUp } from "../../charts/stream/client";
import { Model } from "../../model/model";
import { counted } from "../../model/text/format";
import { Failed, Loading, Panel } from "../../widgets/basics";
import { Ago } from "../parts/time-text";

type ViewerModule = typeof import("../../viewer/viewer");

/** Show a report of the server in the viewer, whose code is loaded with the first report: other pages do not need it. If the cluster is still running, show the age of the report and a reload button. The number of tasks tells how long building it takes. */
export function ReportViewer({
  address,
  live = false,
  lost = false,
  tasks = 0,
}: {
  address: string;
  live?: boolean;
  /** Whether the server no longer hears from the cluster, which its report cannot know. */
  lost?: boolean;
  tasks?: number;
}) {
  const [model, set] = useState<Model | null>(null);
  const [code, setCode] = useState<ViewerModule | null>(null);
  const [version, restart] = useReducer((n: number) => n + 1, 0);
  const [made, setMade] = useState("");
  const reload = useMemo(() => limitedReload(() => restart(0)), [address]);
  // A report that was loaded while the cluster ran is incomplete, also after the cluster has ended.
  const incomplete = useRef(live);
  if (live) incomplete.current = true;
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let shown: Model | null = null;
    let closed = false;
    incomplete.current = live;
    set(null);
    setProblem("");
    warmUp();
    const source = new HttpSource(address, () => !closed && reload());
    Promise.all([loadReport(source), import("../../viewer/viewer")]).then(
      ([report, viewer]) => {
        if (closed) return;
        setCode(viewer);
        shown = new Model(report, source, new StreamClient(source, report));
        set(shown);
        setMade(source.created || new Date().toISOString());
      },
      (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)),
    );
    return () => {
      closed = true;
      shown?.nav.close();
    };
  }, [address, version]);
  if (problem)
    return (
      <main class="wide">
        <Panel>
          <Failed message={problem} />
        </Panel>
      </main>
    );
  if (!model || !code)
    return (
      <main class="wide">
        <Building tasks={tasks} />
      </main>
    );
  const { answer } = model.report;
  if (lost && answer.state === "running") answer.state = "lost";
  return (
    <>
      {incomplete.current && (
        <div class="asof" data-testid="as-of">
          <span>
            {live ? "Still running." : "Ended since."} This report was created <Ago at={made} now="just now" />.
          </span>{" "}
          <button type="button" class="link" onClick={() => restart(0)}>
            Refresh report
          </button>
        </div>
      )}
      <code.Viewer model={model} key={`${address} ${version}`} />
    </>
  );
}

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
