import type { Page } from "../../api/server";
import type { Computation, Explanation, OneCluster } from "../../api/server.gen";
import { counted } from "../../model/text/format";
import { Panel } from "../../widgets/basics";
import { toast } from "../../widgets/toast";
import { ActionButton } from "../parts/action-button";
import { EditDialog, parseTags } from "../parts/edit-dialog";
import { Field } from "../parts/field";
import { ClusterPill, isLive } from "../parts/pills";
import { ReportViewer } from "../reports/report-viewer";
import { useCan, useTeam, useTitle } from "../shell/context";
import { Link } from "../shell/link";
import { Loaded } from "../shell/loaded";
import { useLive } from "../shell/resources";
import { ClusterDetails } from "./cluster-details";
import { ClusterMetrics } from "./cluster-metrics";
import { ClusterPictures } from "./cluster-pictures";
import { ClusterProgress } from "./cluster-progress";
import { ClusterRunning } from "./cluster-running";
import { ClusterPrefixTable, ComputationTable, WorkerTable } from "./cluster-tables";
import { isBusy, outcome } from "./cluster-text";
import { LazyLiveView } from "./lazy-live-view";
import { WorkerHistory } from "./worker-history";

export const CLUSTER_TABS = ["summary", "live", "report"] as const;

/** The page of a cluster. It updates while the cluster runs and stays the same page afterwards. */
export function ClusterPage({ id, tab }: { id: string; tab: (typeof CLUSTER_TABS)[number] }) {
  const { account } = useTeam();
  return (
    <>
      <div class="crumbs wide">
        <Link to={[account, "clusters"]}>Clusters</Link> /{" "}
        <span class="cut" title={id}>
          {id}
        </span>
        <nav class="tabs" aria-label="Cluster views">
          <Link
            to={[account, "clusters", id]}
            aria-current={tab === "summary" ? "page" : undefined}
            testid="tab-summary"
          >
            Summary
          </Link>
          <Link
            to={[account, "clusters", id, "live"]}
            aria-current={tab === "live" ? "page" : undefined}
            testid="tab-live"
          >
            Live
          </Link>
          <Link
            to={[account, "clusters", id, "report"]}
            aria-current={tab === "report" ? "page" : undefined}
            testid="tab-report"
          >
            Full report
          </Link>
        </nav>
      </div>
      {tab === "report" && <FullReport id={id} />}
      {tab === "live" && <Live id={id} />}
      {tab === "summary" && <Summary id={id} />}
    </>
  );
}

/** The cluster as it runs. */
function Live({ id }: { id: string }) {
  useTitle(`Live · ${id}`);
  return (
    <main class="wide" data-testid="page-live">
      <LazyLiveView cluster={id} detailed />
    </main>
  );
}

/** The report of the whole run. */
function FullReport({ id }: { id: string }) {
  const { account, api } = useTeam();
  const cluster = useLive<OneCluster>(id, () => api.get(`clusters/${encodeURIComponent(id)}`), [id, account], 5000);
  return (
    <ReportViewer
      address={api.url(`clusters/${encodeURIComponent(id)}/document`)}
      live={cluster.value !== null && isLive(cluster.value)}
      lost={cluster.value?.state === "lost"}
      tasks={cluster.value?.n_tasks ?? 0}
    />
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

function Summary({ id }: { id: string }) {
  const { api, account } = useTeam();
  const path = `clusters/${encodeURIComponent(id)}`;
  // Load both together, so that the sentence and the numbers are from the same moment.
  const cluster = useLive<OneCluster & { why: Explanation | null }>(
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
  useTitle(cluster.value ? cluster.value.name || id : undefined);
  const computations = useLive<Page<Computation>>(
    id,
    () => api.get("computations", { cluster_id: id, limit: 200 }),
    [id, account],
    2000,
  );
  return (
    <main class="wide" data-testid="page-cluster">
      <Loaded from={cluster} lines={10}>
        {(c) => (
          <>
            <div class="title">
              <ClusterPill cluster={c} />
              <h1>{c.name || c.id}</h1>
              {c.tags.map((t) => (
                <span class="tag" key={t}>
                  {t}
                </span>
              ))}
              <div class="acts">
                <EditCluster cluster={c} done={cluster.reload} />
                <CloseCluster cluster={c} />
              </div>
            </div>
            {c.why && (
              <p class="answer" data-testid="why">
                <b>{c.why.answer}</b>{" "}
                <span>
                  {isBusy(c) ? "" : (c.why.advice[0] ?? "")}{" "}
                  {isLive(c) ? "" : outcome(c, computations.value?.items ?? [])}
                </span>
              </p>
            )}
            <MissingRows rows={c.missing_rows} />
            <div class="stack">
              {isLive(c) && <ClusterProgress id={id} />}
              <ClusterMetrics c={c} />
              {isLive(c) && <LazyLiveView cluster={id} />}
              {isLive(c) && <ClusterRunning id={id} />}
              {c.why && (isLive(c) || c.state === "lost") && c.why.evidence.length > 0 && (
                <Panel title={isLive(c) ? "Why it is running" : "How it ended"} testid="evidence">
                  <ul class="plain">
                    {c.why.evidence.map((line) => (
                      <li key={line}>{line}</li>
                    ))}
                    {c.why.advice.map((line) => (
                      <li key={line}>
                        <b>{line}</b>
                      </li>
                    ))}
                  </ul>
                </Panel>
              )}
              {!isLive(c) && <ClusterPictures c={c} />}
              <WorkerHistory id={id} />
              <Panel testid="computations">
                <Loaded from={computations}>
                  {(page) => <ComputationTable items={page.items} of={c.n_computations} cluster={id} />}
                </Loaded>
              </Panel>
              <div class="cols">
                <div class="c7">
                  <Panel>
                    <ClusterPrefixTable prefixes={c.prefixes} />
                  </Panel>
                </div>
                <div class="c5">
                  <ClusterDetails c={c} />
                </div>
              </div>
              <Panel testid="workers">
                <WorkerTable workers={c.worker_list} live={isLive(c)} />
              </Panel>
            </div>
          </>
        )}
      </Loaded>
    </main>
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
