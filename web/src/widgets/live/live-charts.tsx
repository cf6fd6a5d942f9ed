import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { drawLivePlot, type LiveSeries } from "../../charts/live-plot";
import type { LiveRun } from "../../model/live/live-run";
import type { LiveWorker, Totals } from "../../model/live/live-workers";
import { clock, count, nbytes } from "../../model/text/format";
import { BarRows } from "../bars/bar-rows";
import { Panel } from "../basics";
import { useThemeVersion, useWidth } from "../use-canvas";
import type { LiveRange } from "./use-live-range";

/** Points of a line of sums. */
const MAX_POINTS = 120;

interface Props {
  run: LiveRun;
  version: number;
  range: LiveRange;
}

const whole = (value: number) => count(Math.round(value));
const rate = (value: number) => (value > 0 && value < 9.95 ? value.toFixed(1) : count(Math.round(value)));

/** Busy threads, memory, finished tasks and transfers over the shown time, and the memory of each worker now. */
export function LiveCharts({ run, version, range }: Props) {
  const { t0, t1 } = range;
  // Sums are by second, and the picture moves twice as often.
  const [from, to] = [Math.floor(t0 / 1e6), Math.ceil(t1 / 1e6)];
  const charts = useMemo(() => {
    const line = (measure: keyof Totals, label: string, colour: string, more: Partial<LiveSeries> = {}): LiveSeries => {
      const { x, y } = run.workers.series(measure, from, to);
      return { label, colour, x: x.map((second) => second * 1e6), y, stepped: true, ...more };
    };
    const width = Math.max(1, Math.ceil((to - from) / MAX_POINTS));
    const bins = run.busy.bins(from, width, Math.ceil((to - from) / width));
    const x = bins.map((_, i) => (from + (i + 0.5) * width) * 1e6);
    const sums = (label: string, colour: string, values: number[], fill?: string): LiveSeries => ({
      label,
      colour,
      fill,
      x,
      y: values,
    });
    return {
      busy: [
        line("executing", "executing", "--act-cpu", { fill: "--accent-soft" }),
        line("threads", "threads", "--text-3", { dash: true }),
      ],
      memory: [
        line("memory", "in use", "--mem-managed", { fill: "--mem-unmanaged" }),
        line("spilled", "spilled", "--act-disk"),
        line("memory_limit", "limit", "--text-3", { dash: true }),
      ].filter((series) => series.label !== "spilled" || series.y.some((value) => value > 0)),
      tasks: [
        sums(
          "finished per second",
          "--act-cpu",
          bins.map((bin) => (bin.tasks - bin.errors) / width),
          "--accent-soft",
        ),
        sums(
          "failed",
          "--act-failed",
          bins.map((bin) => bin.errors / width),
        ),
      ],
      transfers: [sums("per second", "--act-transfer", run.transfers.bins(from, width, bins.length), "--accent-soft")],
    };
  }, [run, version, from, to]);
  return (
    <div class="cols">
      <LivePlot title="Busy threads" series={charts.busy} range={range} format={whole} testid="live-busy" />
      <LivePlot title="Memory" series={charts.memory} range={range} format={nbytes} testid="live-memory" />
      <LivePlot title="Tasks" series={charts.tasks} range={range} format={rate} testid="live-tasks" />
      <LivePlot title="Transfers" series={charts.transfers} range={range} format={nbytes} testid="live-transfers" />
      <div class="c8">
        <LiveWorkerMemory workers={run.workers.connected} />
      </div>
    </div>
  );
}

const MAX_ROWS = 12;

/** Memory of each worker now, fullest first. */
function LiveWorkerMemory({ workers }: { workers: readonly LiveWorker[] }) {
  const share = (worker: LiveWorker) => worker.memory / (worker.memory_limit || Number.POSITIVE_INFINITY);
  const sorted = [...workers].sort((a, b) => share(b) - share(a) || b.memory - a.memory);
  const rows = sorted.slice(0, MAX_ROWS).map((worker) => {
    const managed = Math.min(worker.managed, worker.memory);
    const limit = worker.memory_limit ? ` of ${nbytes(worker.memory_limit)}` : "";
    return {
      key: worker.worker,
      name: (
        <span title={worker.worker}>
          {worker.name || worker.worker}
          {worker.paused && <span class="warn"> paused</span>}
        </span>
      ),
      text: `${nbytes(worker.memory)}${limit}`,
      parts: [
        { key: "managed", value: managed, colour: "--mem-managed", title: `Results: ${nbytes(managed)}` },
        {
          key: "unmanaged",
          value: worker.memory - managed,
          colour: "--mem-unmanaged",
          title: `Unmanaged: ${nbytes(worker.memory - managed)}`,
        },
        { key: "spilled", value: worker.spilled, colour: "--act-disk", title: `Spilled: ${nbytes(worker.spilled)}` },
      ],
    };
  });
  const max = Math.max(1, ...sorted.map((worker) => Math.max(worker.memory_limit, worker.memory + worker.spilled)));
  return (
    <Panel
      title="Memory by worker"
      testid="live-worker-memory"
      foot={sorted.length > MAX_ROWS ? `${MAX_ROWS} of ${count(sorted.length)} workers, fullest first` : undefined}
    >
      {rows.length === 0 ? <p class="callout">No workers are connected.</p> : <BarRows rows={rows} max={max} />}
    </Panel>
  );
}

interface LivePlotProps {
  title: string;
  series: readonly LiveSeries[];
  range: LiveRange;
  format: (value: number) => string;
  testid: string;
}

const PLOT_HEIGHT = 118;

/** Lines over the shown time. The legend has the latest values, or those at the pointer. */
function LivePlot({ title, series, range, format, testid }: LivePlotProps) {
  const [box, width] = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useThemeVersion();
  const [hover, setHover] = useState<number | null>(null);
  const { t0, t1 } = range;
  useLayoutEffect(() => {
    if (canvas.current && width > 1) drawLivePlot(canvas.current, width, PLOT_HEIGHT, series, t0, t1, format);
  }, [series, t0, t1, width, theme]);
  const at = hover === null ? t1 : t0 + hover * (t1 - t0);
  const texts = series.map((line) => `${line.label} ${valueAt(line, at, format)}`);
  return (
    <Panel
      title={title}
      class="c4"
      testid={testid}
      right={
        <div class="plotkey">
          {hover !== null && <span class="faint">{clock(at, 1e6)}</span>}
          {series.map((line, i) => (
            <span key={line.label}>
              <i style={{ borderTop: `2px ${line.dash ? "dashed" : "solid"} var(${line.colour})` }} />
              {texts[i]}
            </span>
          ))}
        </div>
      }
    >
      <div class="liveplot" ref={box}>
        <canvas
          ref={canvas}
          role="img"
          aria-label={`${title} over time. ${texts.join(", ")}.`}
          onPointerMove={(event) => setHover(event.offsetX / Math.max(1, width))}
          onPointerLeave={() => setHover(null)}
        />
      </div>
    </Panel>
  );
}

/** Return the last value up to a time as text. */
function valueAt({ x, y }: LiveSeries, t: number, format: (value: number) => string): string {
  let last = -1;
  for (let i = 0; i < x.length && x[i] <= t; i++) last = i;
  return last < 0 ? "–" : format(y[last]);
}
