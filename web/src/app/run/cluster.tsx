import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Answer } from "../../api/schema.gen";
import type { Page } from "../../api/server";
import type { Computation, Explanation, OneCluster } from "../../api/server.gen";
import { capital } from "../../model/activity";
import { isLost } from "../../model/model";
import { counted } from "../../model/text/format";
import type { RunHistory } from "../../viewer/views";
import { Panel } from "../../widgets/basics";
import { OutcomePill } from "../../widgets/icon";
import { toast } from "../../widgets/toast";
import { ActionButton } from "../parts/action-button";
import { EditDialog, parseTags } from "../parts/edit-dialog";
import { Field } from "../parts/field";
import { ClusterPill, isLive } from "../parts/pills";
import { Ago } from "../parts/time-text";
import { useCan, useTeam, useTitle } from "../shell/context";
import { Link } from "../shell/link";
import { Loaded } from "../shell/loaded";
import { useLive } from "../shell/resources";
import { ClusterDetails } from "./cluster-details";
import { ClusterMetrics } from "./cluster-metrics";
import { ClusterProgress, progressHeadline, useProgress } from "./cluster-progress";
import { ClusterRunning } from "./cluster-running";
import { failures, isBusy, orderOf, type RunTotals, totalsOf, unfinishedTasks } from "./cluster-text";
import { ComputationTable } from "./computation-table";
import { LazyLiveView, RunFrame } from "./run-frame";

type Explained = OneCluster & { why: Explanation | null };

/** The page of a cluster. It follows the cluster while it runs and stays the same page afterwards. */
export function ClusterPage({ id }: { id: string }) {
  const { api, account, router } = useTeam();
  const path = `clusters/${encodeURIComponent(id)}`;
  // Load both together, so that the sentence and the numbers are from the same moment.
  const cluster = useLive<Explained>(
    id,
    async () => {
      const [one, why] = await Promise.all([
        api.get<OneCluster>(path),
        api.get<Explanation>(`${path}/explain`).catch(() => null),
      ]);
      return { ...one, why };
    },
    [id, account],
    1000,
  );
  const computations = useLive<Page<Computation>>(
    id,
    () => api.get("computations", { cluster_id: id, limit: 200 }),
    [id, account],
    2000,
  );
  const c = cluster.value;
  useTitle(c ? c.name || id : undefined);
  if (!c)
    return (
      <main class="wide" data-testid="page-cluster">
        <Loaded from={cluster} lines={10}>
          {() => null}
        </Loaded>
      </main>
    );
  const live = isLive(c);
  const below = (
    <div class="stack">
      <Panel testid="computations">
        <Loaded from={computations}>
          {(page) => <ComputationTable items={page.items} of={c.n_computations} cluster={id} />}
        </Loaded>
      </Panel>
      <ClusterDetails c={c} />
    </div>
  );
  return (
    <div data-testid="page-cluster">
      <RunFrame
        head={<ClusterHead c={c} reload={cluster.reload} />}
        live={live ? <RunningCluster c={c} below={below} reload={cluster.reload} /> : null}
        below={below}
        order={orderOf(c)}
        history={historyOf(c, (before) => router.href([account, "compare"], { before, after: encodeURIComponent(id) }))}
        answer={c.state === "lost" && c.why ? lostAnswer(c.why, c.n_tasks) : null}
        address={api.url(`${path}/document`)}
        tasks={c.n_tasks}
      />
    </div>
  );
}

/** The other runs of the cluster's name. */
function historyOf(c: OneCluster, compare: (other: string) => string): RunHistory | null {
  const run = c.recent.find((one) => one.id === c.id);
  return run ? { run, recent: c.recent, compare: (other) => compare(encodeURIComponent(other)) } : null;
}

/** The headline of a cluster that the server no longer hears from. */
function lostAnswer({ answer, advice }: Explanation, tasks: number): Answer {
  return { state: "lost", headline: answer, reason: `${counted(tasks, "task run")} had arrived. ${advice.join(" ")}` };
}

