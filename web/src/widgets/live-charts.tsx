import { useMemo } from "preact/hooks";
import type { LiveSeries } from "../charts/live-plot";
import { count, nbytes } from "../model/format";
import type { LiveRun } from "../model/live-run";
import type { Totals } from "../model/live-workers";
import { LivePlot } from "./live-plot";
import { LiveWorkerMemory } from "./live-workers";
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
