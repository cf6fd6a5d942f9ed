import type { Column } from "../../api/increments";
import type { IncrementWorker } from "../../api/server.gen";

/** A worker and its last sample. */
export interface LiveWorker extends IncrementWorker {
  memory: number;
  managed: number;
  spilled: number;
  cpu: number;
  executing: number;
  ready: number;
  paused: boolean;
}

/** Sums over all connected workers. */
export interface Totals {
  memory: number;
  memory_limit: number;
  spilled: number;
  cpu: number;
  executing: number;
  ready: number;
  threads: number;
  workers: number;
}

const SUMMED = ["memory", "memory_limit", "spilled", "cpu", "executing", "ready", "threads"] as const;
/** Moments that are kept: ten minutes by second, and coarser ones before. */
const MAX_MOMENTS = 2_400;

/** Workers, and their sums at the end of every second in which one of them sent a sample. */
export class LiveWorkers {
  readonly workers = new Map<string, LiveWorker>();
  private moments: { second: number; totals: Totals }[] = [];

  update(rows: readonly IncrementWorker[]): void {
    for (const row of rows) {
      const known = this.workers.get(row.worker);
      // An address that is used again: rows of the worker that left before may come later.
      if (known && row.start_us < known.start_us) continue;
      const values =
        known && row.stop_us === 0
          ? known
          : { memory: 0, managed: 0, spilled: 0, cpu: 0, executing: 0, ready: 0, paused: false };
      this.workers.set(row.worker, { ...values, ...row });
    }
  }

  isConnected(worker: string): boolean {
    return this.workers.get(worker)?.stop_us === 0;
  }

  get connected(): LiveWorker[] {
    return [...this.workers.values()].filter((worker) => worker.stop_us === 0);
  }

  /** Add samples, in order of their seconds. */
  add(samples: Record<string, Column>, names: readonly string[]): void {
    const { second } = samples;
    for (let i = 0; i < second.length; i++) {
      const worker = this.workers.get(names[samples.worker[i]]);
      if (worker && worker.stop_us === 0) {
        for (const name of ["memory", "managed", "spilled", "cpu", "executing", "ready"] as const)
          worker[name] = samples[name][i];
        worker.paused = samples.paused[i] > 0;
      }
      if (i + 1 === second.length || second[i + 1] !== second[i]) this.note(second[i]);
    }
  }

  private note(second: number): void {
    const last = this.moments.at(-1);
    const totals = this.totals();
    if (last && last.second >= second) last.totals = totals;
    else this.moments.push({ second, totals });
    if (this.moments.length > MAX_MOMENTS) {
      // Keep every second one of the older half.
      const half = this.moments.length >> 1;
      this.moments = this.moments.filter((_, i) => i >= half || i % 2 === 0);
    }
  }

  totals(): Totals {
    const sums: Totals = {
      memory: 0,
      memory_limit: 0,
      spilled: 0,
      cpu: 0,
      executing: 0,
      ready: 0,
      threads: 0,
      workers: 0,
    };
    for (const worker of this.workers.values()) {
      if (worker.stop_us !== 0) continue;
      for (const name of SUMMED) sums[name] += worker[name];
      sums.workers++;
    }
    return sums;
  }

  /** Return the values of a measure in [from, to] seconds: where they are known, and the last one before. */
  series(measure: keyof Totals, from: number, to: number): { x: number[]; y: number[] } {
    const x: number[] = [];
    const y: number[] = [];
    for (const { second, totals } of this.moments) {
      if (second > to) break;
      if (second < from && x.length > 0) {
        x.length = 0;
        y.length = 0;
      }
      x.push(second + 0.5);
      y.push(totals[measure]);
    }
    return { x, y };
  }

  get size(): number {
    return this.moments.length;
  }
}
