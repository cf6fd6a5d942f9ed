import { capital } from "../../model/activity";
import { isLost } from "../../model/model";
import { useModel } from "../../model/page/hooks";
import { clock, count, duration } from "../../model/text/format";
import { Panel } from "../../widgets/basics";
import { ShortTable } from "../../widgets/table/card-table";

/** Keys of unfinished tasks that are shown of a worker. */
const MAX_KEYS = 3;

/** The workers that were lost, why, and what was lost with them. Shows nothing if none was. */
export function LostWorkers() {
  const model = useModel();
  const { report, nav } = model;
  const lost = report.workers.filter(isLost);
  if (lost.length === 0) return null;
  return (
    <Panel title="Lost workers" note={count(lost.length)} class="mt" testid="lost-workers">
      <ShortTable
        label="Lost workers"
        rows={lost}
        keyOf={(w) => `${w.worker} ${w.start_us}`}
        testid="lost-worker"
        columns={[
          [
            "Worker",
            (w) => (
              <button
                type="button"
                class="link"
                onClick={() => nav.go("workers", { item: String(report.workers.indexOf(w)) })}
              >
                {model.worker(w.worker)}
              </button>
            ),
          ],
          ["Lost at", (w) => clock(model.stopOf(w)), "num"],
          ["Reason", (w) => capital(w.evidence || w.verdict), "wrap"],
          [
            "Unfinished tasks",
            (w) => (
              <span class="mono cut" style="max-width:44ch" title={w.processing.join(", ")}>
                {w.processing.slice(0, MAX_KEYS).join(", ") || "none"}
                {w.processing_count > MAX_KEYS && ` and ${count(w.processing_count - MAX_KEYS)} more`}
              </span>
            ),
          ],
          ["Lost results", (w) => count(w.lost_count), "num"],
          ["Recompute time", (w) => duration(w.recomputed_us), "num"],
        ]}
      />
    </Panel>
  );
}
