import { useMemo, useState } from "preact/hooks";
import { BYTES, measureName, measureText } from "../model/measures";
import { useAsync, useBinCenters, useModel, useParam, useSettledSelection } from "../model/page/hooks";
import { loadSeries, peak, sumWorkers } from "../model/series";
import { count } from "../model/text/format";
import { Loading, Panel, ViewHead } from "../widgets/basics";
import { Pick } from "../widgets/controls/inputs";
import { limitNote, MemoryLegend } from "../widgets/memory/memory-panel";
import { MemoryRows, useMemory } from "../widgets/memory/memory-rows";
import { type PlotSeries, TimePlot } from "../widgets/plots/plot";
import { TimeRuler } from "../widgets/stream/time-ruler";
import { DataTable } from "../widgets/table/table";

/** More rows do not fit on a screen. */
const MAX_ROWS = 24;

export function Memory() {
  const model = useModel();
  const { report } = model;
  const measures = Object.keys(report.series.measures);
  const [all, setAll] = useState(false);
  const [measure, setMeasure] = useParam("measure", measures.includes("process") ? "process" : (measures[0] ?? ""));
  return (
    <>
      <ViewHead title="Memory" note={limitNote(report.workers.map((w) => w.memory_limit))}>
        <Pick
          label="Measure"
          options={measures.map((m) => [m, measureName(m)])}
          value={measure}
          onChange={setMeasure}
          testid="measure"
        />
      </ViewHead>
      <TimeRuler />
      <AllWorkers measure={measure} />
      {measure === "process" && (
        <Panel
          title="By worker"
          note="All rows share one scale"
          class="mt"
          foot={
            <>
              <MemoryLegend />
              {report.series.workers.length > MAX_ROWS && (
                <button type="button" class="link push" onClick={() => setAll(!all)}>
                  {all ? "Show fewer" : `Show all ${count(report.series.workers.length)} workers`}
                </button>
              )}
            </>
          }
        >
          <MemoryRows max={all ? 1e9 : MAX_ROWS} />
        </Panel>
      )}
      <PeakTable measure={measure} />
    </>
  );
}

function AllWorkers({ measure }: { measure: string }) {
  const model = useModel();
  const { b0, b1 } = useSettledSelection();
  const memory = useMemory();
  const one = useAsync(() => loadSeries(model.report.series, measure, model.axis.bins, model.columns), [measure]);
  const x = useBinCenters();
  const series = useMemo((): PlotSeries[] => {
    if (measure === "process" && memory?.memory) {
      const out: PlotSeries[] = [
        {
          label: "process memory",
          values: sumWorkers(memory.memory, b0, b1),
          colour: "--mem-managed",
          fill: "--mem-unmanaged",
        },
      ];
      if (memory.managed)
        out.push({
          label: "managed",
          values: sumWorkers(memory.managed, b0, b1),
          colour: "--mem-managed",
          fill: "--mem-managed",
        });
      const spilled = memory.spilled ? sumWorkers(memory.spilled, b0, b1) : [];
      // Leave out a line that is zero everywhere.
      if (spilled.some((v) => v > 0)) out.push({ label: "spilled", values: spilled, colour: "--mem-spilled" });
      return out;
    }
    return one.value
      ? [{ label: measureName(measure), values: sumWorkers(one.value, b0, b1), colour: "--accent" }]
      : [];
  }, [memory, one.value, measure, b0, b1]);
  return (
    <Panel title="All workers" note={measureName(measure)} class="mt">
      {series.length === 0 ? (
        <Loading />
      ) : (
        <TimePlot
          label={`${measureName(measure)} of all workers over time`}
          x={x}
          series={series}
          format={(v) => measureText(measure, v)}
          binary={BYTES.test(measure)}
        />
      )}
    </Panel>
  );
}

function PeakTable({ measure }: { measure: string }) {
  const model = useModel();
  const { b0, b1, whole } = useSettledSelection();
  const data = useAsync(
    () => loadSeries(model.report.series, measure, model.axis.bins, model.columns),
    [measure],
  ).value;
  const rows = useMemo(
    () =>
      data?.workers
        .map((worker, i) => {
          const sampled = peak(data, i, b0, b1);
          const isKnown = whole && measure === "process" && !Number.isNaN(sampled);
          return { worker, top: (isKnown && model.peakMemory(worker)) || sampled };
        })
        .filter((r) => !Number.isNaN(r.top)) ?? [],
    [data, b0, b1, whole],
  );
  const title = whole ? "Peak by worker" : "Highest sample by worker";
  return (
    <section class="panel mt" aria-label={title}>
      <DataTable
        title={title}
        label={title}
        name="peaks"
        rows={rows}
        of={model.report.workers.length}
        note="workers"
        compact
        rowKey={(r) => r.worker}
        sort={{ id: "top", down: true }}
        columns={[
          { id: "name", head: "Worker", value: (r) => model.worker(r.worker) },
          { id: "worker", head: "Address", value: (r) => r.worker },
          {
            id: "top",
            head: measureName(measure),
            num: true,
            value: (r) => r.top,
            cell: (r) => measureText(measure, r.top),
          },
        ]}
      />
    </section>
  );
}
