import type { Column } from "../../api/increments";
import { LIVE_CATEGORIES } from "./live-sums";

/** Bars of all lanes that are kept. The oldest are forgotten first. */
export const MAX_BARS = 50_000;

/** The bars of one thread, in order of their start. Times are in microseconds since the origin. */
export interface LiveLane {
  worker: string;
  thread: number;
  start: number[];
  length: number[];
  /** Positions in LIVE_CATEGORIES. */
  category: number[];
  prefix: number[];
  key: string[];
  /** The number of the execution in the order of arrival, which stays; -1 for other activities. */
  task: number[];
  /** Length of the longest bar. */
  longest: number;
}

const COLUMNS = ["start", "length", "category", "prefix", "key", "task"] as const;

const FAILED = LIVE_CATEGORIES.indexOf("failed");

/** Whether a bar is an execution. The other bars are transfers, disk and serialization. */
export function isExecution(category: number): boolean {
  return category === 0 || category === FAILED;
}

/** The threads of a live run and their latest bars. */
export class LiveLanes {
  readonly lanes: LiveLane[] = [];
  /** Grows when a lane appears or disappears. */
  revision = 0;
  private readonly byName = new Map<string, LiveLane>();
  private count = 0;
  /** Executions that have arrived, with those that are forgotten. */
  tasks = 0;
  /** Grows with every change of the bars. */
  version = 0;
  /** Bars that started before are forgotten. */
  since = 0;

  get bars(): number {
    return this.count;
  }

  private lane(worker: string, thread: number): LiveLane {
    const name = `${worker}\0${thread}`;
    let found = this.byName.get(name);
    if (!found) {
      found = { worker, thread, start: [], length: [], category: [], prefix: [], key: [], task: [], longest: 0 };
      this.byName.set(name, found);
      this.lanes.push(found);
      this.revision++;
      this.lanes.sort((a, b) => (a.worker === b.worker ? a.thread - b.thread : a.worker < b.worker ? -1 : 1));
    }
    return found;
  }

  /** Add bars. `names` are the lanes of the increment, `prefixes` the numbers of its prefixes here. */
  add(
    bars: Record<string, Column>,
    keys: readonly string[],
    names: readonly (readonly [string, number])[],
    prefixes: readonly number[],
  ): void {
    const lanes = names.map(([worker, thread]) => this.lane(worker, thread));
    const { start, length, lane, prefix, category } = bars;
    for (let i = 0; i < start.length; i++) {
      const own = prefixes[prefix[i]] ?? 0;
      const target = lanes[lane[i]];
      if (target) this.insert(target, start[i], length[i], category[i], own, keys[i] ?? "");
    }
    if (start.length > 0) this.version++;
    if (this.count > MAX_BARS) this.forgetOldest();
  }

  private insert(lane: LiveLane, start: number, length: number, category: number, prefix: number, key: string): void {
    const task = isExecution(category) ? this.tasks++ : -1;
    if (start + length < this.since) return;
    // Nearly all bars start after those that are known.
    let at = lane.start.length;
    while (at > 0 && lane.start[at - 1] > start) at--;
    const values = { start, length, category, prefix, key, task };
    for (const name of COLUMNS) (lane[name] as (number | string)[]).splice(at, 0, values[name]);
    lane.longest = Math.max(lane.longest, length);
    this.count++;
  }

  /** Forget bars that ended before a time. */
  forget(before: number): void {
    this.since = Math.max(this.since, before);
    for (const lane of this.lanes) {
      let drop = 0;
      while (drop < lane.start.length && lane.start[drop] + lane.longest < before) drop++;
      if (drop === 0) continue;
      this.drop(lane, drop);
      lane.longest = lane.length.reduce((most, length) => Math.max(most, length), 0);
    }
  }

  /** Forget a fifth of the bars, those that started first. */
  private forgetOldest(): void {
    const starts = new Float64Array(this.count);
    let at = 0;
    for (const lane of this.lanes) {
      starts.set(lane.start, at);
      at += lane.start.length;
    }
    const last = starts.sort()[Math.floor(starts.length / 5)];
    this.since = Math.max(this.since, last);
    for (const lane of this.lanes) {
      let drop = 0;
      // Also those that start at the same time: of very many bars that were cut at the start of the window, none would go.
      while (drop < lane.start.length && lane.start[drop] <= last) drop++;
      this.drop(lane, drop);
    }
  }

  private drop(lane: LiveLane, count: number): void {
    if (count > 0) this.version++;
    this.count -= count;
    for (const name of COLUMNS) lane[name].splice(0, count);
  }

  /** Drop lanes of workers that are gone and have no bars left. */
  forgetEmpty(isConnected: (worker: string) => boolean): void {
    for (let i = this.lanes.length - 1; i >= 0; i--) {
      const lane = this.lanes[i];
      if (lane.start.length > 0 || isConnected(lane.worker)) continue;
      this.lanes.splice(i, 1);
      this.revision++;
      this.byName.delete(`${lane.worker}\0${lane.thread}`);
    }
  }
}
