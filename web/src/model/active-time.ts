import { type CubeData, overTime } from "./cube";
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
