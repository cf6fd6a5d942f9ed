import type { Column } from "../../api/increments";
import { LIVE_WINDOW_S } from "../../api/limits.gen";
import type { IncrementWorker } from "../../api/server.gen";

export const MEMORY_MEASURES = ["memory", "managed", "spilled"] as const;
/** What is kept of the samples of a worker. */
const MEASURES = [...MEMORY_MEASURES, "paused"] as const;
type Measure = (typeof MEASURES)[number];

/** Seconds of samples that are kept: the window, and what arrives before the next one is forgotten. */
export const KEPT_S = LIVE_WINDOW_S + 60;

/** A worker and its samples of the last minutes. */
export interface LiveWorker extends IncrementWorker {
  /** Values of second `s` at `s % KEPT_S`, NaN without a sample; null without any. */
  samples: Record<Measure, Float32Array> | null;
  /** The last second with a sample; -1 without one. */
  last: number;
}

const unknown = () => new Float32Array(KEPT_S).fill(Number.NaN);

/** Workers and their memory by second. A worker has 11 kB of samples, however long the page is open. */
export class LiveWorkers {
  readonly workers = new Map<string, LiveWorker>();

  update(rows: readonly IncrementWorker[]): void {
    for (const row of rows) {
      const known = this.workers.get(row.worker);
      // An address that is used again: rows of the worker that left before may come later.
      if (known && row.start_us < known.start_us) continue;
      this.workers.set(row.worker, { samples: known?.samples ?? null, last: known?.last ?? -1, ...row });
    }
  }

  isConnected(worker: string): boolean {
    return this.workers.get(worker)?.stop_us === 0;
  }

  /** Add samples, in order of their seconds. */
  add(samples: Record<string, Column>, names: readonly string[]): void {
    const { second } = samples;
    for (let i = 0; i < second.length; i++) {
      const worker = this.workers.get(names[samples.worker[i]]);
      if (!worker || second[i] <= worker.last - KEPT_S) continue;
      worker.samples ??= { memory: unknown(), managed: unknown(), spilled: unknown(), paused: unknown() };
      for (const name of MEASURES) {
        const values = worker.samples[name];
        // The place of a second was used by one that is too old now.
        for (let s = Math.max(worker.last + 1, second[i] - KEPT_S + 1); s <= second[i]; s++)
          values[s % KEPT_S] = Number.NaN;
        values[second[i] % KEPT_S] = samples[name][i];
      }
      worker.last = Math.max(worker.last, second[i]);
    }
  }

  /** Forget the samples of workers that left before a second. */
  forget(before: number): void {
    for (const worker of this.workers.values())
      if (worker.stop_us !== 0 && worker.last < before) Object.assign(worker, { samples: null, last: -1 });
  }
}

/** Return the seconds [from, to) in which a worker was paused. */
export function pausesOf(worker: LiveWorker): [number, number][] {
  const found: [number, number][] = [];
  for (let second = Math.max(0, worker.last - KEPT_S + 1); second <= worker.last; second++) {
    // Without a sample, the worker is as it was before.
    const paused = sampleAt(worker, "paused", second);
    const open = found.at(-1);
    const isOpen = open?.[1] === second;
    if (open && isOpen && paused !== 0) open[1] = second + 1;
    else if (paused > 0) found.push([second, second + 1]);
  }
  return found;
}

/** Return a value of a worker in a second, NaN if it is not known. */
export function sampleAt({ samples, last }: LiveWorker, measure: Measure, second: number): number {
  return samples && second >= 0 && second <= last && second > last - KEPT_S
    ? samples[measure][second % KEPT_S]
    : Number.NaN;
}
