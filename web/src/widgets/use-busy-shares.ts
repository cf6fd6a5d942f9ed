import { sumByTwo } from "../model/cube";
import { useFromCube, useModel, useSettledSelection } from "../model/hooks";

/** Return the busy share of each worker in the selected time. */
export function useBusyShares(): Float64Array | null {
  const selection = useSettledSelection();
  const model = useModel();
  return useFromCube(
    "time_by_worker",
    (cube) => {
      const idle = cube.keys.category.indexOf("idle");
      const sums = sumByTwo(cube, "worker", "category", "us", selection);
      const at = new Map(cube.keys.worker.map((w, i) => [w, i]));
      return Float64Array.from(model.report.workers, (w) => {
        const row = sums[at.get(w.worker) ?? -1];
        const all = row ? row.reduce((a, b) => a + b, 0) : 0;
        return all > 0 ? (all - (row[idle] ?? 0)) / all : Number.NaN;
      });
    },
    [selection.b0, selection.b1],
  );
}
