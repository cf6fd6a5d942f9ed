import type { Totals } from "../../api/schema.gen";
import type { ClusterProgress, Computation, OneCluster, Prefix, TaskCounts } from "../../api/server.gen";
import { callOf } from "../../model/code";
import type { PrefixOrder } from "../../model/model";
import { count, counted, money, percent } from "../../model/text/format";
import { isLive } from "../parts/pills";

/** Whether the cluster has work. Advice about idle clusters does not apply then. */
export function isBusy(c: OneCluster): boolean {
  return isLive(c) && c.tasks_processing + c.tasks_queued > 0;
}

/** The running and waiting tasks of all running computations; null if none is listed, or not all are. */
export function unfinishedTasks(progress: ClusterProgress | null): Pick<TaskCounts, "running" | "waiting"> | null {
  if (!progress || progress.items.length === 0 || progress.items.length < progress.total) return null;
  const sum = (part: "running" | "waiting") => progress.items.reduce((all, one) => all + one[part], 0);
  return { running: sum("running"), waiting: sum("waiting") };
}

/**
 * Say how many tasks run and wait, as the progress of the computations does. The counts of the scheduler do not fit beside it: they
 * are of another moment, and tasks that wait at a worker for a thread count as processing.
 */
export function tasksNote(c: OneCluster, progress: ClusterProgress | null): string {
  if (c.tasks_unrunnable > 0 && !isBusy(c)) return `${count(c.tasks_unrunnable)} cannot run`;
  const tasks = unfinishedTasks(progress);
  if (tasks) return `${count(tasks.running)} running, ${count(tasks.waiting)} waiting`;
  return isBusy(c) ? "so far" : "none running";
}

/** Say how many tasks failed for good and how many exceptions were retried. */
export function failures(c: Pick<OneCluster, "n_errors" | "n_exceptions">): string {
  const retried = c.n_exceptions - c.n_errors;
  const failed = c.n_errors > 0 ? `${counted(c.n_errors, "task")} failed` : "no task failed";
  return retried > 0 ? `${failed}, ${count(retried)} retried` : failed;
}

/** The note below the number of errors, as on the page of a finished run. */
export function errorsNote({ n_errors, n_exceptions }: Pick<OneCluster, "n_errors" | "n_exceptions">): string {
  const retried = n_exceptions - n_errors;
  if (retried > 0) return `${count(retried)} more retried`;
  return n_errors > 0 ? "none retried" : "no task failed";
}

/** Sums of a run so far. */
export type RunTotals = Pick<Totals, "duration_us" | "tasks" | "compute_us" | "thread_us">;

/** Return the sums of a cluster until its live view has them: those grow with every increment, as everything below them does. */
export function totalsOf(c: OneCluster): RunTotals {
  return {
    duration_us: 1e6 * c.duration,
    tasks: c.n_tasks,
    compute_us: 1e6 * c.compute_seconds,
    thread_us: 1e6 * c.thread_seconds,
  };
}

/** Return the share of the thread time that was computing. */
export function computeShare({ compute_us, thread_us }: RunTotals): number {
  return thread_us > 0 ? Math.min(1, compute_us / thread_us) : 0;
}

/** The cost per hour of a live cluster, and how much of its thread time was idle. */
export function costNote({ cost }: Pick<OneCluster, "cost">, idle: number): string {
  const perHour = `${money(cost.per_hour)}/h`;
  return cost.total > 0 ? `${perHour}, ${percent(idle)} idle` : perHour;
}

/** Return the line of code that made the call. */
export function callText(c: Pick<Computation, "code" | "code_line">): string {
  return callOf(c) || "code not recorded";
}

/** The order in which prefixes of the cluster first ran, which is the order of their colours. */
export function orderOf({ prefixes }: { prefixes: readonly Pick<Prefix, "prefix" | "order">[] }): PrefixOrder {
  return new Map(prefixes.map(({ prefix, order }) => [prefix, order]));
}
