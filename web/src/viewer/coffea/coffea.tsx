import { useMemo } from "preact/hooks";
import type { CoffeaRun } from "../../api/schema.gen";
import { useBinCenters, useModel, useParam, useSettledSelection } from "../../model/page/hooks";
import { count, counted, duration, frequency, nbytes, percent, UNKNOWN } from "../../model/text/format";
import { type BarRow, BarRows } from "../../widgets/bars/bar-rows";
import { Empty, Panel, ViewHead } from "../../widgets/basics";
import { Pick } from "../../widgets/controls/inputs";
import { type Metric, MetricStrip } from "../../widgets/metric-strip";
import { type PlotSeries, TimePlot } from "../../widgets/plots/plot";
import { Scatter } from "../../widgets/plots/scatter";
import { TimeRuler } from "../../widgets/stream/time-ruler";
import { CoffeaColumns, CoffeaParts } from "./coffea-parts";

const PHASES = { preprocess: "Preprocess", process: "Process", merge: "Merge" } as const;

/** Runs of coffea: events, bytes, rates, and the time besides the user's code. */
export function Coffea() {
  const { report } = useModel();
  const [run, setRun] = useParam("run", "0");
  const shown = report.coffea[Number(run)] ?? report.coffea[0];
  if (!shown) return <NoRun />;
  return (
    <>
      <ViewHead title="coffea" note={shown.kind === "Runner" ? shown.name : "with dask-awkward"}>
        {report.coffea.length > 1 && (
          <Pick
            label="Run"
            options={report.coffea.map((r, i) => [String(i), `${i + 1}. ${r.name}`])}
            value={run}
            onChange={setRun}
            testid="coffea-run"
          />
        )}
      </ViewHead>
      <p class="headline" data-testid="coffea-headline">
        {shown.headline}
      </p>
      <TimeRuler />
      <div class="mt">
        <MetricStrip metrics={metrics(shown)} />
      </div>
      <div class="cols mt">
        <Panel title="Phases" note="sum of task durations" class="c5">
          <BarRows rows={phases(shown)} max={Math.max(...shown.phases.map((p) => p.us), 1)} />
          <Rates run={shown} />
        </Panel>
        <Panel title="Chunks" note="events and duration" class="c7" foot={<FitText run={shown} />}>
          {shown.points.length > 0 ? (
            <Scatter
              label={`Events and duration of ${counted(shown.points.length, "chunk")}`}
              points={shown.points}
              line={shown.fit ? [shown.fit.fixed_us, shown.fit.us_per_event] : undefined}
              formatX={count}
              formatY={duration}
            />
          ) : (
            <p class="callout">The recording has no events of chunks.</p>
          )}
        </Panel>
      </div>
      <CoffeaTime run={shown} />
      <CoffeaParts run={shown} />
      <CoffeaColumns run={shown} />
    </>
  );
}

function NoRun() {
  return (
    <>
      <ViewHead title="coffea" />
      <Panel class="mt">
        <Empty title="No coffea run">Run a coffea processor on the cluster while it is recorded.</Empty>
      </Panel>
    </>
  );
}

const known = (value: number, format: (value: number) => string) => (value >= 0 ? format(value) : UNKNOWN);
const orUnknown = (value: number | null, format: (value: number) => string) =>
  value === null ? UNKNOWN : format(value);

function metrics(run: CoffeaRun): Metric[] {
  const seconds = (run.stop_us - run.start_us) / 1e6;
  const skipped = run.files_skipped + run.chunks_skipped;
  return [
    {
      id: "events",
      label: "Events",
      value: known(run.events, count),
      note: `${counted(run.chunks, "chunk")} of ${counted(run.files, "file")}`,
    },
    {
      id: "rate",
      label: "Event rate",
      value: orUnknown(run.rates.wall, frequency),
      note: `in ${duration(run.stop_us - run.start_us)} of wall time`,
    },
    {
      id: "read",
      label: "Read",
      value: known(run.bytes_read, nbytes),
      note: run.bytes_read < 0 || seconds <= 0 ? "" : `${nbytes(run.bytes_read / seconds)}/s`,
    },
    {
      id: "bytes-per-event",
      label: "Bytes per event",
      value: orUnknown(run.bytes_per_event, (n) => count(Math.round(n))),
      note: amplification(run),
    },
    {
      id: "useful",
      label: "Your code",
      value: orUnknown(run.useful_share, percent),
      note: run.overhead_us >= 0 ? `and ${duration(run.overhead_us)} per chunk` : "of the task time",
    },
    {
      id: "lost",
      label: "Skipped or failed",
      value: count(skipped + run.chunks_failed),
      note: `${counted(run.files_skipped, "file")} and ${counted(run.chunks_skipped + run.chunks_failed, "chunk")}`,
    },
  ];
}

function amplification(run: CoffeaRun): string {
  const factor = run.read_amplification;
  if (factor === null) return "no other run to compare with";
  return factor > 1.005 ? `${factor.toFixed(1)} × the least of these columns` : "the least of these columns";
}

function phases(run: CoffeaRun): BarRow[] {
  return run.phases.map((p) => ({
    key: p.phase,
    name: PHASES[p.phase],
    text: `${duration(p.us)}, ${counted(p.tasks, "task")}`,
    parts: [{ key: p.phase, value: p.us, colour: "--act-cpu", title: duration(p.us) }],
  }));
}

function Rates({ run }: { run: CoffeaRun }) {
  const rows: [string, number | null][] = [
    ["per second of wall time", run.rates.wall],
    ["per second of a thread", run.rates.thread],
    ["per second of a task", run.rates.task],
    ["per second of process()", run.rates.process],
  ];
  return (
    <dl class="facts" data-testid="coffea-rates">
      {rows.map(([name, rate]) => (
        <div key={name}>
          <dt>Events {name}</dt>
          <dd>{orUnknown(rate, frequency)}</dd>
        </div>
      ))}
    </dl>
  );
}

function FitText({ run }: { run: CoffeaRun }) {
  if (!run.fit) return <span>All chunks have about the same size, so there is no line through them.</span>;
  const million = duration(run.fit.us_per_event * 1e6);
  return (
    <span>
      A chunk takes {duration(run.fit.fixed_us)}, and {million} per million events.
    </span>
  );
}

/** Event rate and workers over time. */
function CoffeaTime({ run }: { run: CoffeaRun }) {
  const { b0, b1 } = useSettledSelection();
  const x = useBinCenters();
  const rate = useMemo(
    (): PlotSeries[] => [{ label: "events per second", values: run.event_rate.slice(b0, b1), colour: "--act-cpu" }],
    [run, b0, b1],
  );
  const workers = useMemo(
    (): PlotSeries[] => [
      { label: "workers", values: run.worker_count.slice(b0, b1), colour: "--act-transfer", stepped: true },
    ],
    [run, b0, b1],
  );
  return (
    <div class="cols mt">
      <Panel title="Event rate over time" class="c7">
        <TimePlot label="Events per second over time" x={x} series={rate} format={frequency} height={180} />
      </Panel>
      <Panel title="Workers over time" class="c5">
        <TimePlot
          label="Workers over time"
          x={x}
          series={workers}
          format={(v) => String(Math.round(v * 10) / 10)}
          height={180}
        />
      </Panel>
    </div>
  );
}
