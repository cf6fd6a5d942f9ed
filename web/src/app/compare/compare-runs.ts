import { MAX_COMPARED_RUNS } from "../../api/limits.gen";
import type { Computation } from "../../api/server.gen";

export type Run = Pick<Computation, "cluster_id" | "id">;
export type Side = "before" | "after";
/** Runs that a reader has chosen for one of the sides, by their name in the URL. */
export type Chosen = ReadonlyMap<string, Side>;

/** Return runs as the API takes them: IDs with a slash between cluster and computation, separated by commas. */
export function runList(runs: readonly Run[]): string {
  return runs.map((run) => `${encodeURIComponent(run.cluster_id)}/${encodeURIComponent(run.id)}`).join(",");
}

/** Return the chosen runs after the reader clicked a side of a run: a run is on one side, or on none. */
export function chooseSide(chosen: Chosen, run: string, side: Side): Chosen {
  const next = new Map(chosen);
  if (next.get(run) === side) next.delete(run);
  else next.set(run, side);
  return next;
}

/** Return the runs of a side. */
export function runsOf(chosen: Chosen, side: Side): string[] {
  return [...chosen].filter(([, its]) => its === side).map(([run]) => run);
}

/** Say why chosen runs can't be compared yet; empty if they can. */
export function problemOf(chosen: Chosen): string {
  const [before, after] = [runsOf(chosen, "before").length, runsOf(chosen, "after").length];
  if (before === 0 || after === 0) return "Choose at least one run before and one after.";
  if (before > MAX_COMPARED_RUNS || after > MAX_COMPARED_RUNS)
    return `Choose up to ${MAX_COMPARED_RUNS} runs on each side.`;
  return "";
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
