import type { Worker } from "../../api/schema.gen";
import { isLost, verdictText } from "../../model/model";
import { useModel } from "../../model/page/hooks";
import { quantityOf } from "../../model/quantity";
import { clock, count, duration, moment, nbytes, percent, UNKNOWN } from "../../model/text/format";
import { select } from "../../model/time";
import { Panel } from "../../widgets/basics";
import { Icon, Pill } from "../../widgets/icon";

export function WorkerDetail({ worker: w }: { worker: Worker }) {
  const model = useModel();
  const { nav, report } = model;
  const stop = model.stopOf(w);
  const facts: [label: string, text: string, quantity?: string][] = [
    ["Address", w.worker],
    ["Host", w.host || "not recorded"],
    ["Joined", clock(model.since(w.start_us))],
    ["Left", w.stop_us > 0 ? clock(stop) : "still connected"],
    ["Joined (UTC)", moment(w.start_us)],
    ["Threads", String(w.threads)],
    ["Memory limit", w.memory_limit ? nbytes(w.memory_limit) : "none"],
    ["Peak memory", w.peak_memory > 0 ? nbytes(w.peak_memory) : UNKNOWN, model.workerQuantity("peak-memory", w.worker)],
    ["Spilled", nbytes(w.spilled)],
    ["Task runs", count(w.tasks), model.workerQuantity("task-runs", w.worker)],
    ["Compute time", duration(w.busy_us)],
    ["Busy while up", percent(w.busy_share), quantityOf("busy-share", w.worker)],
    ["Unfinished tasks", count(w.processing_count)],
    ["Lost results", count(w.lost_count)],
    ["Recompute time", duration(w.recomputed_us)],
  ];
  return (
    <Panel
      title={model.worker(w.worker)}
      class="detail"
      testid="worker-detail"
      right={
        <button type="button" class="btn sm ghost" aria-label="Close" onClick={() => nav.set({ item: undefined })}>
          <Icon name="x" />
        </button>
      }
    >
      <p class="callout" style="border:0;padding-top:0">
        <WorkerVerdict worker={w} /> {w.evidence}
      </p>
      <dl class="kv">
        {facts.map(([k, v, quantity]) => (
          <>
            <dt>{k}</dt>
            <dd data-quantity={quantity}>{v}</dd>
          </>
        ))}
      </dl>
      {w.processing.length > 0 && (
        <>
          <h3>
            Unfinished tasks{" "}
            {w.processing.length < w.processing_count ? `${w.processing.length} of ${w.processing_count}` : ""}
          </h3>
          <ul class="deps">
            {w.processing.map((k) => (
              <li class="mono" title={k} key={k}>
                {k}
              </li>
            ))}
          </ul>
        </>
      )}
      <div class="pfoot">
        <a
          href={nav.href("profile", { worker: w.worker })}
          onClick={(e) => {
            e.preventDefault();
            nav.go("profile", { worker: w.worker });
          }}
        >
          Profile
        </a>
        {isLost(w) && (
          <button
            type="button"
            class="link push"
            onClick={() =>
              nav.go(
                "stream",
                {},
                select(model.axis, stop - report.bins.width_us * 40, stop + report.bins.width_us * 40),
              )
            }
          >
            Show when it left
          </button>
        )}
      </div>
    </Panel>
  );
}

export function WorkerVerdict({ worker }: { worker: Worker }) {
  if (!worker.verdict) return <Pill state="running">connected</Pill>;
  return <Pill state={isLost(worker) ? "lost" : "finished"}>{verdictText(worker)}</Pill>;
}

export function PeakBar({ worker: w }: { worker: Worker }) {
  const share = w.memory_limit > 0 ? w.peak_memory / w.memory_limit : 0;
  return (
    <>
      {w.memory_limit > 0 && (
        <span class="mbar" style="width:48px;margin-right:8px">
          <i class={share > 0.8 ? "hi" : ""} style={{ width: `${Math.min(1, share) * 100}%` }} />
        </span>
      )}
      <span style="display:inline-block;min-width:62px">{w.peak_memory > 0 ? nbytes(w.peak_memory) : UNKNOWN}</span>
    </>
  );
}

export function Uptime({ worker }: { worker: Worker }) {
  const model = useModel();
  const { length } = model.axis;
  const from = Math.max(0, model.since(worker.start_us) / length);
  const to = Math.min(1, model.stopOf(worker) / length);
  return (
    <div class="life" role="img" aria-label={`from ${clock(from * length)} to ${clock(to * length)}`}>
      <i style={{ left: `${from * 100}%`, width: `${(to - from) * 100}%` }} />
      <i
        class="fill"
        style={{ left: `${from * 100}%`, width: `${(to - from) * worker.busy_share * 100}%` }}
        title={`${percent(worker.busy_share)} busy while up`}
      />
      {isLost(worker) && <i class="end" style={{ left: `${to * 100}%` }} />}
    </div>
  );
}
