import { useMemo } from "preact/hooks";
import { total } from "../model/cube";
import { clock, count, duration } from "../model/format";
import { useCube, useModel, useSelection } from "../model/hooks";

/** The selection as text: range, duration and number of tasks. */
export function SelectionText() {
  const model = useModel();
  const selection = useSelection();
  const cube = useCube("counts");
  const inside = useMemo(
    () => (cube && !selection.whole ? total(cube, "count", selection) : model.report.totals.tasks),
    [cube, selection.b0, selection.b1, selection.whole],
  );
  const step = Math.min(100_000, Math.max(1, (selection.t1 - selection.t0) / 20));
  const coarse = !selection.whole && selection.t1 - selection.t0 < 4 * model.axis.width;
  return (
    <span data-testid="selection-text" style="display:flex;gap:12px;flex-wrap:wrap">
      <b>{selection.whole ? "Whole run" : `${clock(selection.t0, step)} to ${clock(selection.t1, step)}`}</b>
      <span>{duration(selection.t1 - selection.t0)}</span>
      <span>
        {count(inside)} of {count(model.report.totals.tasks)} tasks
      </span>
      {coarse && (
        <span title="Totals are stored in bins of this duration">accurate to {duration(model.axis.width)}</span>
      )}
    </span>
  );
}
