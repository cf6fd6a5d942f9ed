import type { Cluster } from "../../api/server.gen";
import { count, counted, dollars, nbytes, nbytesOf } from "../../model/text/format";
import { Person } from "../parts/person";
import { ClusterPill, isLive } from "../parts/pills";
import { Sparkline } from "../parts/sparkline";
import { Ago, seconds } from "../parts/time-text";

export interface ClusterColumn {
  id: string;
  head: string;
  num?: boolean;
  /** Name of the sort key at the server, if the server can sort by this column. */
  sort?: string;
  cell: (c: Cluster, busy: readonly number[]) => preact.ComponentChildren;
}

export const COLUMNS: readonly ClusterColumn[] = [
  {
    id: "state",
    head: "State",
    cell: (c) => (
      <>
        <ClusterPill cluster={c} />
        {c.missing_rows > 0 && (
          <span class="sub bad" data-testid="missing-rows">
            {counted(c.missing_rows, "row")} missing
          </span>
        )}
      </>
    ),
  },
  { id: "user", head: "Owner", cell: (c) => <Person name={c.user} /> },
  {
    id: "workers",
    head: "Workers",
    num: true,
    sort: "workers",
    cell: (c) => <NowOrPeak live={isLive(c)} now={c.workers} peak={c.peak_workers} />,
  },
  {
    id: "threads",
    head: "Threads",
    num: true,
    sort: "threads",
    cell: (c) => <NowOrPeak live={isLive(c)} now={c.threads} peak={c.peak_threads} />,
  },
  { id: "memory", head: "Memory", cell: (c) => <MemoryCell cluster={c} /> },
  {
    id: "tasks",
    head: "Tasks",
    num: true,
    sort: "tasks",
    cell: (c) => <span class={c.n_tasks ? "" : "zero"}>{count(c.n_tasks)}</span>,
  },
  {
    id: "exceptions",
    head: "Exceptions",
    num: true,
    sort: "exceptions",
    cell: (c) => <span class={c.n_exceptions ? "bad" : "zero"}>{count(c.n_exceptions)}</span>,
  },
  { id: "busy", head: "Busy threads", cell: (c, busy) => <BusySparkline cluster={c} shares={busy} /> },
  { id: "now", head: "Cost now", num: true, cell: (c) => (c.cost.per_hour > 0 ? `${dollars(c.cost.per_hour)}/h` : "") },
  {
    id: "cost",
    head: "Est. cost",
    num: true,
    cell: (c) => <span title={c.cost.formula}>{dollars(c.cost.total)}</span>,
  },
  { id: "age", head: "Age", num: true, cell: (c) => seconds(c.duration) },
  {
    id: "time",
    head: "Thread time",
    num: true,
    sort: "cluster_time",
    cell: (c) => <span title="Worker threads × their uptime">{seconds(c.thread_seconds)}</span>,
  },
  { id: "started", head: "Started", num: true, sort: "started", cell: (c) => <Ago at={c.start} /> },
  { id: "seen", head: "Last seen", num: true, sort: "last_seen", cell: (c) => <Ago at={c.last_seen} /> },
  {
    id: "software",
    head: "Software",
    cell: (c) => <span class="faint">{c.versions.distributed ? `distributed ${c.versions.distributed}` : ""}</span>,
  },
];

/** Share of busy threads in the last hour of the cluster. All rows share one scale. */
function BusySparkline({ cluster: c, shares }: { cluster: Cluster; shares: readonly number[] }) {
  if (shares.length < 2 || c.thread_seconds <= 0) return null;
  const tone = c.state === "running" ? "var(--st-running)" : c.state === "lost" ? "var(--st-lost)" : "var(--text-3)";
  const mean = shares.reduce((a, b) => a + b, 0) / shares.length;
  return <Sparkline values={shares} max={1} tone={tone} label={`${Math.round(mean * 100)} percent of threads busy`} />;
}

/** The current number, or the peak of a cluster that has ended. */
function NowOrPeak({ live, now, peak }: { live: boolean; now: number; peak: number }) {
  if (live) return <>{count(now)}</>;
  return (
    <span class="faint" title="Peak">
      {peak > 0 ? count(peak) : ""}
    </span>
  );
}

function MemoryCell({ cluster: c }: { cluster: Cluster }) {
  if (c.memory_limit <= 0) return <span class="faint">{c.memory ? nbytes(c.memory) : ""}</span>;
  if (!isLive(c))
    return (
      <span class="faint" title="Total limit at peak">
        {nbytes(c.memory_limit)}
      </span>
    );
  const share = Math.min(1, c.memory / c.memory_limit);
  const [used, limit] = nbytesOf(c.memory, c.memory_limit);
  return (
    <>
      <span class="mbar" role="img" aria-label={`${Math.round(share * 100)} percent`}>
        <i class={share > 0.9 ? "hi" : ""} style={{ width: `${share * 100}%` }} />
      </span>
      <span class="sub">
        {used} of {limit}
      </span>
    </>
  );
}
