import type { ErrorGroup } from "../api/server.gen";
import { count, counted } from "./text/format";

type Counts = Pick<ErrorGroup, "count" | "n_fatal" | "n_computations">;

/** Say what an error group did: it ended computations, failed tasks, or was always retried. */
export function impactText({ count: all, n_fatal, n_computations }: Counts): string {
  if (n_computations > 0) return `Ended ${counted(n_computations, "computation")}`;
  if (n_fatal > 0) return `Failed ${counted(n_fatal, "time")}`;
  return all === 1 ? "Retried" : `All ${count(all)} retried`;
}

/** Say how many occurrences failed for good and how many were retried. */
export function impactNote({ count: all, n_fatal }: Counts): string {
  if (n_fatal === 0) return "no task failed";
  const retried = Math.max(0, all - n_fatal);
  return `${count(n_fatal)} failed${retried > 0 ? `, ${count(retried)} retried` : ", none retried"}`;
}

/** Name an error group: its type, and the function that raises it, if known. */
export function errorName({ type, function: name }: Pick<ErrorGroup, "type" | "function">): string {
  return name ? `${type} in ${name}` : type;
}
