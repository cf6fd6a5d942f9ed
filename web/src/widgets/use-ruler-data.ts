import { useMemo } from "preact/hooks";
import { CATEGORIES } from "../api/schema.gen";
import type { RulerData } from "../charts/ruler";
import { overTime } from "../model/cube";
import { useCube, useModel } from "../model/hooks";
import { isLost } from "../model/model";

export function useRulerData(): RulerData | null {
  const model = useModel();
  const cube = useCube("time_by_prefix");
  return useMemo(() => {
    if (!cube) return null;
    const all = overTime(cube, "category", "us", model.axis.bins);
    const series = CATEGORIES.map((name) => all[cube.keys.category.indexOf(name)] ?? new Float64Array(model.axis.bins));
    let capacity = 0;
    for (let b = 0; b < model.axis.bins; b++)
      capacity = Math.max(
        capacity,
        series.reduce((sum, s) => sum + s[b], 0),
      );
    const marks = model.report.workers.filter(isLost).map((w) => ({ t: model.stopOf(w), colour: "--st-lost" }));
    return { series, capacity, marks };
  }, [cube, model]);
}
