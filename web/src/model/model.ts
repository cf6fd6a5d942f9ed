import type { Cube, Report, Worker } from "../api/schema.gen";
import { Columns, type Source } from "../api/source";
import { LOST_VERDICTS, VERDICT_TEXT } from "../api/states.gen";
import { type CubeData, loadCube } from "./cube";
import { Nav, VIEWS } from "./page/nav";
import type { TaskStream } from "./stream";
import type { Axis } from "./time";

export type CubeName =
  | "time_by_prefix"
  | "time_by_worker"
  | "time_by_span"
  | "idle_by_reason"
  | "counts"
  | "activities"
  | "transfers"
  | "flame";

/** A report: its document, its columns on demand, and the state of the page. */
export class Model {
  readonly columns: Columns;
  readonly axis: Axis;
  readonly nav: Nav;
  private readonly cubes = new Map<CubeName, Promise<CubeData>>();
  private readonly rank = new Map<string, number>();
  private readonly shared: number;
  private readonly workerAt = new Map<string, Worker>();

  constructor(
    readonly report: Report,
    source: Source,
    readonly stream: TaskStream,
    /** False for charts inside another page. */
    inUrl = true,
  ) {
    this.axis = {
      length: Math.max(1, report.stop_us - report.start_us),
      width: report.bins.width_us,
      bins: report.bins.count,
    };
    this.nav = new Nav(this.axis, VIEWS.find((v) => v === report.view) ?? "overview", inUrl);
    const streamFirst =
      inUrl && report.stream.bars > 0 && (this.nav.state.view === "overview" || this.nav.state.view === "stream");
    this.columns = new Columns(source, streamFirst ? this.stream.painted : Promise.resolve());
    for (const [i, p] of report.prefixes.entries()) this.rank.set(p.prefix, i);
    for (const w of report.workers) this.workerAt.set(w.worker, w);
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

  /** Convert a timestamp to microseconds since the start of the report. */
  since(us: number): number {
    return us - this.report.start_us;
  }

  /** Return the CSS variable of a prefix colour, by its rank of total time in the whole run. */
  colour(prefix: string): string {
    const rank = this.rank.get(prefix) ?? 99;
    return rank < 12 ? `--cat-${rank + 1}` : "--cat-rest";
  }

  /** Return the name of a worker, or its address if it has no name. */
  worker(address: string): string {
    return this.workerAt.get(address)?.name || address;
  }

  /** Return the name of a worker without the beginning that all names share. */
  shortWorker(address: string): string {
    const name = this.worker(address);
    return this.shared > 0 && this.workerAt.has(address) ? `…${name.slice(this.shared)}` : name;
  }

  /**
   * Return the peak memory of all processes that had an address. The kernel keeps it, so it also counts what was between two samples; 0 if it is not known.
   */
  peakMemory(address: string): number {
    return Math.max(0, ...this.report.workers.filter((w) => w.worker === address).map((w) => w.peak_memory));
  }

  /** Return when a worker left, or the end of the report. */
  stopOf(worker: Worker): number {
    return worker.stop_us > 0 ? this.since(worker.stop_us) : this.axis.length;
  }
}

const LOST: ReadonlySet<string> = new Set(LOST_VERDICTS);

/** Return why a worker left, in words; "" while it is connected. */
export function verdictText(worker: { verdict: string }): string {
  return VERDICT_TEXT[worker.verdict] ?? worker.verdict;
}

export function isLost(worker: { verdict: string }): boolean {
  return LOST.has(worker.verdict);
}

/** Worker names that differ only at the end would all be truncated to the same text. */

/** Shorter common prefixes are kept, because people use them as part of the name. */
const MIN_SHARED = 8;

/** Return the length of the common prefix up to the last character that is not a letter or digit; 0 if it is short. */
export function sharedLength(names: readonly string[]): number {
  if (new Set(names).size < 2) return 0;
  let length = names[0].length;
  for (const name of names) while (!name.startsWith(names[0].slice(0, length))) length--;
  while (length > 0 && /[\p{L}\p{N}]/u.test(names[0][length - 1])) length--;
  return length < MIN_SHARED || names.some((name) => name.length === length) ? 0 : length;
}
