import type { Computation, Prefix, Worker } from "../../api/server.gen";
import { isLost, verdictText } from "../../model/model";
import { count, nbytes, percent } from "../../model/text/format";
import { Empty } from "../../widgets/basics";
import { StatePill } from "../../widgets/icon";
import { DataTable } from "../../widgets/table/table";
import type { ViewColumn } from "../../widgets/table/table-rows";
import { Ago, seconds, secondsOrDash } from "../parts/time-text";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";
import { callText } from "./cluster-text";

export function ComputationTable({
  items,
  of,
  cluster,
}: {
  items: readonly Computation[];
  of: number;
  cluster: string;
}) {
  const { account } = useTeam();
  const columns: ViewColumn<Computation>[] = [
    {
      id: "code",
      head: "Computation",
      value: callText,
      cell: (c) => (
        <Link class="name mono cut" to={[account, "clusters", cluster, "computations", c.id]} title={c.code}>
          {callText(c)}
        </Link>
      ),
    },
    { id: "state", head: "State", value: (c) => c.state, cell: (c) => <StatePill state={c.state} /> },
    { id: "tasks", head: "Tasks", num: true, value: (c) => c.n_tasks, cell: (c) => count(c.n_tasks) },
    {
      id: "errors",
      head: "Errors",
      num: true,
      value: (c) => c.n_errors,
      cell: (c) => <span class={c.n_errors ? "bad" : "zero"}>{count(c.n_errors)}</span>,
    },
    { id: "duration", head: "Duration", num: true, value: (c) => c.duration, cell: (c) => seconds(c.duration) },
    {
      id: "compute",
      head: "Compute",
      num: true,
      value: (c) => c.durations.compute ?? 0,
      cell: (c) => secondsOrDash(c.durations.compute ?? 0),
    },
    {
      id: "transfer",
      head: "Transfer",
      num: true,
      value: (c) => c.durations.transfer ?? 0,
      cell: (c) => secondsOrDash(c.durations.transfer ?? 0),
    },
    { id: "started", head: "Started", num: true, value: (c) => c.start ?? "", cell: (c) => <Ago at={c.start} /> },
  ];
  return (
    <DataTable
      label="Computations"
      name="computations"
      title="Computations"
      rows={items}
      of={of}
      columns={columns}
      rowKey={(c) => c.id}
      rowTestid="computation-row"
      sort={{ id: "started", down: true }}
      empty={<Empty title="No computations yet" />}
    />
  );
}

export function ClusterPrefixTable({ prefixes }: { prefixes: readonly Prefix[] }) {
  const columns: ViewColumn<Prefix>[] = [
    {
      id: "prefix",
      head: "Prefix",
      value: (p) => p.prefix,
      cell: (p) => (
        <span class="mono cut" title={p.prefix}>
          {p.prefix}
        </span>
      ),
    },
    { id: "tasks", head: "Tasks", num: true, value: (p) => p.tasks, cell: (p) => count(p.tasks) },
    {
      id: "errors",
      head: "Errors",
      num: true,
      value: (p) => p.errors,
      cell: (p) => <span class={p.errors ? "bad" : "zero"}>{count(p.errors)}</span>,
    },
    ...(prefixes.some((p) => p.retried > 0)
      ? [{ id: "retried", head: "Retried", num: true, value: (p: Prefix) => p.retried }]
      : []),
    ...(prefixes.some((p) => p.killed > 0)
      ? [{ id: "killed", head: "Killed", num: true, value: (p: Prefix) => p.killed }]
      : []),
    { id: "compute", head: "Compute", num: true, value: (p) => p.compute, cell: (p) => secondsOrDash(p.compute) },
    { id: "mean", head: "Mean", num: true, value: (p) => p.mean, cell: (p) => secondsOrDash(p.mean) },
    { id: "transfer", head: "Transfer", num: true, value: (p) => p.transfer, cell: (p) => secondsOrDash(p.transfer) },
    { id: "nbytes", head: "Results", num: true, value: (p) => p.nbytes, cell: (p) => nbytes(p.nbytes) },
  ];
  return (
    <DataTable
      label="Task prefixes"
      name="prefixes"
      title="Time by task prefix"
      rows={prefixes}
      columns={columns}
      rowKey={(p) => p.prefix}
      sort={{ id: "compute", down: true }}
      empty="No tasks have finished yet"
    />
  );
}

/** Return why a worker left. For workers of a lost cluster this is unknown. */
function endOf(w: Worker, live: boolean): string {
  return verdictText(w) || (w.end ? "left" : live ? "connected" : "unknown");
}

export function WorkerTable({ workers, live }: { workers: readonly Worker[]; live: boolean }) {
  const columns: ViewColumn<Worker>[] = [
    {
      id: "worker",
      head: "Worker",
      value: (w) => w.name || w.worker,
      cell: (w) => (
        <span class="cut" title={w.worker}>
          {w.name || w.worker}
        </span>
      ),
    },
    {
      id: "state",
      head: "Status",
      value: (w) => endOf(w, live),
      cell: (w) => <span class={isLost(w) ? "bad" : ""}>{endOf(w, live)}</span>,
    },
    ...(workers.some((w) => w.evidence) ? [{ id: "why", head: "Why it left", value: (w: Worker) => w.evidence }] : []),
    { id: "host", head: "Host", value: (w) => w.host },
    { id: "threads", head: "Threads", num: true, value: (w) => w.nthreads },
    {
      id: "memory",
      head: "Memory",
      num: true,
      value: (w) => w.memory,
      cell: (w) => (w.memory ? nbytes(w.memory) : <span class="faint">not recorded</span>),
    },
    {
      id: "limit",
      head: "Limit",
      num: true,
      value: (w) => w.memory_limit,
      cell: (w) => (w.memory_limit ? nbytes(w.memory_limit) : "none"),
    },
    { id: "cpu", head: "CPU", num: true, value: (w) => w.cpu_percent, cell: (w) => percent(w.cpu_percent / 100) },
    {
      id: "lost",
      head: "Lost results",
      num: true,
      value: (w) => w.lost_results,
      cell: (w) => <span class={w.lost_results ? "bad" : "zero"}>{count(w.lost_results)}</span>,
    },
    { id: "start", head: "Joined", num: true, value: (w) => w.start ?? "", cell: (w) => <Ago at={w.start} /> },
    { id: "end", head: "Left", num: true, value: (w) => w.end ?? "", cell: (w) => (w.end ? <Ago at={w.end} /> : "") },
  ];
  return (
    <DataTable
      label="Workers"
      name="workers"
      title="Workers"
      rows={workers}
      columns={columns}
      rowKey={(w) => w.server_id}
      sort={{ id: "start", down: true }}
      empty="No workers have joined yet"
    />
  );
}
