import type { ListedCluster, RecentRun, RunGroup } from "../api/server.gen";
import { LIVE_STATES } from "../api/states.gen";
import { capital } from "./activity";
import { counted, duration, nbytes } from "./text/format";

/** Finished runs from which a usual duration is known. */
export const MIN_USUAL = 3;
/** A smaller difference from the median is as usual: a tenth. */
const MIN_CHANGE = 0.1;

/** Durations of finished runs, in seconds. */
export interface UsualDuration {
  runs: number;
  median: number;
  /** The middle half. */
  low: number;
  high: number;
}

/** Return the value below which a share of sorted values lies, between two of them if needed. */
function quantile(sorted: readonly number[], share: number): number {
  const at = share * (sorted.length - 1);
  const below = Math.floor(at);
  return sorted[below] + (at - below) * ((sorted[below + 1] ?? sorted[below]) - sorted[below]);
}

/** Return the usual duration of finished runs, without one of them; null if there are too few. */
export function usualDuration(recent: readonly RecentRun[], without = ""): UsualDuration | null {
  const finished = recent.filter((run) => run.state === "finished" && run.id !== without);
  const sorted = finished.map((run) => run.duration).sort((a, b) => a - b);
  if (sorted.length < MIN_USUAL) return null;
  return {
    runs: sorted.length,
    median: quantile(sorted, 0.5),
    low: quantile(sorted, 0.25),
    high: quantile(sorted, 0.75),
  };
}

export interface DurationChange {
  /** Relative to the median. */
  share: number;
  /** Whether it is within the middle half or a tenth of the median. */
  usual: boolean;
  runs: number;
}

/** Compare a finished run with the other finished runs of its name; null if it cannot be compared. */
export function durationChange(run: Pick<ListedCluster, "id" | "state" | "duration">, recent: readonly RecentRun[]) {
  const usual = usualDuration(recent, run.id);
  if (run.state !== "finished" || !usual || usual.median <= 0) return null;
  const share = run.duration / usual.median - 1;
  const inside = run.duration >= usual.low && run.duration <= usual.high;
  const change: DurationChange = { share, usual: inside || Math.abs(share) < MIN_CHANGE, runs: usual.runs };
  return change;
}

/** Say how long a run took compared with the others of its name; empty if there are too few. */
export function comparedText(
  run: Pick<ListedCluster, "id" | "state" | "duration">,
  recent: readonly RecentRun[],
): string {
  const usual = usualDuration(recent, run.id);
  if (!usual) return "";
  const change = durationChange(run, recent);
  const median = `median ${duration(1e6 * usual.median)} of ${counted(usual.runs, "other run")}`;
  return change ? `${signedPercent(change.share)}, ${median}` : median;
}

/** Return by how much a finished run was slower than usual, as text; empty if it was not. */
export function slowerText(
  run: Pick<ListedCluster, "id" | "state" | "duration">,
  recent: readonly RecentRun[],
): string {
  const change = durationChange(run, recent);
  return change && !change.usual && change.share > 0 ? `${signedPercent(change.share).slice(1)} slower than usual` : "";
}

/** Format a change: `+63 %`, `−22 %`, `0 %`. */
export function signedPercent(share: number): string {
  const whole = Math.round(100 * share);
  return whole === 0 ? "0 %" : `${whole > 0 ? "+" : "−"}${Math.abs(whole).toLocaleString("en-US")} %`;
}

/** Say in one line why a run is in its state, or whether it took as long as usual. */
export function outcomeText(run: ListedCluster, recent: readonly RecentRun[]): string {
  if (run.state === "idle" && run.workers > 0)
    return `holds ${counted(run.workers, "worker")} and ${nbytes(run.memory_limit)} of memory`;
  if (LIVE_STATES.includes(run.state) || run.state === "lost") return run.reason;
  if (run.problem) return run.problem;
  if (run.state === "failed") return "the error was not recorded";
  if (run.state === "unfinished") return "closed before its tasks finished";
  if (run.state === "interrupted") return "a user stopped its tasks";
  const change = durationChange(run, recent);
  if (!change) return recent.length > 1 ? "too few finished runs to compare" : "";
  if (change.usual) return Math.abs(change.share) < MIN_CHANGE ? "as usual" : "within the usual range";
  const difference = signedPercent(change.share);
  return `${change.share > 0 ? `${difference} over` : `${difference.slice(1)} under`} the median of ${counted(change.runs, "run")}`;
}

/** Return how many of the last runs failed one after the other. Runs that have not ended do not count. */
export function failedInRow(recent: readonly RecentRun[]): number {
  const ended = recent.filter((run) => !LIVE_STATES.includes(run.state));
  const good = ended.findLastIndex((run) => run.state !== "failed");
  return ended.length - 1 - good;
}

/** A mark of the strip: a dot at a height, or a cross below the scale. */
export interface StripMark {
  id: string;
  x: number;
  y: number;
  kind: "dot" | "open" | "failed" | "cut";
  lost: boolean;
  last: boolean;
}

