import type { Computation, RunGroup } from "../../api/server.gen";

export type Run = Pick<Computation, "cluster_id" | "id">;

/** Return runs as the API takes them: IDs with a slash between cluster and computation, separated by commas. */
export function runList(runs: readonly Run[]): string {
  return runs.map((run) => `${encodeURIComponent(run.cluster_id)}/${encodeURIComponent(run.id)}`).join(",");
}

/** IDs of the clusters to compare, oldest first. */
export interface Sides {
  before: string[];
  after: string[];
}

/** Return the last finished runs of a name, and as many before them; or the last ones of another name, if there is one. */
export function sidesOf(group: Pick<RunGroup, "recent">, other: Pick<RunGroup, "recent"> | null, count: number): Sides {
  const finished = ({ recent }: Pick<RunGroup, "recent">) =>
    recent.filter((run) => run.state === "finished").map((run) => run.id);
  const own = finished(group);
  // With fewer runs than wanted, both sides have some.
  const last = Math.min(count, other ? own.length : Math.ceil(own.length / 2));
  const after = own.slice(own.length - last);
  const before = other ? finished(other).slice(-count) : own.slice(0, own.length - last).slice(-count);
  return { before, after };
}

/** Return the parameters of the page that compares a computation with earlier ones. */
export function compared(before: readonly Run[], after: Run): { before: string; after: string } {
  return { before: runList(before), after: runList([after]) };
}

/** Return the runs of a parameter. An item without a slash is a whole cluster. */
export function parseRuns(text: string): { cluster: string; computation: string }[] {
  return text
    .split(",")
    .filter(Boolean)
    .map((item) => {
      const [cluster = "", computation = ""] = item.split("/").map(decoded);
      return { cluster, computation };
    });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
