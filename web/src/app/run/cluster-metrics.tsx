import type { ClusterProgress, OneCluster } from "../../api/server.gen";
import { count, counted, duration, money, nbytes, nbytesOf, percent } from "../../model/text/format";
import { MetricStrip } from "../../widgets/metric-strip";
import { seconds } from "../parts/time-text";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";
import { computeShare, costNote, errorsNote, type RunTotals, tasksNote } from "./cluster-text";

interface Props {
  c: OneCluster;
  totals: RunTotals;
  progress: ClusterProgress | null;
}

/** The numbers of a cluster that runs. */
export function ClusterMetrics({ c, totals, progress }: Props) {
  const { account } = useTeam();
  const inReport = (view: string, text: string) => (
    <Link to={[account, "clusters", c.id]} hash={view}>
      {text}
    </Link>
  );
  const [used, limit] = nbytesOf(c.memory, c.memory_limit);
  const numbers: [string, string, preact.ComponentChildren, string][] = [
    // Whole seconds, as the ruler has them.
    ["duration", "Duration", seconds(Math.round(totals.duration_us / 1e6)), "recorded so far"],
    [
      "workers",
      "Workers",
      <>
        {count(c.workers)} <small>{counted(c.threads, "thread")}</small>
      </>,
      `${count(c.worker_list.length)} in total`,
    ],
    ["tasks", "Task runs", inReport("groups", count(totals.tasks)), tasksNote(c, progress)],
    ["errors", "Errors", inReport("errors", count(c.n_errors)), errorsNote(c)],
    [
      "memory",
      "Memory",
      c.memory_limit > 0 ? (
        <>
          {used} <small>of {limit}</small>
        </>
      ) : (
        nbytes(c.memory)
      ),
      c.workers === 0 ? "no workers now" : c.memory_limit > 0 ? "in use now" : "in use now, no limit",
    ],
    [
      "busy",
      "Compute time",
      inReport("overview", duration(totals.compute_us)),
      totals.thread_us > 0 ? `${percent(computeShare(totals))} of thread time` : "no threads",
    ],
    [
      "cost",
      "Est. cost",
      <Link to={[account, "usage"]} params={{ by: "cluster" }}>
        {money(c.cost.total)}
      </Link>,
      costNote(c, 1 - computeShare(totals)),
    ],
  ];
  return <MetricStrip metrics={numbers.map(([id, label, value, note]) => ({ id, label, value, note }))} />;
}
