import { useState } from "preact/hooks";
import type { AccountPreferences, HostedReport, OneComputation, UsualDuration } from "../../api/server.gen";
import { count, counted } from "../../model/text/format";
import { copy } from "../../widgets/clipboard";
import { Icon, Pill, StatePill } from "../../widgets/icon";
import { toast } from "../../widgets/toast";
import { EditDialog } from "../parts/edit-dialog";
import { SourceCode } from "../parts/source-code";
import { Ago, seconds } from "../parts/time-text";
import { ReportViewer } from "../reports/report-viewer";
import { useCan, useTeam } from "../shell/context";
import { Link } from "../shell/link";
import { Loaded } from "../shell/loaded";
import { useLive, useResource } from "../shell/resources";
import { callText } from "./cluster-text";
import { HistoryOfComputation } from "./computation-history";
import { EarlierRuns } from "./earlier-runs";
import { LazyLiveView } from "./lazy-live-view";

/** Compare the duration with the median of the earlier finished runs; empty if there are none. */
export function comparison(c: Pick<OneComputation, "state" | "duration" | "earlier">): string {
  const done = c.earlier
    .filter((e) => e.state === "finished")
    .map((e) => e.duration)
    .sort((a, b) => a - b);
  if (c.state !== "finished" || done.length === 0) return "";
  const median = (done[(done.length - 1) >> 1] + done[done.length >> 1]) / 2;
  if (median <= 0) return "";
  const change = Math.round((100 * (c.duration - median)) / median);
  return `${change === 0 ? "same duration as" : `${count(Math.abs(change))} % ${change > 0 ? "longer" : "shorter"} than`} the median of ${done.length === 1 ? "1 earlier run" : `${done.length} earlier runs`} · `;
}

/** The page of a computation: code, earlier runs and report. */
export function ComputationPage({ cluster, id }: { cluster: string; id: string }) {
  const { api, account, router } = useTeam();
  // Only at first: readers may close it, and go back to the default.
  const [hasMeasure] = useState("measure" in router.params);
  const canWrite = useCan("write");
  const path = `clusters/${encodeURIComponent(cluster)}/computations/${encodeURIComponent(id)}`;
  const found = useLive<OneComputation>(cluster, () => api.get(path), [cluster, id, account], 3000);
  return (
    <>
      <div class="crumbs wide" data-testid="page-computation">
        <Link to={[account, "clusters"]}>Clusters</Link> /{" "}
        <Link to={[account, "clusters", cluster]}>{found.value?.cluster_name || cluster}</Link> / <span>{id}</span>
        <div class="right">
          {found.value && found.value.state !== "running" && (
            <Link to={[account, "clusters", cluster, "computations", id, "what-if"]} class="btn sm">
              What if
            </Link>
          )}
          {canWrite && <ShareComputation path={path} />}
        </div>
      </div>
      <div class="wide headroom">
        <Loaded from={found} lines={3}>
          {(c) => (
            <>
              <div class="title">
                <StatePill state={c.state} />
                <h1>
                  <code>{callText(c)}</code>
                </h1>
                <span class="faint" data-testid="compared">
                  {comparison(c)}
                  {counted(c.n_tasks, "task")}
                  {c.n_submissions > 1 && (
                    <span title="Dask merges calls that are made while a computation runs. The code shown belongs to the first call.">
                      {" "}
                      from {count(c.n_submissions)} calls
                    </span>
                  )}{" "}
                  · {seconds(c.duration)} · <Ago at={c.start} /> · {c.user}
                </span>
              </div>
              <UsualDurationText usual={c.usual} />
              <div class="folds">
                <details data-testid="code">
                  <summary>
                    Code <span class="faint">{c.code_file}</span>
                  </summary>
                  {c.code ? (
                    <SourceCode code={c.code} hot={c.code_line} />
                  ) : (
                    <p class="callout">
                      No code recorded. Recording of code is off, or the recorder was started by a preload script.
                    </p>
                  )}
                </details>
                {c.earlier.length > 0 && (
                  <details data-testid="earlier" open={hasMeasure}>
                    <summary>{counted(c.earlier.length, "earlier run")} of this code</summary>
                    <HistoryOfComputation cluster={cluster} id={id} />
                    <EarlierRuns of={c} />
                  </details>
                )}
              </div>
            </>
          )}
        </Loaded>
      </div>
      {found.value?.state === "running" && (
        <div class="wide headroom">
          <LazyLiveView cluster={cluster} computation={id} detailed />
        </div>
      )}
      <ReportViewer
        key={id}
        address={api.url(`clusters/${encodeURIComponent(cluster)}/computations/${encodeURIComponent(id)}/document`)}
        live={found.value?.state === "running"}
        lost={found.value?.state === "lost"}
        tasks={found.value?.n_tasks ?? 0}
      />
    </>
  );
}

/** What the sentence is based on. */
export function howKnown({ runs, left }: UsualDuration): string {
  const from = `From ${counted(runs, "earlier run")} of this code`;
  return left
    ? `${from}. Time left: from those that took longer than this run so far, and later from the pace of its tasks`
    : from;
}

/** How long a running computation usually takes and what is left, in one sentence. Shows nothing without earlier runs. */
function UsualDurationText({ usual }: { usual: UsualDuration | null }) {
  if (!usual) return null;
  return (
    <p class="usual" title={howKnown(usual)} data-testid="usual">
      {usual.state === "slower" && <Pill state="warn">Slow</Pill>} {usual.sentence}
    </p>
  );
}

/** A button that makes a report of a computation after asking who can see it, and copies its link. */
function ShareComputation({ path }: { path: string }) {
  const { api } = useTeam();
  const share = async ({ visibility }: Record<string, string>) => {
    const report = await api.send<HostedReport>("POST", `${path}/share`, { visibility });
    copy(report.url, "Link copied");
    toast("Report added to Reports");
  };
  return (
    <EditDialog
      title="Share report"
      button={
        <>
          <Icon name="share" />
          Share report
        </>
      }
      label="Share report"
      submit="Share"
      save={share}
      testid="share"
    >
      <Audience />
    </EditDialog>
  );
}

/** Who can see the report; the account's preference comes first. */
function Audience() {
  const { api, account } = useTeam();
  const preferences = useResource<AccountPreferences>(() => api.get("preferences"), [account]);
  return (
    <Loaded from={preferences} lines={2}>
      {(p) => (
        <fieldset class="choices">
          <legend>Who can see it?</legend>
          <label class="check">
            <input type="radio" name="visibility" value="private" defaultChecked={p.visibility === "private"} /> Members
            of {account}
          </label>
          <label class="check">
            <input type="radio" name="visibility" value="public" defaultChecked={p.visibility === "public"} /> Anyone
            with the link
          </label>
          <small class="faint">
            The report contains code and error messages. It stays when the cluster is deleted.
          </small>
        </fieldset>
      )}
    </Loaded>
  );
}
