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

  constructor(known: ReadonlyMap<string, number> = new Map()) {
    for (const [name, number] of known) {
      this.numbers.set(name, number);
      this.names[number] = name;
    }
  }

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
  errors = new Map<string, IncrementError>();
  private prefixNames: Numbered;
  private nowUs = 0;
  private knownUs = 0;
  private receivedMs = 0;
  private tidied = 0;

  /** `known` is the order of the prefixes that have run so far: it is the colour of their bars. */
  constructor(known: ReadonlyMap<string, number> = new Map()) {
    this.prefixNames = new Numbered(known);
  }

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
    this.knownUs = Math.max(this.knownUs, header.known_until_us - header.origin_us);
    this.receivedMs = atMs;
    if (header.is_first) this.busy.start(header.history, header.first_second);
    const prefixes = header.names.prefixes.map((name) => this.prefixNames.number(name));
    this.workers.update(header.workers);
    this.lanes.add(parts.bars, header.keys, header.names.lanes, prefixes);
    this.busy.add(parts.busy, prefixes);
    this.workers.add(parts.samples, header.names.workers);
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
    this.workers.forget(before);
  }

  /** The time in microseconds since the origin from which every execution is known. */
  get keptFrom(): number {
    return Math.max(this.busy.first * SECOND, this.lanes.since);
  }

  /** The time of the last increment in microseconds since the origin. */
  get latest(): number {
    return this.nowUs;
  }

  /** The time in microseconds since the origin up to which rows have arrived. Later threads are neither busy nor idle. */
  get knownUntil(): number {
    return this.knownUs;
  }

  /** Return the current time in microseconds since the origin, between increments by the page's clock. */
  now(atMs: number): number {
    return this.isLive ? this.nowUs + Math.max(0, Math.min(atMs - this.receivedMs, 30_000)) * 1000 : this.nowUs;
  }
}
