import { useModel } from "../../model/page/hooks";
import { clock, count, counted } from "../../model/text/format";
import { Panel } from "../../widgets/basics";
import { Traceback } from "../../widgets/traceback";

/** Frames that are open below the headline; the view Errors has all of them. */
const OPEN_FRAMES = 3;

/** The error that ended a failed run: its message, the innermost frames, and what its occurrences share. */
export function TopFailure() {
  const model = useModel();
  const { report, nav } = model;
  // Errors that were always retried did not end the run.
  const final = report.errors.filter((e) => e.count > e.retried);
  const error = final[0];
  if (report.answer.state !== "failed" || !error) return null;
  const item = { item: String(report.errors.indexOf(error)) };
  const workers = [...error.workers].sort((a, b) => model.compareWorkers(a, b)).map((w) => model.shortWorker(w));
  return (
    <div class="cols mt" data-testid="top-failure">
      <div class="c8">
        <Traceback
          title="Why it failed"
          type={error.type}
          message={error.message}
          text={error.traceback}
          open={OPEN_FRAMES}
        />
      </div>
      <div class="c4">
        <Panel title="What the failures share">
          <dl class="kv">
            <dt>Failed</dt>
            <dd>{counted(error.count - error.retried, "task")}</dd>
            <dt>Retried</dt>
            <dd>{error.retried > 0 ? counted(error.retried, "time") : "never"}</dd>
            <dt>Prefix</dt>
            <dd class="mono">{error.prefixes.join(", ") || "not recorded"}</dd>
            <dt>{workers.length === 1 ? "Worker" : "Workers"}</dt>
            <dd>{workers.length <= 3 ? workers.join(", ") || "not recorded" : `${count(workers.length)} workers`}</dd>
            <dt>First seen</dt>
            <dd>{clock(model.since(error.first_us))}</dd>
            {final.length > 1 && (
              <>
                <dt>Others</dt>
                <dd>{counted(final.length - 1, "other error group")}</dd>
              </>
            )}
          </dl>
          <div class="pfoot">
            <a
              href={nav.href("errors", item)}
              onClick={(e) => {
                e.preventDefault();
                nav.go("errors", item);
              }}
            >
              Show all failures
            </a>
          </div>
        </Panel>
      </div>
    </div>
  );
}
