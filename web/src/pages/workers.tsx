import { useMemo } from "preact/hooks";
import type { Worker } from "../api/schema.gen";
import { clock, count, counted, duration, moment, nbytes, percent, UNKNOWN } from "../model/format";
import { useModel, useNav } from "../model/hooks";
import { isLost } from "../model/model";
import { sumBy } from "../model/cube";
import { select } from "../model/time";
import { useCube, useSettled } from "../model/hooks";
import { Panel, ViewHead } from "../widgets/basics";
import { Icon, Pill } from "../widgets/icon";
import { DataTable } from "../widgets/table";
import { TimeRuler } from "../widgets/time-ruler";

export function Workers() {
  const model = useModel();
  const { params } = useNav();
  const { report, nav } = model;
  const selection = useSettled();
  const cube = useCube("time_by_worker");
  const busy = useMemo(() => {
    if (!cube) return null;
    const idle = cube.keys.category.indexOf("idle");
    const all = sumBy(cube, "worker", "us", selection);
    const rest = sumBy(cube, "worker", "us", selection, { category: idle });
    return new Map(cube.keys.worker.map((w, i) => [w, all[i] > 0 ? (all[i] - (idle >= 0 ? rest[i] : 0)) / all[i] : Number.NaN]));
  }, [cube, selection.b0, selection.b1]);
  const chosen = report.workers[Number(params.item)];
  const lost = report.workers.filter(isLost).length;
  const busyOf = (w: Worker) => (selection.whole ? w.utilisation : (busy?.get(w.worker) ?? Number.NaN));
  return (
    <>
      <ViewHead title="Workers" note={`${counted(report.workers.length, "worker")}, ${lost} lost`} />
      <TimeRuler />
      <div class={`mt ${chosen ? "detailgrid open" : "detailgrid"}`}>
        <section class="panel" aria-label="Workers">
          <DataTable
            title="Life of each worker" label="Table of workers" name="workers" rows={report.workers} note="workers" rowKey={(w) => `${w.worker} ${w.start_us}`} rowTestid="worker-row" selected={(w) => w === chosen} onRow={(w) => nav.set({ item: String(report.workers.indexOf(w)) })} sort={{ id: "start", down: false }}
            columns={[
              { id: "name", head: "Worker", value: (w) => w.name || w.worker, cell: (w) => <span class="cut" style="max-width:16ch" title={`${w.name} ${w.worker}`}>{model.brief(w.worker)}</span> },
              { id: "host", head: "Host", value: (w) => w.host, cell: (w) => <span class="cut" style="max-width:20ch" title={w.host}>{w.host}</span> },
              { id: "verdict", head: "End", value: (w) => w.verdict || "connected", cell: (w) => <Verdict worker={w} /> },
              { id: "start", head: "Life", value: (w) => w.start_us, cell: (w) => <Life worker={w} />, width: "24%" },
              { id: "busy", head: selection.whole ? "Busy" : "Busy, selected", num: true, value: (w) => busyOf(w) || 0, cell: (w) => (Number.isNaN(busyOf(w)) ? "" : percent(busyOf(w))) },
              { id: "tasks", head: "Tasks", num: true, value: (w) => w.tasks, cell: (w) => count(w.tasks) },
              { id: "threads", head: "Threads", num: true, value: (w) => w.threads },
              { id: "peak", head: "Peak memory", num: true, value: (w) => w.peak_memory, cell: (w) => <PeakBar worker={w} /> },
              { id: "spilled", head: "Spilled", num: true, value: (w) => w.spilled, cell: (w) => (w.spilled ? nbytes(w.spilled) : "0") },
              { id: "lost", head: "Results lost", num: true, value: (w) => w.lost_count, cell: (w) => count(w.lost_count) },
            ]}
          />
        </section>
        {chosen && <WorkerDetail worker={chosen} />}
      </div>
    </>
  );
}

