import type { Page } from "../api/server";
import type { Computation, Explanation, OneCluster, Prefix, Worker } from "../api/server.gen";
import { count, counted, dollars, nbytes, nbytesOf, percent } from "../model/format";
import { Empty, Panel } from "../widgets/basics";
import { DataTable, type ViewColumn } from "../widgets/table";
import { toast } from "../widgets/toast";
import { useLive, useMay, useTeam, useTitle } from "./context";
import { Act, Ago, ClusterPill, ComputationPill, isLive, Link, Loaded, Person, seconds } from "./parts";
import { Edit, tagsOf } from "./edit";
import { Field } from "./field";
import { Over } from "./history";
import { Viewing } from "./viewing";

/** A cluster: live while it runs, the same page when it is history. */
export function ClusterPage({ id, tab }: { id: string; tab: "summary" | "report" }) {
  const { account } = useTeam();
  return (
    <>
      <div class="crumbs wide">
        <Link to={[account, "clusters"]}>Clusters</Link> / <span class="cut" title={id}>{id}</span>
        <nav class="tabs" aria-label="Parts of the cluster">
          <Link to={[account, "clusters", id]} aria-current={tab === "summary" ? "page" : undefined} testid="tab-summary">Summary</Link>
          <Link to={[account, "clusters", id, "report"]} aria-current={tab === "report" ? "page" : undefined} testid="tab-report">Report of everything</Link>
        </nav>
      </div>
      {tab === "report" ? <Everything id={id} /> : <Summary id={id} />}
    </>
  );
}

/** The report of all it did. */
function Everything({ id }: { id: string }) {
  const { account, api } = useTeam();
  const cluster = useLive<OneCluster>(id, () => api.get(`clusters/${encodeURIComponent(id)}`), [id, account], 5000);
  return <Viewing prefix={`${api.root}/${encodeURIComponent(account)}/clusters/${encodeURIComponent(id)}/view`} live={cluster.value !== null && isLive(cluster.value)} />;
}

function Summary({ id }: { id: string }) {
  const { api, account } = useTeam();
  const path = `clusters/${encodeURIComponent(id)}`;
  // Both at once: a sentence and numbers of different moments would contradict each other.
  const cluster = useLive<OneCluster & { why: Explanation | null }>(id, async () => {
    const [one, why] = await Promise.all([api.get<OneCluster>(path), api.get<Explanation>(`${path}/explain`).catch(() => null)]);
    return { ...one, why };
  }, [id, account], 1000);
  useTitle(cluster.value ? cluster.value.name || id : undefined);
  const computations = useLive<Page<Computation>>(id, () => api.get("computations", { cluster_id: id, limit: 200 }), [id, account], 2000);
  return (
    <main class="wide" data-testid="page-cluster">
      <Loaded from={cluster} lines={10}>
        {(c) => (
          <>
            <div class="title">
              <ClusterPill cluster={c} />
              <h1>{c.name || c.id}</h1>
              {c.tags.map((t) => <span class="tag" key={t}>{t}</span>)}
              <div class="acts"><EditCluster cluster={c} done={cluster.reload} /><Close cluster={c} /></div>
            </div>
            {c.why && (
              <p class="answer" data-testid="why">
                <b>{c.why.answer}</b> <span>{busy(c) ? "" : c.why.advice[0] ?? ""} {isLive(c) ? "" : outcome(c, computations.value?.items ?? [])}</span>
              </p>
            )}
            <div class="stack">
              <Numbers c={c} />
              {c.why && c.state !== "finished" && c.why.evidence.length > 0 && (
                <Panel title={isLive(c) ? "Why it is still running" : "What is known of its end"} testid="evidence">
                  <ul class="plain">
                    {c.why.evidence.map((line) => <li key={line}>{line}</li>)}
                    {c.why.advice.map((line) => <li key={line}><b>{line}</b></li>)}
                  </ul>
                </Panel>
              )}
              <Over id={id} />
              <Panel testid="computations">
                <Loaded from={computations}>{(page) => <Computations items={page.items} of={c.n_computations} cluster={id} />}</Loaded>
              </Panel>
              <div class="cols">
                <div class="c7"><Panel><PrefixTable prefixes={c.prefixes} /></Panel></div>
                <div class="c5"><Facts c={c} /></div>
              </div>
              <Panel testid="workers"><WorkerTable workers={c.worker_list} live={isLive(c)} /></Panel>
            </div>
          </>
        )}
      </Loaded>
    </main>
  );
}

