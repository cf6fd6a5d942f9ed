import { useMemo, useState } from "preact/hooks";
import { BYTES, measureName, measureText } from "../model/measures";
import type { Model } from "../model/model";
import { useAsync, useBinCenters, useModel, useParam, useSettledSelection } from "../model/page/hooks";
import { peak, sumWorkers } from "../model/series";
import { clock, count, nbytes } from "../model/text/format";
import { Loading, Panel, ViewHead } from "../widgets/basics";
import { Pick } from "../widgets/controls/inputs";
import { limitNote, MemoryLegend } from "../widgets/memory/memory-panel";
import { MemoryRows, useMemory } from "../widgets/memory/memory-rows";
import { type PlotSeries, TimePlot } from "../widgets/plots/plot";
import { TimeRuler } from "../widgets/stream/time-ruler";
import { DataTable } from "../widgets/table/table";
import { AnswerLine } from "./answer-line";
import { memoryAnswer } from "./answers";
import { processSeries } from "./memory-series";

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
      <AnswerLine
        answer={memoryAnswer(
          report.workers,
          report.totals.spilled,
          (address) => model.called(address),
          (us) => clock(model.since(us)),
        )}
      />
      <TimeRuler />
      <AllWorkers measure={measure} />
      {measure === "process" && (
        <Panel
          title="By worker"
          note="One scale for all rows. Peaks are at different times"
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

/** Return the memory limit of all connected workers at each time. */
function limitOf(model: Model, times: Float64Array): Float64Array {
  const { workers } = model.report;
  return times.map((t) =>
    workers.reduce(
      (sum, w) => sum + (model.since(w.start_us) <= t && t <= model.stopOf(w) ? Math.max(0, w.memory_limit) : 0),
      0,
    ),
  );
}

function AllWorkers({ measure }: { measure: string }) {
  const model = useModel();
  const { b0, b1 } = useSettledSelection();
  const memory = useMemory();
  const one = useAsync(() => model.series(measure), [measure]);
  const limit = model.report.totals.memory_limit;
  const x = useBinCenters();
  const series = useMemo((): PlotSeries[] => {
    if (measure === "process" && memory?.memory) return processSeries(memory, limitOf(model, x), b0, b1);
    return one.value
      ? [{ label: measureName(measure), values: sumWorkers(one.value, b0, b1), colour: "--accent" }]
      : [];
  }, [memory, one.value, measure, b0, b1]);
  return (
    <Panel
      title="All workers"
      note={limit > 0 && measure === "process" ? `limit ${nbytes(limit)} together` : measureName(measure)}
      class="mt"
    >
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
  const data = useAsync(() => model.series(measure), [measure]).value;
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
        sort={{ id: "name", down: false }}
        columns={[
          { id: "name", head: "Worker", value: (r) => model.worker(r.worker) },
          { id: "worker", head: "Address", value: (r) => r.worker },
          {
            id: "top",
            head: measureName(measure),
            num: true,
            value: (r) => r.top,
            cell: (r) => measureText(measure, r.top),
            quantity: (r) =>
              whole && measure === "process" ? model.workerQuantity("peak-memory", r.worker) : undefined,
          },
        ]}
      />
    </section>
  );
}
