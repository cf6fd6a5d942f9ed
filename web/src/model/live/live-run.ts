import type { Increment } from "../../api/increments";
import { LIVE_WINDOW_S } from "../../api/limits.gen";
import type { IncrementError } from "../../api/server.gen";
import { LiveLanes } from "./live-lanes";
import { LiveStacks } from "./live-stacks";
import { LiveBusy } from "./live-sums";
import { LiveWorkers } from "./live-workers";

const SECOND = 1e6;
const MAX_ERRORS = 50;
/** What is older is forgotten once in this many seconds. */
const TIDY_S = 30;

/** Names, numbered in the order in which they appear. */
class Numbered {
  readonly names: string[] = [];
  private readonly numbers = new Map<string, number>();

  number(name: string): number {
    let found = this.numbers.get(name);
    if (found === undefined) {
      found = this.names.length;
      this.names.push(name);
      this.numbers.set(name, found);
    }
    return found;
  }
}

/** Values by second and activity. */
export class LiveActivities {
  private readonly names = new Numbered();
  private readonly values = new Map<number, Map<number, number>>();

  add(part: Increment["parts"]["activities"], names: readonly (readonly [string, string, string])[]): void {
    const numbers = names.map((name) => this.names.number(name.join("\0")));
    for (let i = 0; i < part.second.length; i++) {
      const second = this.values.get(part.second[i]) ?? new Map<number, number>();
      const number = numbers[part.activity[i]];
      second.set(number, (second.get(number) ?? 0) + part.value[i]);
      this.values.set(part.second[i], second);
    }
  }

  forget(before: number): void {
    for (const second of this.values.keys()) if (second < before) this.values.delete(second);
  }

  /** Return the sums of [from, to) seconds by context, label and unit, largest first. */
  sums(from: number, to: number, unit: string): { context: string; label: string; value: number }[] {
    const sums = new Map<number, number>();
    for (const [second, values] of this.values)
      if (second >= from && second < to)
        for (const [number, value] of values) sums.set(number, (sums.get(number) ?? 0) + value);
    return [...sums]
      .map(([number, value]) => {
        const [context = "", label = "", of = ""] = this.names.names[number].split("\0");
        return { context, label, of, value };
      })
      .filter((sum) => sum.of === unit && sum.value > 0)
      .sort((a, b) => b.value - a.value);
  }
}

/** Bytes received by workers, by second. */
class LiveTransfers {
  private readonly bytes = new Map<number, number>();

  add(part: Increment["parts"]["transfers"]): void {
    for (let i = 0; i < part.second.length; i++)
      this.bytes.set(part.second[i], (this.bytes.get(part.second[i]) ?? 0) + part.nbytes[i]);
  }

  forget(before: number): void {
    for (const second of this.bytes.keys()) if (second < before) this.bytes.delete(second);
  }

  /** Return bytes per second in `count` bins of `width` seconds. */
  bins(from: number, width: number, count: number): number[] {
    const bins = new Array<number>(count).fill(0);
    for (const [second, bytes] of this.bytes) {
      const b = Math.floor((second - from) / width);
      if (b >= 0 && b < count) bins[b] += bytes / width;
    }
    return bins;
  }
}

/** A live run as far as a page follows it: increments added up, with limits on what is kept. */
export class LiveRun {
  cursor = "";
  originUs = 0;
  isLive = true;
  /** Seconds of which everything is kept. */
  window = LIVE_WINDOW_S;
  /** Executions that ended while the page followed, and those it did not get bars of. */
  tasks = 0;
  leftOut = 0;
  lanes = new LiveLanes();
  workers = new LiveWorkers();
  busy = new LiveBusy();
  stacks = new LiveStacks();
  activities = new LiveActivities();
  transfers = new LiveTransfers();
  errors = new Map<string, IncrementError>();
  private prefixNames = new Numbered();
  private nowUs = 0;
  private receivedMs = 0;
  private tidied = 0;

  get prefixes(): readonly string[] {
    return this.prefixNames.names;
  }

  /** Add an increment that arrived at `atMs` on the page's clock. */
  apply({ header, parts }: Increment, atMs: number): void {
    if (header.is_first) this.reset();
    this.cursor = header.cursor;
    this.originUs = header.origin_us;
    this.isLive = header.is_live;
    this.window = header.window;
    this.nowUs = Math.max(this.nowUs, header.now_us - header.origin_us);
    this.receivedMs = atMs;
    if (header.is_first) this.busy.start(header.history, header.first_second);
    const prefixes = header.names.prefixes.map((name) => this.prefixNames.number(name));
    this.workers.update(header.workers);
    this.lanes.add(parts.bars, header.keys, header.names.lanes, prefixes);
    this.busy.add(parts.busy, prefixes);
    this.workers.add(parts.samples, header.names.workers);
    this.transfers.add(parts.transfers);
    this.activities.add(parts.activities, header.names.activities);
    this.stacks.add(parts.stacks, parts.nodes, header.names.frames);
    for (const error of header.errors) this.addError(error);
    for (let i = 0; i < parts.busy.count.length; i++) this.tasks += parts.busy.count[i];
    this.leftOut += header.left_out;
    this.tidy();
  }

  private reset(): void {
    this.lanes = new LiveLanes();
    this.workers = new LiveWorkers();
    this.busy = new LiveBusy();
    this.stacks = new LiveStacks();
    this.activities = new LiveActivities();
    this.transfers = new LiveTransfers();
    this.errors = new Map();
    this.tasks = 0;
    this.leftOut = 0;
    // The numbers of prefixes stay, and so do their colours.
  }

  private addError(error: IncrementError): void {
    const known = this.errors.get(error.fingerprint);
    this.errors.delete(error.fingerprint);
    this.errors.set(error.fingerprint, { ...error, count: error.count + (known?.count ?? 0) });
    if (this.errors.size > MAX_ERRORS) this.errors.delete(this.errors.keys().next().value ?? "");
  }

  private tidy(): void {
    const now = this.nowUs / SECOND;
    if (now - this.tidied < TIDY_S) return;
    this.tidied = now;
    const before = Math.floor(now) - this.window;
    this.lanes.forget(before * SECOND);
    this.lanes.forgetEmpty((worker) => this.workers.isConnected(worker));
    this.busy.forget(before);
    this.stacks.forget(before);
    this.activities.forget(before);
    this.transfers.forget(before);
  }

  /** Return the current time in microseconds since the origin, between increments by the page's clock. */
  now(atMs: number): number {
    return this.isLive ? this.nowUs + Math.max(0, Math.min(atMs - this.receivedMs, 30_000)) * 1000 : this.nowUs;
  }
}