/** Whether it has work to do: then advice for one that stands idle is no answer. */
function busy(c: OneCluster): boolean {
  return isLive(c) && c.tasks_processing + c.tasks_queued > 0;
}

/** How what it did went, for one that is over. A task that was tried again is executed more than once. */
export function outcome(c: Pick<OneCluster, "n_tasks" | "n_errors" | "n_exceptions">, computations: readonly Pick<Computation, "state">[]): string {
  if (c.n_tasks === 0) return "It ran no task.";
  const cut = computations.filter((one) => one.state === "lost").length;
  const unfinished = cut > 0 ? ` ${counted(cut, "computation")} did not finish.` : "";
  if (c.n_exceptions === 0) return `It ran ${counted(c.n_tasks, "task")}, and none failed.${unfinished}`;
  const failed = c.n_errors > 0 ? `${counted(c.n_errors, "task")} failed` : "No task failed for good";
  return `${failed}: ${count(c.n_exceptions)} of ${counted(c.n_tasks, "execution")} raised an exception.${unfinished}`;
}

/** What became of those whose executions raised exceptions. */
function failures(c: OneCluster): string {
  if (c.n_exceptions === 0) return "no task failed";
  return c.n_errors > 0 ? `${counted(c.n_errors, "task")} failed for good` : "no task failed for good";
}

function EditCluster({ cluster: c, done }: { cluster: OneCluster; done: () => void }) {
  const { api } = useTeam();
  const may = useMay("write");
  if (!may) return null;
  const save = ({ name, tags }: Record<string, string>) => api.send("PATCH", `clusters/${encodeURIComponent(c.id)}`, { name, tags: tagsOf(tags ?? "") }).then(done);
  return (
    <Edit title="Name and tags" button="Edit" label="Edit name and tags" save={save} testid="edit-cluster">
      <Field label="Name" name="name" value={c.name} optional />
      <Field label="Tags" name="tags" value={c.tags.join(", ")} hint="Words between commas; prices may go by them" optional />
    </Edit>
  );
}

function Close({ cluster: c }: { cluster: OneCluster }) {
  const { api } = useTeam();
  const may = useMay("write");
  if (!may || !isLive(c)) return null;
  const run = async () => {
    if (!confirm(`Shut down ${c.name || c.id}? Its workers end and what is in memory is lost.`)) return;
    await api.send("POST", `clusters/${encodeURIComponent(c.id)}/close`);
    toast("The cluster was asked to shut down");
  };
  return <Act run={run} testid="close-cluster">Close cluster</Act>;
}

