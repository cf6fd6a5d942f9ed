import type { ComputationHistory, HistoryRun } from "../api/server.gen";
import { count, counted, dollars, duration, nbytes, UNKNOWN } from "./text/format";

/** Numbers of a run, and their names. */
export const RUN_MEASURES = [
  ["duration", "Duration"],
  ["cost", "Est. cost"],
  ["compute", "Compute"],
  ["transfer", "Transfer"],
  ["disk", "Spill"],
  ["n_tasks", "Tasks"],
  ["nbytes", "Result size"],
  ["n_errors", "Errors"],
  ["threads", "Threads"],
] as const satisfies readonly (readonly [keyof HistoryRun, string])[];

export type RunMeasure = (typeof RUN_MEASURES)[number][0];

/** Runs from which changes of the duration can be found. */
export const MIN_RUNS = 15;

/** Return the measures that runs have: without prices there is no cost. */
export function knownMeasures(runs: readonly HistoryRun[]): (readonly [RunMeasure, string])[] {
  return RUN_MEASURES.filter(([id]) => id === "duration" || runs.some((run) => run[id] !== null));
}

/** Format a value of a measure. */
export function runValue(measure: RunMeasure, value: number | null): string {
  if (value === null) return UNKNOWN;
  if (measure === "cost") return smallDollars(value);
  if (measure === "nbytes") return nbytes(value);
  if (measure === "n_tasks" || measure === "n_errors" || measure === "threads") return count(value);
  return duration(1e6 * value);
}

/** Format an amount of money with two digits if it is less than a cent: the runs of a history must differ on its axis. */
function smallDollars(x: number): string {
  if (x <= 0 || x >= 0.01) return dollars(x);
  return `$${x.toFixed(1 - Math.floor(Math.log10(x)))}`;
}

/** Return steps of an axis: whole numbers for counts, powers of two for bytes; undefined for any. */
export function axisSteps(measure: RunMeasure): number[] | undefined {
  if (measure === "nbytes") return Array.from({ length: 60 }, (_, i) => 2 ** i);
  if (measure === "n_tasks" || measure === "n_errors" || measure === "threads")
    return Array.from({ length: 45 }, (_, i) => [1, 2, 5][i % 3] * 10 ** Math.floor(i / 3));
  return undefined;
}

/** Return up to `max` runs to name on the axis, evenly spaced, and their date; or the time if the run before has the same date. */
export function dateTicks(starts: readonly (string | null)[], max: number): [index: number, text: string][] {
  const step = Math.max(1, Math.ceil(starts.length / Math.max(1, max)));
  const ticks: [number, string][] = [];
  let day = "";
  for (let i = 0; i < starts.length; i += step) {
    const [date = "", time = ""] = (starts[i] ?? "").split("T");
    ticks.push([i, date === day ? time.slice(0, 5) : date]);
    day = date;
  }
  return ticks;
}

/** Describe the chart of a measure to screen readers: how many runs, from when to when, and how often the duration changed. */
export function historyLabel(measure: string, { runs, changes }: Pick<ComputationHistory, "runs" | "changes">): string {
  const dates = runs.flatMap((run) => (run.start ? [run.start.slice(0, 10)] : []));
  const [first, last] = [dates[0], dates.at(-1)];
  const when = !first ? "" : first === last ? ` on ${first}` : ` from ${first} to ${last}`;
  return `${measure} of ${counted(runs.length, "run")}${when}. ${changesText({ runs, changes })}`;
}

/** Say how often the duration of runs changed. */
export function changesText({ runs, changes }: Pick<ComputationHistory, "runs" | "changes">): string {
  if (changes.length > 0) return `${counted(changes.length, "change")} of the duration.`;
  return runs.length < MIN_RUNS ? `Changes appear after ${MIN_RUNS} finished runs.` : "The duration has not changed.";
}
