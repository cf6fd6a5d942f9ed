import { useNav } from "../model/hooks";
import { ViewHead } from "../widgets/basics";
import { StreamPanel } from "../widgets/stream-panel";
import { TaskPanel } from "../widgets/task-panel";
import { TimeRuler } from "../widgets/time-ruler";

export function StreamPage() {
  const { params } = useNav();
  const task = /^\d+$/.test(params.item ?? "") ? Number(params.item) : -1;
  return (
    <>
      <ViewHead title="Task stream" note="drag to select time, click a bar for its task, Ctrl and wheel to zoom" />
      <div class={task >= 0 ? "detailgrid open" : "detailgrid"}>
        <div>
          <TimeRuler joined />
          <StreamPanel maxHeight={Math.max(360, innerHeight - 330)} page />
        </div>
        {task >= 0 && <TaskPanel task={task} />}
      </div>
    </>
  );
}
