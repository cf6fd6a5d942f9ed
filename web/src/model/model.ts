import type { Cube, Report, Worker } from "../api/schema.gen";
import { Columns, type Source } from "../api/source";
import { StreamClient } from "../charts/stream/client";
import { type CubeData, loadCube } from "./cube";
import { sharedLength } from "./names";
import { Nav, VIEWS } from "./nav";
import type { Axis } from "./time";

export type CubeName = "time_by_prefix" | "time_by_worker" | "time_by_span" | "counts" | "activities" | "transfers" | "flame";

/** One report: the document, its columns on demand, and the state of the page. */
export class Model {
  readonly columns: Columns;
  readonly axis: Axis;
  readonly nav: Nav;
  readonly stream: StreamClient;
  private readonly cubes = new Map<CubeName, Promise<CubeData>>();
  private readonly rank = new Map<string, number>();
  private readonly shared: number;
  private readonly workerAt = new Map<string, Worker>();

  constructor(
    readonly report: Report,
    source: Source,
  ) {
    this.axis = { length: Math.max(1, report.stop_us - report.start_us), width: report.bins.width_us, bins: report.bins.count };
    this.nav = new Nav(this.axis, VIEWS.find((v) => v === report.view) ?? "overview");
    this.stream = new StreamClient(source, report);
    const streamFirst = report.stream.bars > 0 && (this.nav.state.view === "overview" || this.nav.state.view === "stream");
    this.columns = new Columns(source, streamFirst ? this.stream.painted : Promise.resolve());
    report.prefixes.forEach((p, i) => this.rank.set(p.prefix, i));
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

  /** Microseconds since the start of the report. */
  since(us: number): number {
    return us - this.report.start_us;
  }

  /** The colour of a prefix: its rank by total time in the whole run. */
  colour(prefix: string): string {
    const rank = this.rank.get(prefix) ?? 99;
    return rank < 12 ? `--cat-${rank + 1}` : "--cat-rest";
  }

  /** A worker's name, or its address where it has none. */
  worker(address: string): string {
    return this.workerAt.get(address)?.name || address;
  }

  /** The same where there is little room: without what the names of all workers begin with. */
  brief(address: string): string {
    const name = this.worker(address);
    return this.shared > 0 && this.workerAt.has(address) ? `…${name.slice(this.shared)}` : name;
  }

  /** When a worker left, or the end of the report. */
  stopOf(worker: Worker): number {
    return worker.stop_us > 0 ? this.since(worker.stop_us) : this.axis.length;
  }
}

const LOST = new Set(["memory kill", "vanished", "lost connection"]);

export function isLost(worker: Worker): boolean {
  return LOST.has(worker.verdict);
}
