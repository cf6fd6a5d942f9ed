import type { OneCluster } from "../../api/server.gen";
import { count, counted, money, nbytes, nbytesOf, percent } from "../../model/text/format";
import { isLive } from "../parts/pills";
import { seconds } from "../parts/time-text";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";
import { costNote, failures, isBusy } from "./cluster-text";

export function ClusterMetrics({ c }: { c: OneCluster }) {
  const { account } = useTeam();
  const live = isLive(c);
  const inReport = (view: string, text: string) => (
    <Link to={[account, "clusters", c.id]} hash={view}>
      {text}
    </Link>
  );
  const [used, limit] = nbytesOf(c.memory, c.memory_limit);
  const numbers: [string, string, preact.ComponentChildren, string][] = [
    ["age", live ? "Age" : "Lifetime", seconds(c.duration), live ? "still running" : c.reason],
    [
      "workers",
      "Workers",
      live ? (
        <>
          {count(c.workers)} <small>{counted(c.threads, "thread")}</small>
        </>
      ) : (
        <>
          {count(c.peak_workers)} <small>{counted(c.peak_threads, "thread")}</small>
        </>
      ),
      live ? `${count(c.worker_list.length)} in total` : `at peak, ${count(c.worker_list.length)} in total`,
    ],
    [
      "tasks",
      "Tasks",
      inReport("groups", count(c.n_tasks)),
      live
        ? c.tasks_unrunnable > 0 && !isBusy(c)
          ? `${count(c.tasks_unrunnable)} cannot run`
          : `${count(c.tasks_processing)} running, ${count(c.tasks_queued)} queued`
        : counted(c.n_computations, "computation"),
    ],
    ["errors", "Exceptions", inReport("errors", count(c.n_exceptions)), failures(c)],
    [
      "memory",
      "Memory",
      live && c.memory_limit > 0 ? (
        <>
          {used} <small>of {limit}</small>
        </>
      ) : c.memory_limit > 0 ? (
        nbytes(c.memory_limit)
      ) : live && c.workers === 0 ? (
        nbytes(0)
      ) : (
        "no limit"
      ),
      live && c.workers === 0
        ? "no workers now"
        : c.memory_limit <= 0
          ? ""
          : live
            ? "in use now"
            : "total limit at peak",
    ],
    [
      "busy",
      "Compute time",
      inReport("overview", seconds(c.compute_seconds)),
      c.thread_seconds > 0
        ? `${percent(Math.min(1, c.compute_seconds / c.thread_seconds))} of thread time`
        : "no threads",
    ],
    [
      "cost",
      "Est. cost",
      <Link to={[account, "usage"]} params={{ by: "cluster" }}>
        {money(c.cost.total)}
      </Link>,
      costNote(c),
    ],
  ];
  return (
    <dl class="panel metrics eq" title={c.cost.formula}>
      {numbers.map(([id, label, value, note]) => (
        <div class="metric" key={id}>
          <dt>{label}</dt>
          <dd class="v" data-testid={`metric-${id}`}>
            {value}
          </dd>
          <dd class="s" title={note}>
            {note}
          </dd>
        </div>
      ))}
    </dl>
  );
}
