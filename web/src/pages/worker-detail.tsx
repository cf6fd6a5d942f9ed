import type { Worker } from "../api/schema.gen";
import { clock, count, duration, moment, NOTHING, nbytes, percent, UNKNOWN } from "../model/format";
import { useModel } from "../model/hooks";
import { isLost } from "../model/model";
import { select } from "../model/time";
import { Panel } from "../widgets/basics";
import { Icon } from "../widgets/icon";
import { Verdict } from "./worker-cells";

export function WorkerDetail({ worker: w }: { worker: Worker }) {
  const model = useModel();
  const { nav, report } = model;
  const stop = model.stopOf(w);
  const facts: [string, string][] = [
    ["Address", w.worker],
    ["Host", w.host || "not recorded"],
    ["Joined", clock(model.since(w.start_us))],
    ["Left", w.stop_us > 0 ? clock(stop) : "still connected"],
    ["Joined (UTC)", moment(w.start_us)],
    ["Threads", String(w.threads)],
    ["Memory limit", w.memory_limit ? nbytes(w.memory_limit) : "none"],
    ["Peak memory", w.peak_memory > 0 ? nbytes(w.peak_memory) : UNKNOWN],
    ["Spilled", w.spilled ? nbytes(w.spilled) : NOTHING],
    ["Tasks", count(w.tasks)],
    ["Busy", `${duration(w.busy_us)}, ${percent(w.utilisation)}`],
    ["Unfinished tasks", count(w.processing_count)],
    ["Lost results", count(w.lost_count)],
    ["Recompute time", w.recomputed_us > 0 ? duration(w.recomputed_us) : NOTHING],
  ];
  return (
    <Panel
      title={w.name || w.worker}
      class="detail"
      testid="worker-detail"
      right={
        <button type="button" class="btn sm ghost" aria-label="Close" onClick={() => nav.set({ item: undefined })}>
          <Icon name="x" />
        </button>
      }
    >
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
