import type { Column } from "../../api/increments";
import { BAR_STYLE } from "../stream";

/** Bars of all lanes that are kept. The oldest are forgotten first. */
export const MAX_BARS = 50_000;

/** The bars of one thread, in order of their start. Times are in microseconds since the origin. */
export interface LiveLane {
  worker: string;
  thread: number;
  start: number[];
  length: number[];
  style: number[];
  prefix: number[];
  key: string[];
  /** Length of the longest bar. */
  longest: number;
}

/** A bar under the pointer. */
export interface LiveBar {
  lane: LiveLane;
  start: number;
  length: number;
  style: number;
  prefix: number;
  key: string;
}

const COLUMNS = ["start", "length", "style", "prefix", "key"] as const;

/** Return the style of a bar from its category and the rank of its prefix. */
export function styleOf(category: number, prefix: number): number {
  switch (category) {
    case 0:
      return Math.min(prefix, BAR_STYLE.rest);
    case 1:
      return BAR_STYLE.transfer;
    case 2:
      return BAR_STYLE.disk;
    case 3:
      return BAR_STYLE.serialize;
    default:
      return BAR_STYLE.failed;
  }
}

function isExecution(style: number): boolean {
  return style <= BAR_STYLE.failed;
}

/** The threads of a live run and their latest bars. */
export class LiveLanes {
  readonly lanes: LiveLane[] = [];
  /** Grows when a lane appears or disappears. */
  revision = 0;
  private readonly byName = new Map<string, LiveLane>();
  private count = 0;
  private executions = 0;
  /** Bars that started before are forgotten. */
  since = 0;

  get bars(): number {
    return this.count;
  }

  /** Executions among the bars. The other bars are transfers, disk and serialization. */
  get tasks(): number {
    return this.executions;
  }

  private lane(worker: string, thread: number): LiveLane {
    const name = `${worker}\0${thread}`;
    let found = this.byName.get(name);
    if (!found) {
      found = { worker, thread, start: [], length: [], style: [], prefix: [], key: [], longest: 0 };
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
      if (target) this.insert(target, start[i], length[i], styleOf(category[i], own), own, keys[i] ?? "");
    }
    if (this.count > MAX_BARS) this.forgetOldest();
  }

  private insert(lane: LiveLane, start: number, length: number, style: number, prefix: number, key: string): void {
    if (start + length < this.since) return;
    // Nearly all bars start after those that are known.
    let at = lane.start.length;
    while (at > 0 && lane.start[at - 1] > start) at--;
    const values = { start, length, style, prefix, key };
    for (const name of COLUMNS) (lane[name] as (number | string)[]).splice(at, 0, values[name]);
    lane.longest = Math.max(lane.longest, length);
    this.count++;
    if (isExecution(style)) this.executions++;
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
    const starts = Float64Array.from(this.lanes.flatMap((lane) => lane.start)).sort();
    const before = starts[Math.floor(starts.length / 5)];
    this.since = Math.max(this.since, before);
    for (const lane of this.lanes) {
      let drop = 0;
      while (drop < lane.start.length && lane.start[drop] < before) drop++;
      this.drop(lane, drop);
    }
  }

  private drop(lane: LiveLane, count: number): void {
    this.executions -= lane.style.slice(0, count).filter(isExecution).length;
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

/** Return the bar of a lane at a time, or the nearest within `slack`; null if there is none. */
export function barAt(lane: LiveLane, t: number, slack: number): LiveBar | null {
  let best = -1;
  let distance = slack;
  for (let i = lane.start.length - 1; i >= 0; i--) {
    const a = lane.start[i];
    if (a + lane.longest < t - slack) break;
    const b = a + lane.length[i];
    const away = t < a ? a - t : t > b ? t - b : 0;
    // A short activity lies over the execution that it belongs to.
    if (away < distance || (away === 0 && (best < 0 || lane.length[i] < lane.length[best]))) {
      distance = away;
      best = i;
    }
  }
  if (best < 0) return null;
  return {
    lane,
    start: lane.start[best],
    length: lane.length[best],
    style: lane.style[best],
    prefix: lane.prefix[best],
    key: lane.key[best],
  };
}
