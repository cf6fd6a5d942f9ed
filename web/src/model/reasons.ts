import type { Reason } from "../api/schema.gen";
import { type BinRange, type CubeData, sumBy } from "./cube";

/** Return the reasons in the selected time, longest first. Reasons without time there are left out. */
export function reasonsIn(cube: CubeData, reasons: readonly Reason[], range: BinRange): Reason[] {
  const us = sumBy(cube, "reason", "us", range);
  const label = new Map(reasons.map((r) => [r.reason, r.label]));
  return byLength(cube.keys.reason.map((reason, i) => ({ reason, label: label.get(reason) ?? reason, us: us[i] })));
}

export function byLength(reasons: readonly Reason[]): Reason[] {
  return reasons.filter((r) => r.us > 0).sort((a, b) => b.us - a.us);
}
