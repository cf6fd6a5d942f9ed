import type { CubeData } from "./cube";

export interface Pair {
  source: string;
  destination: string;
  count: number;
  nbytes: number;
  compressed: number;
  us: number;
}

/** Return the bytes per second of transfer time. */
export const rate = (p: { nbytes: number; us: number }) => (p.us > 0 ? p.nbytes / (p.us / 1e6) : 0);

/** Less data says how long a round trip takes, and not how fast a pair is. */
const MIN_RATED = 2 ** 20;

/** Return whether a pair moved enough bytes to compare its rate. */
export const isRated = (p: Pick<Pair, "nbytes" | "us">) => p.nbytes >= MIN_RATED && p.us > 0;

/** Sum the transfers of the bins by sender and receiver. */
export function pairs(cube: CubeData, b0: number, b1: number): Pair[] {
  const found = new Map<number, Pair>();
  const n = cube.keys.destination.length;
  const { source, destination } = cube.codes;
  const m = cube.measures;
  for (let row = 0; row < cube.rows; row++) {
    if (cube.bin[row] < b0 || cube.bin[row] >= b1) continue;
    const key = source[row] * n + destination[row];
    let pair = found.get(key);
    if (!pair) {
      pair = {
        source: cube.keys.source[source[row]],
        destination: cube.keys.destination[destination[row]],
        count: 0,
        nbytes: 0,
        compressed: 0,
        us: 0,
      };
      found.set(key, pair);
    }
    pair.count += m.count[row];
    pair.nbytes += m.nbytes[row];
    pair.compressed += m.compressed[row];
    pair.us += m.us[row];
  }
  return [...found.values()];
}
