import { useMemo } from "preact/hooks";
import type { Worker } from "../../api/schema.gen";
import { sumBy } from "../../model/cube";
import { measureText } from "../../model/measures";
import { verdictText } from "../../model/model";
import { useAsync, useBinCenters, useCube, useModel, useNav, useSettledSelection } from "../../model/page/hooks";
import { quantityOf } from "../../model/quantity";
import { loadSeries, sumWorkers } from "../../model/series";
import { count, nbytes, percent } from "../../model/text/format";
import { Loading, Panel, ViewHead } from "../../widgets/basics";
import { TimePlot } from "../../widgets/plots/plot";
import { TimeRuler } from "../../widgets/stream/time-ruler";
import { DataTable } from "../../widgets/table/table";
import { AnswerLine } from "../answer-line";
import { workersAnswer } from "../answers";
import { Events } from "../events";
import { PeakBar, Uptime, WorkerDetail, WorkerVerdict } from "./worker-detail";

export function Workers() {
  const model = useModel();
  const { params } = useNav();
  const { report, nav } = model;
  const selection = useSettledSelection();
  const cube = useCube("time_by_worker");
  const busy = useMemo(() => {
    if (!cube) return null;
    const idle = cube.keys.category.indexOf("idle");
    const all = sumBy(cube, "worker", "us", selection);
    const rest = sumBy(cube, "worker", "us", selection, { category: idle });
    return new Map(
      cube.keys.worker.map((w, i) => [w, all[i] > 0 ? (all[i] - (idle >= 0 ? rest[i] : 0)) / all[i] : Number.NaN]),
    );
  }, [cube, selection.b0, selection.b1]);
  const chosen = report.workers[Number(params.item)];
  const busyOf = (w: Worker) => (selection.whole ? w.busy_share : (busy?.get(w.worker) ?? Number.NaN));
  return (
    <>
      <ViewHead title="Workers" />
      <AnswerLine
        answer={workersAnswer(
          report.workers,
          (address) => model.called(address),
          (w) => model.stopOf(w) - model.since(w.start_us),
        )}
      />
      <TimeRuler />
      <div class={`mt ${chosen ? "detailgrid open" : "detailgrid"}`}>
        <section class="panel" aria-label="Workers">
          <DataTable
            title="Workers"
            label="Workers"
            name="workers"
            rows={report.workers}
            note="workers"
            rowKey={(w) => `${w.worker} ${w.start_us}`}
            rowTestid="worker-row"
            selected={(w) => w === chosen}
            onRow={(w) => nav.set({ item: String(report.workers.indexOf(w)) })}
            sort={{ id: "name", down: false }}
            columns={[
              {
                id: "name",
                head: "Worker",
                value: (w) => model.worker(w.worker),
                cell: (w) => (
                  <span class="cut" style="max-width:16ch" title={`${model.worker(w.worker)} ${w.worker}`}>
                    {model.shortWorker(w.worker)}
                  </span>
                ),
              },
              {
                id: "host",
                head: "Host",
                value: (w) => w.host,
                cell: (w) => (
                  <span class="cut" style="max-width:20ch" title={w.host}>
                    {w.host}
                  </span>
                ),
              },
              {
                id: "verdict",
                head: "Status",
                value: (w) => verdictText(w) || "connected",
                cell: (w) => <WorkerVerdict worker={w} />,
              },
              {
                id: "start",
                head: "Uptime",
                value: (w) => w.start_us,
                cell: (w) => <Uptime worker={w} />,
                width: "24%",
              },
              {
                id: "busy",
                head: "Busy while up",
                hint: `Share of its thread time ${selection.whole ? "" : "in the selected time "}that was not idle`,
                num: true,
                value: (w) => busyOf(w) || 0,
                cell: (w) => (Number.isNaN(busyOf(w)) ? "" : percent(busyOf(w))),
                quantity: (w) => (selection.whole ? quantityOf("busy-share", w.worker) : undefined),
              },
              {
                id: "tasks",
                head: "Task runs",
                num: true,
                value: (w) => w.tasks,
                text: count,
                quantity: (w) => model.workerQuantity("task-runs", w.worker),
              },
              { id: "threads", head: "Threads", num: true, value: (w) => w.threads },
              {
                id: "peak",
                head: "Peak memory",
                num: true,
                value: (w) => w.peak_memory,
                cell: (w) => <PeakBar worker={w} />,
                quantity: (w) => model.workerQuantity("peak-memory", w.worker),
              },
              { id: "spilled", head: "Spilled", num: true, value: (w) => w.spilled, text: nbytes },
              { id: "lost", head: "Lost results", num: true, value: (w) => w.lost_count, text: count },
            ]}
          />
        </section>
        {chosen && <WorkerDetail worker={chosen} />}
      </div>
      <SchedulerPlots />
      <Events />
    </>
  );
}

/** CPU and event loop of the scheduler over time. */
function SchedulerPlots() {
  const { report } = useModel();
  if (report.scheduler.workers.length === 0) return null;
  return (
    <div class="cols mt" data-testid="scheduler">
      <SchedulerPlot
        title="Scheduler CPU"
        measure="cpu_percent"
        label="CPU"
        note="100 % is one core, the most it can use"
      />
      <SchedulerPlot
        title="Scheduler event loop"
        measure="loop_lag_us"
        label="Delay"
        note="How late it runs; near zero unless the scheduler is busy"
      />
    </div>
  );
}

interface PlotProps {
  title: string;
  measure: string;
  label: string;
  note: string;
}

function SchedulerPlot({ title, measure, label, note }: PlotProps) {
  const { report, axis, columns } = useModel();
  const { b0, b1 } = useSettledSelection();
  const data = useAsync(() => loadSeries(report.scheduler, measure, axis.bins, columns), [measure]).value;
  const x = useBinCenters();
  const series = useMemo(
    () => data && [{ label, values: sumWorkers(data, b0, b1), colour: "--accent" }],
    [data, b0, b1],
  );
  return (
    <Panel title={title} note={note} class="c6">
      {series ? (
        <TimePlot
          label={`${title} over time`}
          x={x}
          series={series}
          format={(v) => measureText(measure, v)}
          height={150}
        />
      ) : (
        <Loading />
      )}
    </Panel>
  );
}
