import type { Cube, Report, Worker } from "../api/schema.gen";
import { Columns, MemorySource, type Source } from "../api/source";
import { LOST_VERDICTS, VERDICT_TEXT } from "../api/states.gen";
import { type CubeData, loadCube } from "./cube";
import { Nav, VIEWS } from "./page/nav";
import { quantityOf } from "./quantity";
import { loadSeries, type SeriesData } from "./series";
import type { TaskStream } from "./stream";
import type { Axis } from "./time";
import { sharedLength, workerNames } from "./worker-names";

export type CubeName =
  | "time_by_prefix"
  | "time_by_worker"
  | "time_by_span"
  | "idle_by_reason"
  | "counts"
  | "activities"
  | "transfers"
  | "flame";

const COLOURS = 12;

/** The position of each prefix in the order in which the prefixes of a cluster first ran. */
export type PrefixOrder = ReadonlyMap<string, number>;

/** A report: its document, its columns on demand, and the state of the page. */
export class Model {
  readonly columns: Columns;
  readonly axis: Axis;
  readonly nav: Nav;
  /** Whether it shows a run that goes on, as far as the page follows it. */
  readonly isLive: boolean;
  private readonly cubes = new Map<CubeName, Promise<CubeData>>();
  private readonly colours: ReadonlyMap<string, string>;
  private readonly shared: number;
  private readonly names: ReadonlyMap<string, string>;
  /** When the last worker at each address left; 0 while one is connected. */
  private readonly lastStops = new Map<string, number>();
  private readonly position = new Map<string, number>();

  constructor(
    readonly report: Report,
    source: Source | MemorySource,
    readonly stream: TaskStream,
    /** False for charts inside another page. A model that replaces another one takes over its navigation. */
    nav: boolean | Nav = true,
    /** The order in the whole cluster, for the document of one computation. */
    order: PrefixOrder = new Map(report.prefixes.map((p) => [p.prefix, p.order])),
    /** The time up to which rows of a run that goes on have arrived. */
    readonly knownUntil = Number.POSITIVE_INFINITY,
  ) {
    this.axis = {
      length: Math.max(1, report.stop_us - report.start_us),
      width: report.bins.width_us,
      bins: report.bins.count,
    };
    this.nav =
      typeof nav === "boolean" ? new Nav(this.axis, VIEWS.find((v) => v === report.view) ?? "overview", nav) : nav;
    this.nav.axis = this.axis;
    this.isLive = source instanceof MemorySource;
    const streamFirst =
      this.nav.inUrl &&
      report.stream.bars > 0 &&
      (this.nav.state.view === "overview" || this.nav.state.view === "stream");
    this.columns = new Columns(source, streamFirst ? this.stream.painted : Promise.resolve());
    this.colours = coloursOf(report.prefixes.slice(0, COLOURS).map((p, i) => [p.prefix, order.get(p.prefix) ?? i]));
    for (const [i, w] of report.workers.entries()) {
      if (!this.position.has(w.worker)) this.position.set(w.worker, i);
      const last = this.lastStops.get(w.worker) ?? w.stop_us;
      this.lastStops.set(w.worker, Math.min(last, w.stop_us) > 0 ? Math.max(last, w.stop_us) : 0);
    }
    this.names = workerNames(report.workers);
    this.shared = sharedLength(report.workers.map((w) => w.name || w.worker));
  }

  cube(name: CubeName): Promise<CubeData> {
    let found = this.cubes.get(name);
    if (!found) {
      const cube: Cube = name === "flame" ? this.report.flame.cube : this.report[name];
      found = loadCube(cube, this.columns);
      this.cubes.set(name, found);
    }
    return found;
  }

  /** Return the samples of all workers. The last one of a worker counts until it left: samples are seconds apart. */
  series(measure: string): Promise<SeriesData | null> {
    return loadSeries(this.report.series, measure, this.axis.bins, this.columns, (address) => this.lastBin(address));
  }

