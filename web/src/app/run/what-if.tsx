import { useEffect, useMemo, useState } from "preact/hooks";
import { MAX_PREDICTED_THREADS, MAX_PREDICTED_WORKERS } from "../../api/limits.gen";
import type { Query } from "../../api/server";
import type { OneComputation, PredictedCluster, WhatIf, WhatIfQuery } from "../../api/server.gen";
import { useParam } from "../../model/page/hooks";
import { count, counted, dollars, duration, nbytes, percent } from "../../model/text/format";
import {
  curveKey,
  curveLabel,
  hasRange,
  perfectScaling,
  wallTime,
  wholeNumber,
  workerCounts,
} from "../../model/what-if";
import { Empty, Panel } from "../../widgets/basics";
import { Pick } from "../../widgets/controls/inputs";
import { CurvePlot } from "../../widgets/plots/curve-plot";
import { ShortTable } from "../../widgets/table/card-table";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";
import { Loaded } from "../shell/loaded";
import { useResource } from "../shell/resources";
import { callText } from "./cluster-text";

/** Until when a reader types a number, in ms: each request replays the graph. */
const SETTLE_MS = 400;

/** Return a value once it has not changed for a while. */
function useSettled<T>(value: T): T {
  const [settled, set] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => set(value), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** Sizes of chunks, in times of the recorded size. */
const CHUNKS = [
  ["8", "8 times as large"],
  ["4", "4 times as large"],
  ["2", "twice as large"],
  ["0.5", "half as large"],
  ["0.25", "a quarter as large"],
  ["0.125", "an eighth as large"],
] as const;

/** The page that predicts a computation with other workers, threads or chunks, or a faster prefix. */
export function WhatIfPage({ cluster, id }: { cluster: string; id: string }) {
  const { api, account } = useTeam();
  const [workers, setWorkers] = useParam("workers");
  const [threads, setThreads] = useParam("threads");
  const [prefix, setPrefix] = useParam("prefix");
  const [times, setTimes] = useParam("times", "2");
  const [transfers, setTransfers] = useParam("transfers");
  const [spill, setSpill] = useParam("spill");
  const [stragglers, setStragglers] = useParam("stragglers");
  const [chunks, setChunks] = useParam("chunks");
  const max = wholeNumber(workers, 0, MAX_PREDICTED_WORKERS);
  const asked = useSettled(
    JSON.stringify({
      workers: max ? workerCounts(max).join(",") : undefined,
      threads: wholeNumber(threads, 0, MAX_PREDICTED_THREADS) || undefined,
      prefix: prefix || undefined,
      times: prefix ? times : undefined,
      no_transfers: transfers ? true : undefined,
      no_spill: spill ? true : undefined,
      no_stragglers: stragglers ? true : undefined,
      chunks: chunks || undefined,
    } satisfies { [name in keyof WhatIfQuery]: Query[string] }),
  );
  const path = `clusters/${encodeURIComponent(cluster)}/computations/${encodeURIComponent(id)}/what-if`;
  const found = useResource<WhatIf>(() => api.get(path, JSON.parse(asked) as Query), [path, asked, account]);
  const run = found.value;
  const of = useResource<OneComputation>(() => api.get(path.replace(/\/what-if$/, "")), [path, account]).value;
  return (
    <>
      <div class="crumbs wide" data-testid="page-what-if">
        <Link to={[account, "runs"]}>Runs</Link> /{" "}
        <Link to={[account, "clusters", cluster]}>{of?.cluster_name || "unnamed"}</Link> /{" "}
        <Link to={[account, "clusters", cluster, "computations", id]}>
          <span class="cut">{of ? callText(of) : "computation"}</span>
        </Link>{" "}
        / <span>What if</span>
      </div>
      <main class="wide headroom" aria-busy={found.loading}>
        <div class="title">
          <h1>What if</h1>
          {run && !run.reason && (
            <span class="faint">
              recorded with {counted(run.workers, "worker")}, {counted(run.threads, "thread")} each
            </span>
          )}
        </div>
        {run?.advice && (
          <p class="answer" data-testid="what-if-answer">
            <b>{run.advice}</b>
          </p>
        )}
        <Panel class="mt">
          <div class="filters" style="border-bottom:0" data-testid="what-if-inputs">
            <NumberInput
              label="Workers, up to"
              value={workers || String(run?.predictions.at(-1)?.workers ?? "")}
              max={MAX_PREDICTED_WORKERS}
              onInput={setWorkers}
              testid="what-if-workers"
            />
            <NumberInput
              label="Threads per worker"
              value={threads || String(run?.threads || "")}
              max={MAX_PREDICTED_THREADS}
              onInput={setThreads}
              testid="what-if-threads"
            />
            <Pick
              label="Faster prefix"
              all="none"
              value={prefix}
              options={(run?.prefixes ?? []).map((name) => [name, name] as const)}
              onChange={setPrefix}
              testid="what-if-prefix"
            />
            {prefix && (
              <label class="lab">
                {`${times} × faster`}
                <input
                  type="range"
                  min="1"
                  max="10"
                  step="0.5"
                  value={times}
                  data-testid="what-if-times"
                  onInput={(e) => setTimes(e.currentTarget.value)}
                />
              </label>
            )}
            <Pick
              label="Chunks"
              all="as recorded"
              value={chunks}
              options={
                chunks && !CHUNKS.some(([value]) => value === chunks)
                  ? [...CHUNKS, [chunks, `${chunks} times as large`] as const]
                  : CHUNKS
              }
              onChange={setChunks}
              testid="what-if-chunks"
            />
            <Without label="No transfers" value={transfers} onChange={setTransfers} />
            <Without label="No spilling" value={spill} onChange={setSpill} />
            <Without
              label="No stragglers"
              title="No task takes longer than 95 % of its prefix do."
              value={stragglers}
              onChange={setStragglers}
            />
          </div>
        </Panel>
        <Loaded from={found} lines={6}>
          {(answer) => <Prediction answer={answer} />}
        </Loaded>
      </main>
    </>
  );
}

function NumberInput(props: {
  label: string;
  value: string;
  max: number;
  onInput: (text: string) => void;
  testid: string;
}) {
  return (
    <label class="lab">
      {props.label}
      <input
        class="txt"
        type="number"
        min="1"
        max={props.max}
        style="width:6em"
        value={props.value}
        data-testid={props.testid}
        onInput={(e) => props.onInput(e.currentTarget.value)}
      />
    </label>
  );
}

/** A checkbox for what does not happen; "none" in the URL. */
function Without(props: { label: string; title?: string; value: string; onChange: (value: string) => void }) {
  return (
    <label class="lab" title={props.title}>
      <input
        type="checkbox"
        checked={props.value !== ""}
        onChange={(e) => props.onChange(e.currentTarget.checked ? "none" : "")}
      />
      {props.label}
    </label>
  );
}

function Prediction({ answer }: { answer: WhatIf }) {
  if (answer.reason)
    return (
      <Panel class="mt" testid="what-if-reason">
        <Empty title="No prediction">{answer.reason}</Empty>
      </Panel>
    );
  return (
    <>
      <Panel
        title="Wall time by number of workers"
        class="mt"
        testid="what-if-curve"
        foot={`${answer.check} ${curveKey(answer.predictions)}`}
      >
        <Curves predictions={answer.predictions} />
      </Panel>
      <Panel title="Predictions" class="mt" testid="what-if-table">
        <Predictions answer={answer} />
      </Panel>
      <Panel title="Assumptions" class="mt">
        <ul class="plain" data-testid="what-if-assumptions">
          {answer.assumptions.map((text) => (
            <li key={text}>{text}</li>
          ))}
          <li>Cost and memory are estimates. Memory counts task results only.</li>
        </ul>
      </Panel>
    </>
  );
}

function Curves({ predictions }: { predictions: readonly PredictedCluster[] }) {
  const x = useMemo(() => predictions.map((p) => p.workers), [predictions]);
  const curves = useMemo(() => {
    const longest = predictions.map((p) => p.max_duration);
    return [
      { values: perfectScaling(predictions), colour: "--text-3", dash: true },
      ...(hasRange(predictions) ? [{ values: longest, colour: "--accent", isThin: true }] : []),
      { values: predictions.map((p) => p.duration), colour: "--accent" },
    ];
  }, [predictions]);
  if (x.length < 2) return null;
  return (
    <CurvePlot
      label={curveLabel(predictions)}
      x={x}
      curves={curves}
      hasBand={hasRange(predictions)}
      format={(seconds) => (seconds === 0 ? "0" : duration(1e6 * seconds))}
    />
  );
}

function Predictions({ answer }: { answer: WhatIf }) {
  return (
    <ShortTable
      label="Predictions"
      class="compact"
      rows={answer.predictions}
      keyOf={(p) => p.workers}
      testid="what-if-row"
      columns={[
        ["Workers", (p) => count(p.workers), "num"],
        ["Threads each", (p) => count(p.threads), "num"],
        ["Wall time", wallTime, "num wide"],
        ["Speed-up", (p) => `${p.speedup.toFixed(2)} ×`, "num"],
        ["Efficiency", (p) => percent(p.efficiency), "num"],
        ["Est. cost", (p) => (p.cost === null ? "–" : dollars(p.cost)), "num"],
        ["Worker memory", (p) => `${nbytes(p.peak_worker_memory)}${p.exceeds_memory ? " (too much)" : ""}`, "num"],
        ["Transferred", (p) => nbytes(p.transferred), "num"],
      ]}
    />
  );
}
