import type { Worker } from "../api/schema.gen";
import { type BinRange, type CubeData, overTime } from "./cube";
import { type Axis, type Selection, select, wholeRun } from "./time";

/** From this share of the run on, the active time is not worth a selection. */
const NEARLY_WHOLE = 0.9;

/** Return the time from the first to the last busy thread; the whole run if that is most of it or there is none. */
export function activeTime(cube: CubeData, axis: Axis): Selection {
  const idle = cube.keys.category.indexOf("idle");
  let first = axis.bins;
  let last = -1;
  overTime(cube, "category", "us", axis.bins).forEach((series, category) => {
    if (category === idle) return;
    for (let b = 0; b < axis.bins; b++) {
      if (series[b] <= 0) continue;
      first = Math.min(first, b);
      last = Math.max(last, b);
    }
  });
  if (last < 0 || (last + 1 - first) * axis.width >= NEARLY_WHOLE * axis.length) return wholeRun(axis);
  return select(axis, first * axis.width, (last + 1) * axis.width);
}

/** Return the sum of a number of all workers that were connected in the middle of each bin. */
export function connected(
  workers: readonly Pick<Worker, "start_us" | "stop_us" | "threads" | "memory_limit">[],
  key: "threads" | "memory_limit",
  start_us: number,
  width: number,
  { b0, b1 }: BinRange,
): Float64Array {
  const out = new Float64Array(b1 - b0);
  for (const w of workers)
    for (let b = b0; b < b1; b++) {
      const t = start_us + (b + 0.5) * width;
      if (t >= w.start_us && (w.stop_us === 0 || t < w.stop_us)) out[b - b0] += w[key];
    }
  return out;
}