function ClusterHead({ c, reload }: { c: Explained; reload: () => void }) {
  const { account } = useTeam();
  const live = isLive(c);
  const workers = live ? c.workers : c.peak_workers;
  const threads = live ? c.threads : c.peak_threads;
  return (
    <>
      <div class="crumbs">
        <Link to={[account, "runs"]}>Runs</Link> / <span class="cut">{c.name || "unnamed"}</span> / <Ago at={c.start} />
      </div>
      <div class="title">
        {live ? (
          <ClusterPill cluster={c} />
        ) : (
          <OutcomePill state={c.state} lost={c.worker_list.filter(isLost).length} />
        )}
        <h1 title={c.id}>{c.name || c.id}</h1>
        <span class="faint" data-testid="about">
          {c.user} · {counted(workers, "worker")}, {counted(threads, "thread")}
          {c.why && !live && c.state !== "lost" && ` · ${c.why.answer.replace(/\.$/, "")}`}
        </span>
        {c.tags.map((t) => (
          <span class="tag" key={t}>
            {t}
          </span>
        ))}
        <div class="acts">
          <EditCluster cluster={c} done={reload} />
          <CloseCluster cluster={c} />
        </div>
      </div>
      <MissingRows rows={c.missing_rows} />
    </>
  );
}

/** The overview of a cluster while it runs. */
function RunningCluster({ c, below, reload }: { c: Explained; below: ComponentChildren; reload: () => void }) {
  const progress = useProgress(c.id);
  const [totals, setTotals] = useState<RunTotals | null>(null);
  const headline = isBusy(c) ? progressHeadline(progress.value) : "";
  return (
    <div data-testid="view-overview">
      {c.why && (
        <p class="answer" data-testid="answer">
          <b>{headline || c.why.answer}</b>{" "}
          <span>{headline ? `${capital(failures(c))}.` : isBusy(c) ? "" : c.why.advice.join(" ")}</span>
        </p>
      )}
      <div class="stack">
        <ClusterProgress id={c.id} progress={progress} />
        <ClusterMetrics c={c} totals={totals ?? totalsOf(c)} progress={progress.value} />
        <LazyLiveView cluster={c.id} order={orderOf(c)} onEnd={reload} onTotals={setTotals} />
        <ClusterRunning id={c.id} tasks={unfinishedTasks(progress.value)?.running ?? null} />
      </div>
      {below}
    </div>
  );
}

/** Says that the server has lost rows of a cluster, and what to do: without it, the pictures below look as if nothing ran. */
export function MissingRows({ rows }: { rows: number }) {
  if (rows === 0) return null;
  return (
    <p class="bad" data-testid="missing-rows">
      {counted(rows, "row")} of this cluster {rows === 1 ? "is" : "are"} missing: the server has lost files. Restore
      them from a backup, or run <code>daskscope doctor</code>.
    </p>
  );
}

/** Whether the user can change a cluster: the member who recorded it and owners can. */
function useCanChange(c: OneCluster): boolean {
  const { me } = useTeam();
  const canAdmin = useCan("admin");
  return useCan("write") && (canAdmin || c.user === me.user);
}

function EditCluster({ cluster: c, done }: { cluster: OneCluster; done: () => void }) {
  const { api } = useTeam();
  const canChange = useCanChange(c);
  if (!canChange) return null;
  const save = ({ name, tags }: Record<string, string>) =>
    api.send("PATCH", `clusters/${encodeURIComponent(c.id)}`, { name, tags: parseTags(tags ?? "") }).then(done);
  return (
    <EditDialog title="Name and tags" button="Edit" label="Edit name and tags" save={save} testid="edit-cluster">
      <Field label="Name" name="name" value={c.name} optional />
      <Field
        label="Tags"
        name="tags"
        value={c.tags.join(", ")}
        hint="Separate tags with commas. Prices can depend on tags."
        optional
      />
    </EditDialog>
  );
}

function CloseCluster({ cluster: c }: { cluster: OneCluster }) {
  const { api } = useTeam();
  const canChange = useCanChange(c);
  if (!canChange || !isLive(c)) return null;
  const run = async () => {
    if (!confirm(`Shut down ${c.name || c.id}? Its workers stop and results in memory are lost.`)) return;
    await api.send("POST", `clusters/${encodeURIComponent(c.id)}/close`);
    toast("Shutdown requested");
  };
  return (
    <ActionButton run={run} testid="close-cluster">
      Close cluster
    </ActionButton>
  );
}
