import type { Answer } from "../../api/schema.gen";
import type {
  AccountPreferences,
  Computation,
  HostedReport,
  OneComputation,
  RecentRun,
  UsualDuration,
} from "../../api/server.gen";
import { count, counted } from "../../model/text/format";
import type { RunHistory } from "../../viewer/views";
import { Panel } from "../../widgets/basics";
import { copy } from "../../widgets/clipboard";
import { Icon, Pill, StatePill } from "../../widgets/icon";
import { toast } from "../../widgets/toast";
import { runList } from "../compare/compare-runs";
import { EditDialog } from "../parts/edit-dialog";
import { SourceCode } from "../parts/source-code";
import { Ago, seconds } from "../parts/time-text";
import { useCan, useTeam } from "../shell/context";
import { Link } from "../shell/link";
import { Loaded } from "../shell/loaded";
import { useLive, useResource } from "../shell/resources";
import { progressHeadline, useProgress } from "./cluster-progress";
import { callText, orderOf } from "./cluster-text";
import { HistoryOfComputation } from "./computation-history";
import { EarlierRuns } from "./earlier-runs";
import { LazyLiveView, RunFrame } from "./run-frame";

/** The page of a computation: its document with code and earlier runs, and the tasks that run now while it runs. */
export function ComputationPage({ cluster, id }: { cluster: string; id: string }) {
  const { api, account, router } = useTeam();
  const path = `clusters/${encodeURIComponent(cluster)}/computations/${encodeURIComponent(id)}`;
  const found = useLive<OneComputation>(cluster, () => api.get(path), [cluster, id, account], 3000);
  const c = found.value;
  if (!c)
    return (
      <main class="wide" data-testid="page-computation">
        <Loaded from={found} lines={10}>
          {() => null}
        </Loaded>
      </main>
    );
  const live = c.state === "running" && <RunningComputation c={c} reload={found.reload} />;
  return (
    <div data-testid="page-computation">
      <RunFrame
        head={<ComputationHead c={c} cluster={cluster} path={path} />}
        live={live || null}
        below={<CodeAndEarlierRuns c={c} cluster={cluster} />}
        order={orderOf(c)}
        history={historyOf(c, (runs) => router.href([account, "compare"], runs))}
        answer={c.state === "lost" ? LOST : null}
        address={api.url(`${path}/document`)}
        tasks={c.n_tasks}
      />
    </div>
  );
}

/** The overview of a computation while it runs. */
function RunningComputation({ c, reload }: { c: OneComputation; reload: () => void }) {
  const progress = useProgress(c.cluster_id);
  const failed = c.n_errors > 0 ? `${counted(c.n_errors, "task")} failed.` : "No task failed.";
  return (
    <div data-testid="view-overview">
      <p class="answer" data-testid="answer">
        <b>{progressHeadline(progress.value, c.id) || `Running for ${seconds(c.duration)}.`}</b> <span>{failed}</span>
      </p>
      <LazyLiveView cluster={c.cluster_id} computation={c} order={orderOf(c)} onEnd={reload} />
    </div>
  );
}

/** The earlier runs of the computation's code, and itself. */
function historyOf(c: OneComputation, compare: (runs: { before: string; after: string }) => string): RunHistory | null {
  const dot = (run: Computation): RecentRun => ({
    id: runList([run]),
    start: run.start,
    duration: run.duration,
    state: run.state,
    lost_workers: 0,
  });
  const recent = [...c.earlier.map(dot).reverse(), dot(c)];
  const after = runList([c]);
  return { run: dot(c), recent, compare: (before) => compare({ before, after }) };
}

/** The document ends with the last row, and cannot know that no more will come. */
const LOST: Answer = {
  state: "lost",
  headline: "Lost: the server no longer hears from its cluster.",
  reason: "The scheduler was killed, or it cannot reach this server. Everything below had arrived before.",
};

function ComputationHead({ c, cluster, path }: { c: OneComputation; cluster: string; path: string }) {
  const { account } = useTeam();
  const canWrite = useCan("write");
  return (
    <>
      <div class="crumbs">
        <Link to={[account, "runs"]}>Runs</Link> /{" "}
        <Link to={[account, "clusters", cluster]}>{c.cluster_name || "unnamed"}</Link> / <Ago at={c.start} />
      </div>
      <div class="title">
        <StatePill state={c.state} />
        <h1 title={c.id}>
          <code>{callText(c)}</code>
        </h1>
        <span class="faint" data-testid="compared">
          {counted(c.n_tasks, "task")}
          {c.n_submissions > 1 && (
            <span title="Dask merges calls that are made while a computation runs. The code shown belongs to the first call.">
              {" "}
              from {count(c.n_submissions)} calls
            </span>
          )}{" "}
          · {seconds(c.duration)} · {c.user}
        </span>
        <div class="acts">
          {c.state !== "running" && (
            <Link to={[account, "clusters", cluster, "computations", c.id, "what-if"]} class="btn sm">
              What if
            </Link>
          )}
          {canWrite && <ShareComputation path={path} />}
        </div>
      </div>
      <UsualDurationText usual={c.usual} />
    </>
  );
}

function CodeAndEarlierRuns({ c, cluster }: { c: OneComputation; cluster: string }) {
  return (
    <div class="stack mt">
      {c.earlier.length > 0 && (
        <Panel title={`${counted(c.earlier.length, "earlier run")} of this code`} testid="earlier">
          <HistoryOfComputation cluster={cluster} id={c.id} />
          <EarlierRuns of={c} />
        </Panel>
      )}
      <Panel title="Code" note={c.code_file} testid="code">
        {c.code ? (
          <SourceCode code={c.code} hot={c.code_line} />
        ) : (
          <p class="callout">
            No code recorded. Recording of code is off, or the recorder was started by a preload script.
          </p>
        )}
      </Panel>
    </div>
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
