import type { Computation } from "../api/server.gen";

type Run = Pick<Computation, "cluster_id" | "id">;

/** Return runs as the API takes them: IDs with a slash between cluster and computation, separated by commas. */
export function runList(runs: readonly Run[]): string {
  return runs.map((run) => `${encodeURIComponent(run.cluster_id)}/${encodeURIComponent(run.id)}`).join(",");
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
