import { useRef, useState } from "preact/hooks";
import type { TaskDetail } from "../charts/stream/engine";
import { clock, duration, nbytes } from "../model/format";
import { useModel } from "../model/hooks";
import type { Model } from "../model/model";
import { select } from "../model/time";

const STEPS: Readonly<Record<string, readonly [across: number, down: number]>> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

interface TaskCursor {
  /** The task that arrow keys have reached. */
  detail: TaskDetail | null;
  /** The same in words, for those who do not see it. */
  text: string;
  onKey: (event: KeyboardEvent) => void;
  clear: () => void;
}

/** Arrow keys go from task to task: left and right along a thread, up and down to other threads; Enter opens. */
export function useTaskCursor(onTask: (task: number) => void): TaskCursor {
  const model = useModel();
  const [detail, setDetail] = useState<TaskDetail | null>(null);
  // Keys come faster than answers: each step waits for the one before it, and none outlives the focus.
  const at = useRef(-1);
  const steps = useRef(Promise.resolve());
  const visit = useRef(0);
  const clear = () => {
    visit.current++;
    at.current = -1;
    setDetail(null);
  };
  const move = async (mine: number, across: number, down: number) => {
    if (mine !== visit.current) return;
    const tick = model.report.stream.tick_us;
    const { t0, t1 } = model.nav.state.selection;
    const next = at.current >= 0 ? await model.stream.beside(at.current, across, down) : await model.stream.first(t0 / tick, t1 / tick);
    const found = next >= 0 ? await model.stream.detail(next) : null;
    if (mine !== visit.current) return;
    at.current = next;
    if (found) show(model, found);
    setDetail(found);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = STEPS[event.key];
    const mine = visit.current;
    if (step) steps.current = steps.current.then(() => move(mine, ...step));
    else if (event.key === "Enter" && detail) onTask(detail.task);
    else if (event.key === "Escape" && detail) {
      clear();
      // The page would take the selection back as well.
      event.stopPropagation();
    } else return;
    event.preventDefault();
  };
  return { detail, text: detail ? say(model, detail) : "", onKey, clear };
}

/** Moves the selected time, as long as it is, so that the task is in it. */
function show(model: Model, task: TaskDetail): void {
  const { axis, nav, report } = model;
  const { t0, t1 } = nav.state.selection;
  const from = task.start * report.stream.tick_us;
  const to = task.stop * report.stream.tick_us;
  if (to >= t0 && from <= t1) return;
  const start = Math.max(0, Math.min(axis.length - (t1 - t0), (from + to - (t1 - t0)) / 2));
  nav.select(select(axis, start, start + t1 - t0));
}

function say(model: Model, task: TaskDetail): string {
  const { report } = model;
  const tick = report.stream.tick_us;
  const worker = report.workers[report.stream.lanes[task.lane]?.worker];
  const status = report.stream.statuses[task.status] ?? "";
  return [
    report.prefixes[task.prefix]?.prefix ?? "", duration((task.stop - task.start) * tick), `started ${clock(task.start * tick, 1000)}`, worker ? `worker ${worker.name || worker.worker}` : "",
    task.nbytes >= 0 ? `output ${nbytes(task.nbytes)}` : "", status === "ok" ? "" : `ended ${status}`, `task ${task.task + 1} of ${report.stream.tasks}`,
  ].filter(Boolean).join(", ");
}
