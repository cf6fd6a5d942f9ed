import type { Worker } from "../../api/schema.gen";
import { capital } from "../../model/activity";
import { isLost, verdictText } from "../../model/model";
import { useModel } from "../../model/page/hooks";
import { clock, count, counted, duration } from "../../model/text/format";
import { DataTable } from "../../widgets/table/table";

/** Keys of unfinished tasks that are shown of a worker. */
const MAX_KEYS = 3;

/** The unfinished tasks of a worker: the first keys, or only their number where keys are not recorded. */
function unfinished({ processing, processing_count: all }: Worker): string {
  if (processing.length === 0) return all > 0 ? counted(all, "task") : "none";
  const more = all - Math.min(MAX_KEYS, processing.length);
  return `${processing.slice(0, MAX_KEYS).join(", ")}${more > 0 ? ` and ${count(more)} more` : ""}`;
}

/** The workers that were lost, why, and what was lost with them. Shows nothing if none was. */
export function LostWorkers() {
  const model = useModel();
  const { report, nav } = model;
  const lost = report.workers.filter(isLost);
  if (lost.length === 0) return null;
  return (
    <section class="panel mt" aria-label="Lost workers">
      <DataTable
        title="Lost workers"
        label="Lost workers"
        name="lost-workers"
        rows={lost}
        rowKey={(w) => `${w.worker} ${w.start_us}`}
        rowTestid="lost-worker"
        onRow={(w) => nav.go("workers", { item: String(report.workers.indexOf(w)) })}
        sort={{ id: "at", down: false }}
        compact
        columns={[
          { id: "worker", head: "Worker", value: (w) => model.worker(w.worker) },
          { id: "at", head: "Lost at", num: true, value: (w) => w.stop_us, cell: (w) => clock(model.stopOf(w)) },
          {
            id: "reason",
            head: "Reason",
            value: (w) => capital(w.evidence || verdictText(w)),
            cell: (w) => <span style="white-space:normal">{capital(w.evidence || verdictText(w))}</span>,
          },
          {
            id: "unfinished",
            head: "Unfinished tasks",
            value: (w) => unfinished(w),
            cell: (w) => (
              <span class="mono cut" style="max-width:44ch" title={w.processing.join(", ")}>
                {unfinished(w)}
              </span>
            ),
          },
          { id: "results", head: "Lost results", num: true, value: (w) => w.lost_count, text: count },
          { id: "again", head: "Recompute time", num: true, value: (w) => w.recomputed_us, text: duration },
        ]}
      />
    </section>
  );
}