  /** Return the bin in which the last worker at an address left; -1 while it is connected. */
  lastBin(address: string): number {
    const stop = this.lastStops.get(address) ?? 0;
    return stop > 0 ? Math.floor(this.since(stop) / this.axis.width) : -1;
  }

  /** Convert a timestamp to microseconds since the start of the report. */
  since(us: number): number {
    return us - this.report.start_us;
  }

  /** Return the CSS variable of the colour of a prefix; gray if eleven others took more time. */
  colour(prefix: string): string {
    return this.colours.get(prefix) ?? "--cat-rest";
  }

  /** Return the colours of the prefixes that took most time, longest first: the task stream names them by this rank. */
  get rankColours(): readonly string[] {
    return Array.from({ length: COLOURS }, (_, i) => this.colour(this.report.prefixes[i]?.prefix ?? ""));
  }

  /** Return the name of a worker that no other one has, or its address if it has no name. */
  worker(address: string): string {
    return this.names.get(address) ?? address;
  }

  /** Return the name of a worker without the beginning that all names share. */
  shortWorker(address: string): string {
    const name = this.worker(address);
    return this.shared > 0 && this.names.has(address) ? `…${name.slice(this.shared)}` : name;
  }

  /** Name a worker in a sentence: “worker 2”, or “a client” for an address that is not a worker's. */
  called(address: string): string {
    return this.names.has(address) ? `worker ${this.shortWorker(address)}` : "a client";
  }

  /**
   * Return the peak memory of all processes that had an address. The kernel keeps it, so it also counts what was between two samples; 0 if it is not known.
   */
  peakMemory(address: string): number {
    return Math.max(0, ...this.report.workers.filter((w) => w.worker === address).map((w) => w.peak_memory));
  }

  /** Compare two addresses by the position of their workers: one order for all panels. Unknown ones come last. */
  compareWorkers(a: string, b: string): number {
    const last = this.report.workers.length;
    return (this.position.get(a) ?? last) - (this.position.get(b) ?? last);
  }

  /** Return the name of a quantity of a worker; undefined if several processes had its address, because their values differ. */
  workerQuantity(kind: string, address: string): string | undefined {
    return this.report.workers.filter((w) => w.worker === address).length === 1 ? quantityOf(kind, address) : undefined;
  }

  /** Return when a worker left, or the end of the report. */
  stopOf(worker: Worker): number {
    return worker.stop_us > 0 ? this.since(worker.stop_us) : this.axis.length;
  }

  /** Return how many workers were connected at some time between `t0` and `t1`. */
  connectedIn(t0: number, t1: number): number {
    return this.report.workers.filter((w) => this.since(w.start_us) <= t1 && this.stopOf(w) >= t0).length;
  }
}

/**
 * Return the CSS variables of the colours of prefixes, by their position in the order in which prefixes first ran. The thirteenth begins
 * again; if one that ran earlier has its colour, it takes the first free one.
 */
function coloursOf(prefixes: readonly (readonly [name: string, order: number])[]): ReadonlyMap<string, string> {
  const taken = new Map<number, string>();
  const sorted = [...prefixes].sort((a, b) => a[1] - b[1]);
  const later = sorted.filter(([name, order]) => {
    const place = order % COLOURS;
    return taken.has(place) || !taken.set(place, name);
  });
  const free = Array.from({ length: COLOURS }, (_, i) => i).filter((place) => !taken.has(place));
  for (const [i, [name]] of later.entries()) taken.set(free[i], name);
  return new Map([...taken].map(([place, name]) => [name, `--cat-${place + 1}`]));
}

const LOST: ReadonlySet<string> = new Set(LOST_VERDICTS);

/** Return why a worker left, in words; "" while it is connected. */
export function verdictText(worker: { verdict: string }): string {
  return VERDICT_TEXT[worker.verdict] ?? worker.verdict;
}

export function isLost(worker: { verdict: string }): boolean {
  return LOST.has(worker.verdict);
}