export interface Strip {
  marks: StripMark[];
  /** The band of the middle half and the median; null if there are too few finished runs. */
  band: { top: number; height: number; median: number } | null;
  /** Where the line above the crosses is; null without crosses. */
  foot: number | null;
}

/** Marks of a strip. Places are counted from the right, so that the newest runs of all rows are below each other. */
export const STRIP_PLACES = 20;

/** Lay out the last runs of a name. `last` is the run that the row speaks of. */
export function layOutStrip(recent: readonly RecentRun[], last: string, width: number, height: number): Strip {
  const shown = recent.slice(-STRIP_PLACES);
  const isCross = (run: RecentRun) => run.state !== "finished" && !LIVE_STATES.includes(run.state);
  const hasFoot = shown.some(isCross);
  const [top, bottom] = [5, height - (hasFoot ? 17 : 5)];
  const values = shown.filter((run) => !isCross(run)).map((run) => run.duration);
  const usual = usualDuration(shown);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  // Noise of a few percent must not fill the whole height: the scale covers at least half of the median.
  const missing = Math.max(0, 0.5 * (usual?.median ?? most) - (most - least)) / 2;
  const [low, high] = [Math.max(0, least - missing), most + missing];
  const y = (value: number) =>
    high > low ? bottom - ((value - low) / (high - low)) * (bottom - top) : (top + bottom) / 2;
  const step = (width - 12) / (STRIP_PLACES - 1);
  const marks = shown.map((run, i): StripMark => {
    const kind = isCross(run)
      ? run.state === "failed"
        ? "failed"
        : "cut"
      : LIVE_STATES.includes(run.state)
        ? "open"
        : "dot";
    return {
      id: run.id,
      x: width - 6 - (shown.length - 1 - i) * step,
      y: isCross(run) ? height - 6 : y(run.duration),
      kind,
      lost: run.lost_workers > 0,
      last: run.id === last,
    };
  });
  const band = usual && {
    top: y(usual.high) - 2,
    height: Math.max(5, y(usual.low) - y(usual.high) + 4),
    median: y(usual.median),
  };
  return { marks, band, foot: hasFoot ? height - 12.5 : null };
}

/** Describe a strip to screen readers. */
export function stripLabel(recent: readonly RecentRun[]): string {
  const usual = usualDuration(recent);
  const failed = recent.filter((run) => run.state === "failed").length;
  const lost = recent.filter((run) => run.lost_workers > 0).length;
  return [
    `Durations of the last ${counted(recent.length, "run")}`,
    usual && `median ${duration(1e6 * usual.median)}`,
    failed > 0 && `${failed} failed`,
    lost > 0 && `${counted(lost, "run")} lost workers`,
  ]
    .filter(Boolean)
    .join(", ");
}

/** What is most worth knowing about runs: the name it is about, the fact, and further facts. */
export interface RunsAnswer {
  name: string;
  fact: string;
  /** Other names that became slower. */
  slower: { name: string; share: string }[];
}

/** Choose the answer: failures in a row, then lost workers, then slower runs. */
export function runsAnswer(groups: readonly RunGroup[]): RunsAnswer {
  const named = groups.filter((group) => group.name);
  const slower = named
    .map((group) => ({ name: group.name, change: durationChange(group.newest, group.recent) }))
    .filter(({ change }) => change && !change.usual && change.share > 0)
    .sort((a, b) => (b.change?.share ?? 0) - (a.change?.share ?? 0))
    .map(({ name, change }) => ({
      name,
      share: `${Math.round(100 * (change?.share ?? 0)).toLocaleString("en-US")} %`,
    }));
  const failing = named
    .map((group) => ({ name: group.name, times: failedInRow(group.recent) }))
    .sort((a, b) => b.times - a.times)[0];
  if (failing && failing.times > 0) {
    const fact = failing.times === 1 ? "failed." : `has failed ${counted(failing.times, "time")} in a row.`;
    return { name: failing.name, fact, slower };
  }
  const lost = named.find((group) => group.newest.lost_workers > 0);
  if (lost) return { name: lost.name, fact: `lost ${counted(lost.newest.lost_workers, "worker")}.`, slower };
  const [slowest, ...others] = slower;
  if (slowest) return { name: slowest.name, fact: `took ${slowest.share} longer than usual.`, slower: others };
  return { name: "", fact: "", slower: [] };
}

/** The filter chip of runs that lost workers, which is not a state. */
export const WORKER_LOST = "worker-lost";

/** Filter chips of states that are always shown, in the order of attention. */
export const MAIN_CHIPS = ["running", "failed", "idle", "finished"];

/** Return the text of a chip; the empty one selects all runs. */
export function chipText(chip: string): string {
  return chip === WORKER_LOST ? "Worker lost" : capital(chip || "all");
}

/** Return the parameters of a request for the runs of a chip. */
export function chipQuery(chip: string): { state: string; lost_workers?: true } {
  return chip === WORKER_LOST ? { state: "", lost_workers: true } : { state: chip };
}
