import type { Computation, OneCluster } from "../../api/server.gen";
import { callOf } from "../../model/code";
import { count, counted, money, percent } from "../../model/text/format";
import { isLive } from "../parts/pills";

/** Whether the cluster has work. Advice about idle clusters does not apply then. */
export function isBusy(c: OneCluster): boolean {
  return isLive(c) && c.tasks_processing + c.tasks_queued > 0;
}

/** Say how many tasks failed for good and how many exceptions were retried. */
export function failures(c: Pick<OneCluster, "n_errors" | "n_exceptions">): string {
  const retried = c.n_exceptions - c.n_errors;
  const failed = c.n_errors > 0 ? `${counted(c.n_errors, "task")} failed` : "no task failed";
  return retried > 0 ? `${failed}, ${count(retried)} ${retried === 1 ? "was" : "were"} retried` : failed;
}

/** The cost per hour of a live cluster, and how much of the cost was idle. */
export function costNote({ state, cost }: OneCluster): string {
  const idle = cost.total > 0 ? `${percent(cost.idle / cost.total)} of it idle` : "";
  if (!isLive({ state })) return idle || "no cost";
  return [`${money(cost.per_hour)} per hour`, idle].filter(Boolean).join(", ");
}

/** Return the line of code that made the call. */
export function callText(c: Pick<Computation, "code" | "code_line">): string {
  return callOf(c) || "code not recorded";
}
