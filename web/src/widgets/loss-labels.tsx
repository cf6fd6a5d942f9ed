import { losses } from "../charts/stream/decorations";
import type { LaneLayout } from "../charts/stream/layout";
import { clock } from "../model/format";
import { useModel, useSelection } from "../model/hooks";
import { verdictText } from "../model/model";

/** Labels of the workers that were lost in the selected time. */
export function LossLabels({ layout, width, scroll }: { layout: LaneLayout; width: number; scroll: number }) {
  const model = useModel();
  const selection = useSelection();
  return (
    <>
      {losses(width, layout, model, selection).map(({ group, worker, x }) =>
        group.height >= 14 && x < width - 40 ? (
          <span
            class="lossmark"
            key={group.worker}
            style={{
              left: `${x + 8}px`,
              top: `${group.y - scroll + group.height / 2 - 8}px`,
              maxWidth: `${width - x - 8}px`,
            }}
          >
            {x < width - 240
              ? `${worker.name || worker.worker} ${verdictText(worker)} at ${clock(model.stopOf(worker))}`
              : "lost"}
          </span>
        ) : null,
      )}
    </>
  );
}