function Verdict({ worker }: { worker: Worker }) {
  if (!worker.verdict) return <Pill state="finished">connected</Pill>;
  return <Pill state={isLost(worker) ? "lost" : "idle"}>{worker.verdict}</Pill>;
}

function PeakBar({ worker: w }: { worker: Worker }) {
  const share = w.memory_limit > 0 ? w.peak_memory / w.memory_limit : 0;
  return (
    <>
      {w.memory_limit > 0 && <span class="mbar" style="width:48px;margin-right:8px"><i class={share > 0.8 ? "hi" : ""} style={{ width: `${Math.min(1, share) * 100}%` }} /></span>}
      <span style="display:inline-block;min-width:62px">{w.peak_memory > 0 ? nbytes(w.peak_memory) : UNKNOWN}</span>
    </>
  );
}

function Life({ worker }: { worker: Worker }) {
  const model = useModel();
  const { length } = model.axis;
  const from = Math.max(0, model.since(worker.start_us) / length);
  const to = Math.min(1, model.stopOf(worker) / length);
  return (
    <div class="life" role="img" aria-label={`from ${clock(from * length)} to ${clock(to * length)}`}>
      <i style={{ left: `${from * 100}%`, width: `${(to - from) * 100}%` }} />
      <i class="fill" style={{ left: `${from * 100}%`, width: `${(to - from) * worker.utilisation * 100}%` }} title={`${percent(worker.utilisation)} busy`} />
      {isLost(worker) && <i class="end" style={{ left: `${to * 100}%` }} />}
    </div>
  );
}

function WorkerDetail({ worker: w }: { worker: Worker }) {
  const model = useModel();
  const { nav, report } = model;
  const stop = model.stopOf(w);
  const facts: [string, string][] = [
    ["Address", w.worker], ["Host", w.host || "not recorded"], ["Joined", clock(model.since(w.start_us))], ["Left", w.stop_us > 0 ? clock(stop) : "still connected"], ["Joined at", moment(w.start_us)], ["Threads", String(w.threads)],
    ["Memory limit", w.memory_limit ? nbytes(w.memory_limit) : "none"], ["Peak memory", w.peak_memory > 0 ? nbytes(w.peak_memory) : UNKNOWN], ["Spilled", nbytes(w.spilled)], ["Tasks", count(w.tasks)], ["Busy", `${duration(w.busy_us)}, ${percent(w.utilisation)}`],
    ["Processing at the end", counted(w.processing_count, "task")], ["Results lost", count(w.lost_count)], ["Computed again", duration(w.recomputed_us)],
  ];
  return (
    <Panel title={w.name || w.worker} class="detail" testid="worker-detail" right={<button type="button" class="btn sm ghost" aria-label="Close" onClick={() => nav.set({ item: undefined })}><Icon name="x" /></button>}>
      <p class="callout" style="border:0;padding-top:0">
        <Verdict worker={w} /> {w.evidence}
      </p>
      <dl class="kv">
        {facts.map(([k, v]) => (
          <>
            <dt>{k}</dt>
            <dd>{v}</dd>
          </>
        ))}
      </dl>
      {w.processing.length > 0 && (
        <>
          <h3>Was processing {w.processing.length < w.processing_count ? `${w.processing.length} of ${w.processing_count}` : ""}</h3>
          <ul class="deps">{w.processing.map((k) => <li class="mono" title={k} key={k}>{k}</li>)}</ul>
        </>
      )}
      <div class="pfoot">
        <a href={nav.href("profile", { worker: w.worker })} onClick={(e) => { e.preventDefault(); nav.go("profile", { worker: w.worker }); }}>Profile</a>
        {isLost(w) && <button type="button" class="link push" onClick={() => nav.go("stream", {}, select(model.axis, stop - report.bins.width_us * 40, stop + report.bins.width_us * 40))}>Show its end</button>}
      </div>
    </Panel>
  );
}
