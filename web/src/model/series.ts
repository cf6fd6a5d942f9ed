import type { Numbers } from "../api/decode";
import type { Series } from "../api/schema.gen";
import type { Columns } from "../api/source";

/** Samples of one measure: one row per worker, one value per bin. */
export interface SeriesData {
  workers: string[];
  bins: number;
  values: Numbers;
}

/** `held` is the bin until which the last sample of a worker counts. */
export async function loadSeries(
  series: Series,
  measure: string,
  bins: number,
  columns: Columns,
  held?: (worker: string) => number,
): Promise<SeriesData | null> {
  const block = series.measures[measure];
  if (!block) return null;
  return {
    workers: series.workers,
    bins,
    values: fillGaps(await columns.numbers(block), bins, (row) => held?.(series.workers[row]) ?? -1),
  };
}

/**
 * Fill the gaps between two samples of a worker with the first one. The last one holds until the bin that `held` has for its row. There is
 * no value before the first one.
 */
export function fillGaps(values: Numbers, bins: number, held: (row: number) => number = () => -1): Numbers {
  const out = values.slice();
  for (let from = 0; from + bins <= out.length; from += bins) {
    let last = from + bins - 1;
    while (last >= from && Number.isNaN(out[last])) last--;
    const stop = from + Math.min(bins - 1, Math.max(last - from, held(from / bins)));
    for (let i = from + 1; i <= stop; i++) if (Number.isNaN(out[i])) out[i] = out[i - 1];
  }
  return out;
}

export function rowOf(data: SeriesData, worker: number): Numbers {
  return data.values.subarray(worker * data.bins, (worker + 1) * data.bins);
}

/** Return the largest sample in the bins, NaN if there is none. */
export function peak(data: SeriesData, worker: number, b0: number, b1: number): number {
  let most = Number.NaN;
  const row = rowOf(data, worker);
  for (let b = b0; b < b1; b++) if (!Number.isNaN(row[b]) && !(row[b] <= most)) most = row[b];
  return most;
}

/** Return the sum of all workers per bin, NaN where no worker was sampled. */
export function sumWorkers(data: SeriesData, b0: number, b1: number): Float64Array {
  const out = new Float64Array(b1 - b0).fill(Number.NaN);
  data.workers.forEach((_, w) => {
    const row = rowOf(data, w);
    for (let b = b0; b < b1; b++) {
      const v = row[b];
      if (!Number.isNaN(v)) out[b - b0] = (Number.isNaN(out[b - b0]) ? 0 : out[b - b0]) + v;
    }
  });
  return out;
}