function Numbers({ c }: { c: OneCluster }) {
  const { account } = useTeam();
  const live = isLive(c);
  const inReport = (view: string, text: string) => <Link to={[account, "clusters", c.id, "report"]} hash={view}>{text}</Link>;
  const [used, limit] = nbytesOf(c.memory, c.memory_limit);
  const numbers: [string, string, preact.ComponentChildren, string][] = [
    ["age", live ? "Age" : "Lifetime", seconds(c.duration), live ? "and counting" : c.reason],
    ["workers", "Workers", live ? <>{count(c.workers)} <small>{counted(c.threads, "thread")}</small></> : <>{count(c.peak_workers)} <small>{counted(c.peak_threads, "thread")}</small></>, live ? `${count(c.worker_list.length)} in all` : `at most; ${count(c.worker_list.length)} in all`],
    ["tasks", "Tasks", inReport("groups", count(c.n_tasks)), live ? (c.tasks_unrunnable > 0 && !busy(c) ? `${count(c.tasks_unrunnable)} cannot run` : `${count(c.tasks_processing)} running, ${count(c.tasks_queued)} queued`) : counted(c.n_computations, "computation")],
    ["errors", "Exceptions", inReport("errors", count(c.n_exceptions)), failures(c)],
    ["memory", "Memory", live && c.memory_limit > 0 ? <>{used} <small>of {limit}</small></> : c.memory_limit > 0 ? nbytes(c.memory_limit) : live && c.workers === 0 ? nbytes(0) : "no limit", live ? (c.workers === 0 ? "no worker now" : "in use now") : "most its workers could use"],
    ["busy", "Compute time", inReport("overview", seconds(c.compute_seconds)), c.thread_seconds > 0 ? `${percent(Math.min(1, c.compute_seconds / c.thread_seconds))} of thread time` : "no threads"],
    ["cost", "Est. cost", <Link to={[account, "usage"]} params={{ by: "cluster" }}>{dollars(c.cost.total)}</Link>, live ? `${dollars(c.cost.per_hour)} an hour; ${dollars(c.cost.idle)} idle` : `${dollars(c.cost.idle)} of it idle`],
  ];
  return (
    <dl class="panel metrics eq" title={c.cost.formula}>
      {numbers.map(([id, label, value, note]) => (
        <div class="metric" key={id}>
          <dt>{label}</dt>
          <dd class="v" data-testid={`metric-${id}`}>{value}</dd>
          <dd class="s" title={note}>{note}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The line of a computation's code that made the call, else its first. */
export function callOf(c: Computation): string {
  const lines = c.code.split("\n");
  return (lines[c.code_line] ?? lines.find((line) => line.trim()) ?? "").trim() || "code not recorded";
}

function Computations({ items, of, cluster }: { items: readonly Computation[]; of: number; cluster: string }) {
  const { account } = useTeam();
  const columns: ViewColumn<Computation>[] = [
    { id: "code", head: "Computation", value: callOf, cell: (c) => <Link class="name mono cut" to={[account, "clusters", cluster, "computations", c.id]} title={c.code}>{callOf(c)}</Link> },
    { id: "state", head: "State", value: (c) => c.state, cell: (c) => <ComputationPill state={c.state} /> },
    { id: "tasks", head: "Tasks", num: true, value: (c) => c.n_tasks, cell: (c) => count(c.n_tasks) },
    { id: "errors", head: "Errors", num: true, value: (c) => c.n_errors, cell: (c) => <span class={c.n_errors ? "bad" : "zero"}>{count(c.n_errors)}</span> },
    { id: "duration", head: "Duration", num: true, value: (c) => c.duration, cell: (c) => seconds(c.duration) },
    { id: "compute", head: "Compute", num: true, value: (c) => c.durations.compute ?? 0, cell: (c) => seconds(c.durations.compute ?? 0) },
    { id: "transfer", head: "Transfer", num: true, value: (c) => c.durations.transfer ?? 0, cell: (c) => seconds(c.durations.transfer ?? 0) },
    { id: "started", head: "Started", num: true, value: (c) => c.start ?? "", cell: (c) => <Ago at={c.start} /> },
  ];
  return <DataTable label="Computations" name="computations" title="Computations" rows={items} of={of} columns={columns} rowKey={(c) => c.id} rowTestid="computation-row" sort={{ id: "started", down: true }} empty={<Empty title="Nothing was computed yet" />} />;
}

export function PrefixTable({ prefixes }: { prefixes: readonly Prefix[] }) {
  const columns: ViewColumn<Prefix>[] = [
    { id: "prefix", head: "Prefix", value: (p) => p.prefix, cell: (p) => <span class="mono cut" title={p.prefix}>{p.prefix}</span> },
    { id: "tasks", head: "Tasks", num: true, value: (p) => p.tasks, cell: (p) => count(p.tasks) },
    { id: "errors", head: "Errors", num: true, value: (p) => p.errors, cell: (p) => <span class={p.errors ? "bad" : "zero"}>{count(p.errors)}</span> },
    ...(prefixes.some((p) => p.retried > 0) ? [{ id: "retried", head: "Retried", num: true, value: (p: Prefix) => p.retried }] : []),
    ...(prefixes.some((p) => p.killed > 0) ? [{ id: "killed", head: "Killed", num: true, value: (p: Prefix) => p.killed }] : []),
    { id: "compute", head: "Compute", num: true, value: (p) => p.compute, cell: (p) => seconds(p.compute) },
    { id: "mean", head: "Mean", num: true, value: (p) => p.mean, cell: (p) => seconds(p.mean) },
    { id: "transfer", head: "Transfer", num: true, value: (p) => p.transfer, cell: (p) => seconds(p.transfer) },
    { id: "nbytes", head: "Results", num: true, value: (p) => p.nbytes, cell: (p) => nbytes(p.nbytes) },
  ];
  return <DataTable label="Prefixes" name="prefixes" title="What takes the time" rows={prefixes} columns={columns} rowKey={(p) => p.prefix} sort={{ id: "compute", down: true }} empty="No task has finished yet" />;
}

/** Why a worker left; of one whose cluster was lost nobody knows whether it did. */
function endOf(w: Worker, live: boolean): string {
  return w.verdict || (w.end ? "left" : live ? "here" : "not known");
}

function WorkerTable({ workers, live }: { workers: readonly Worker[]; live: boolean }) {
  const columns: ViewColumn<Worker>[] = [
    { id: "worker", head: "Worker", value: (w) => w.name || w.worker, cell: (w) => <span class="cut" title={w.worker}>{w.name || w.worker}</span> },
    { id: "state", head: "Ended", value: (w) => endOf(w, live), cell: (w) => <span class={/kill|vanished|lost/.test(w.verdict) ? "bad" : ""} >{endOf(w, live)}</span> },
    ...(workers.some((w) => w.evidence) ? [{ id: "why", head: "What is known of it", value: (w: Worker) => w.evidence }] : []),
    { id: "host", head: "Host", value: (w) => w.host },
    { id: "threads", head: "Threads", num: true, value: (w) => w.nthreads },
    { id: "memory", head: "Memory", num: true, value: (w) => w.memory, cell: (w) => (w.memory ? nbytes(w.memory) : <span class="faint">not recorded</span>) },
    { id: "limit", head: "Limit", num: true, value: (w) => w.memory_limit, cell: (w) => (w.memory_limit ? nbytes(w.memory_limit) : "none") },
    { id: "cpu", head: "CPU", num: true, value: (w) => w.cpu_percent, cell: (w) => percent(w.cpu_percent / 100) },
    { id: "lost", head: "Lost results", num: true, value: (w) => w.lost_results, cell: (w) => <span class={w.lost_results ? "bad" : "zero"}>{count(w.lost_results)}</span> },
    { id: "start", head: "Joined", num: true, value: (w) => w.start ?? "", cell: (w) => <Ago at={w.start} /> },
    { id: "end", head: "Left", num: true, value: (w) => w.end ?? "", cell: (w) => (w.end ? <Ago at={w.end} /> : "") },
  ];
  return <DataTable label="Workers" name="workers" title="Workers" rows={workers} columns={columns} rowKey={(w) => w.server_id} sort={{ id: "start", down: true }} empty="No worker has joined yet" />;
}

function Facts({ c }: { c: OneCluster }) {
  const connected = c.clients.filter((client) => !client.disconnected && (client.client !== "fire-and-forget" || client.held_keys > 0));
  return (
    <Panel title="Who and what">
      <dl class="kv">
        <dt>Owner</dt><dd><Person name={c.user} /></dd>
        <dt>Host</dt><dd>{c.host || "not recorded"}</dd>
        <dt>Scheduler</dt><dd class="mono">{c.address || "not recorded"}</dd>
        <dt>Started</dt><dd><Ago at={c.start} /></dd>
        <dt>Last seen</dt><dd><Ago at={c.last_seen} /></dd>
        <dt>Last task</dt><dd><Ago at={c.last_work} never="none yet" /></dd>
        <dt>Idle-timeout</dt><dd>{c.idle_timeout > 0 ? seconds(c.idle_timeout) : "not set"}</dd>
        {connected.map((client) => (
          <>
            <dt key={client.client}>Client</dt>
            <dd title={client.client}>{isLive(c) ? "holds" : "held"} {counted(client.held_keys, "result")}, {client.held_nbytes >= 0 ? nbytes(client.held_nbytes) : "size not added up"}; seen <Ago at={client.last_seen} /></dd>
          </>
        ))}
        {Object.entries(c.versions).filter(([name]) => ["python", "dask", "distributed"].includes(name)).map(([name, version]) => (
          <>
            <dt key={name}>{name}</dt><dd>{version}</dd>
          </>
        ))}
        {Object.entries(c.dropped).map(([table, rows]) => (
          <>
            <dt key={table}>Dropped</dt><dd class="bad">{count(rows)} rows of {table}</dd>
          </>
        ))}
      </dl>
      <div class="pfoot"><span>{c.cost.formula}</span></div>
    </Panel>
  );
}
