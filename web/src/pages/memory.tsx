import { useMemo, useState } from "preact/hooks";
import { count, duration, nbytes, percent } from "../model/format";
import { useAsync, useModel, useParam, useSettled } from "../model/hooks";
import { loadSeries, peak, sumWorkers } from "../model/series";
import { Loading, Panel, Pick, ViewHead } from "../widgets/basics";
import { limitNote, MemoryLegend } from "../widgets/memory-panel";
import { MemoryRows, useMemory } from "../widgets/memory-rows";
import { type PlotSeries, TimePlot } from "../widgets/plot";
import { DataTable } from "../widgets/table";
import { TimeRuler } from "../widgets/time-ruler";

const NAMES: Record<string, string> = {
  process: "Process memory", managed: "Managed", managed_total: "Managed, with spilled", optimistic: "Managed and old unmanaged", unmanaged: "Unmanaged", unmanaged_old: "Unmanaged, old", unmanaged_recent: "Unmanaged, recent", spilled: "Spilled to disk", cpu_percent: "CPU", net_read_bps: "Network in", net_write_bps: "Network out",
  disk_read_bps: "Disk read", disk_write_bps: "Disk write", executing: "Executing tasks", ready: "Ready tasks", processing: "Assigned tasks", stored: "Results held", loop_lag_us: "Event loop interval", gil_contention: "Interpreter lock contention", fds: "Open files", occupancy_us: "Estimated work",
};

/** More rows than these do not fit on a screen. */
const MOST = 24;
const BYTES = /process|memory|managed|spilled|optimistic|bytes|_bps$/;

export function measureName(measure: string): string {
  return NAMES[measure] ?? measure.replaceAll("_", " ");
}

/** Numbers of a measure in its unit. */
export function measureText(measure: string, value: number): string {
  if (measure.endsWith("_us")) return duration(value);
  if (measure.endsWith("_bps")) return `${nbytes(value)}/s`;
  if (measure.endsWith("_percent")) return `${count(Math.round(value))} %`;
  if (measure.includes("contention")) return percent(value);
  if (BYTES.test(measure)) return nbytes(value);
  return count(Math.round(value));
}

export function Memory() {
  const model = useModel();
  const { report } = model;
  const measures = Object.keys(report.series.measures);
  const [all, setAll] = useState(false);
  const [measure, setMeasure] = useParam("measure", measures.includes("process") ? "process" : (measures[0] ?? ""));
  return (
    <>
      <ViewHead title="Memory" note={limitNote(report.workers.map((w) => w.memory_limit))}>
        <Pick label="Measure" options={measures.map((m) => [m, measureName(m)])} value={measure} onChange={setMeasure} testid="measure" />
      </ViewHead>
      <TimeRuler />
      <Cluster measure={measure} />
      {measure === "process" && (
        <Panel title="By worker" note="all rows share limit and time" class="mt" foot={<><MemoryLegend />{report.series.workers.length > MOST && <button type="button" class="link push" onClick={() => setAll(!all)}>{all ? "Show fewer" : `Show all ${count(report.series.workers.length)} workers`}</button>}</>}>
          <MemoryRows most={all ? 1e9 : MOST} />
        </Panel>
      )}
      <PeakTable measure={measure} />
    </>
  );
}

function useMoments(): Float64Array {
  const { axis } = useModel();
  const { b0, b1 } = useSettled();
  return useMemo(() => Float64Array.from({ length: b1 - b0 }, (_, i) => (b0 + i + 0.5) * axis.width), [b0, b1]);
}

function Cluster({ measure }: { measure: string }) {
  const model = useModel();
  const { b0, b1 } = useSettled();
  const memory = useMemory();
  const one = useAsync(() => loadSeries(model.report.series, measure, model.axis.bins, model.columns), [measure]);
  const x = useMoments();
  const series = useMemo((): PlotSeries[] => {
    if (measure === "process" && memory?.memory) {
      const out: PlotSeries[] = [{ label: "in memory", values: sumWorkers(memory.memory, b0, b1), colour: "--mem-managed", fill: "--mem-unmanaged" }];
      if (memory.managed) out.push({ label: "managed", values: sumWorkers(memory.managed, b0, b1), colour: "--mem-managed", fill: "--mem-managed" });
      const spilled = memory.spilled ? sumWorkers(memory.spilled, b0, b1) : [];
      // A line along the foot of the chart would look like something.
      if (spilled.some((v) => v > 0)) out.push({ label: "spilled", values: spilled, colour: "--mem-spilled" });
      return out;
    }
    return one.value ? [{ label: measureName(measure), values: sumWorkers(one.value, b0, b1), colour: "--accent" }] : [];
  }, [memory, one.value, measure, b0, b1]);
  return (
    <Panel title="All workers together" note={measureName(measure)} class="mt">
      {series.length === 0 ? <Loading /> : <TimePlot label={`${measureName(measure)} of all workers over time`} x={x} series={series} format={(v) => measureText(measure, v)} binary={BYTES.test(measure)} />}
    </Panel>
  );
}

function PeakTable({ measure }: { measure: string }) {
  const model = useModel();
  const { b0, b1 } = useSettled();
  const data = useAsync(() => loadSeries(model.report.series, measure, model.axis.bins, model.columns), [measure]).value;
  const rows = useMemo(() => data?.workers.map((worker, i) => ({ worker, top: peak(data, i, b0, b1) })).filter((r) => !Number.isNaN(r.top)) ?? [], [data, b0, b1]);
  return (
    <section class="panel mt" aria-label="Peaks">
      <DataTable
        title="Peaks in the selected time" label="Peak by worker" name="peaks" rows={rows} of={model.report.workers.length} note="workers" compact rowKey={(r) => r.worker} sort={{ id: "top", down: true }}
        columns={[
          { id: "name", head: "Worker", value: (r) => model.worker(r.worker) },
          { id: "worker", head: "Address", value: (r) => r.worker },
          { id: "top", head: measureName(measure), num: true, value: (r) => r.top, cell: (r) => measureText(measure, r.top) },
        ]}
      />
    </section>
  );
}
