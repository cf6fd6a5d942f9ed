import { useNav } from "../model/page/hooks";
import { ViewHead } from "../widgets/basics";
import { StreamPanel } from "../widgets/stream/stream-panel";
import { TaskPanel } from "../widgets/stream/task-panel";
import { TimeRuler } from "../widgets/stream/time-ruler";
import { useWindowHeight } from "../widgets/use-canvas";
import { CriticalPath } from "./critical-path";

/** Height of everything else on the page: top bar, ruler, head and foot of the stream. */
const ABOVE = 425;

export function TaskStreamPage() {
  const { params } = useNav();
  const height = useWindowHeight();
  const task = /^\d+$/.test(params.item ?? "") ? Number(params.item) : -1;
  return (
    <>
      <ViewHead title="Timeline" note="Drag to select time. Click a bar to open its task. Ctrl + wheel to zoom." />
      <div class={task >= 0 ? "detailgrid open" : "detailgrid"}>
        <div>
          <TimeRuler joined />
          <StreamPanel maxHeight={Math.max(360, height - ABOVE)} page />
        </div>
        {task >= 0 && <TaskPanel task={task} />}
      </div>
      <CriticalPath />
    </>
  );
}
