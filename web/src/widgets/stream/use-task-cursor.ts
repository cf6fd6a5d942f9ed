import { useRef, useState } from "preact/hooks";
import type { Model } from "../../model/model";
import { useModel } from "../../model/page/hooks";
import type { TaskDetail } from "../../model/stream";
import { clock, duration, nbytes } from "../../model/text/format";
import { select } from "../../model/time";

const STEPS: Readonly<Record<string, readonly [across: number, down: number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

interface TaskCursor {
  /** The task at the keyboard cursor. */
  detail: TaskDetail | null;
  /** Description of the task for screen readers. */
  text: string;
  onKey: (event: KeyboardEvent) => void;
  clear: () => void;
}

/** A keyboard cursor. Left and right move along a thread, up and down between threads, Enter opens the task. */
export function useTaskCursor(onTask: (task: number) => void): TaskCursor {
  const model = useModel();
  const [detail, setDetail] = useState<TaskDetail | null>(null);
  // Keys can come faster than answers: each step waits for the previous one, and losing the focus cancels all of them.
  const at = useRef(-1);
  const steps = useRef(Promise.resolve());
  const visit = useRef(0);
  const clear = () => {
    visit.current++;
    at.current = -1;
    setDetail(null);
  };
  const move = async (current: number, across: number, down: number) => {
    if (current !== visit.current) return;
    const tick = model.report.stream.tick_us;
    const { t0, t1 } = model.nav.state.selection;
    const next =
      at.current >= 0
        ? await model.stream.beside(at.current, across, down)
        : await model.stream.first(t0 / tick, t1 / tick);
    const found = next >= 0 ? await model.stream.detail(next) : null;
    if (current !== visit.current) return;
    at.current = next;
    if (found) moveSelectionTo(model, found);
    setDetail(found);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = STEPS[event.key];
    const current = visit.current;
    if (step) steps.current = steps.current.then(() => move(current, ...step));
    else if (event.key === "Enter" && detail) onTask(detail.task);
    else if (event.key === "Escape" && detail) {
      clear();
      // Keep the page from clearing the selection as well.
      event.stopPropagation();
    } else return;
    event.preventDefault();
  };
  return { detail, text: detail ? describe(model, detail) : "", onKey, clear };
}

/** Move the selection so that it contains the task, without changing its length. */
export function moveSelectionTo(model: Model, task: Pick<TaskDetail, "start" | "stop">): void {
  const { axis, nav, report } = model;
  const { t0, t1, whole } = nav.state.selection;
  const from = task.start * report.stream.tick_us;
  const to = task.stop * report.stream.tick_us;
  // A task that only touches the selection is not drawn, and the lanes of a worker that left before it are not shown.
  const edge = (t1 - t0) / 100;
  if (whole || (to >= t0 + edge && from <= t1 - edge)) return;
  const start = Math.max(0, Math.min(axis.length - (t1 - t0), (from + to - (t1 - t0)) / 2));
  nav.select(select(axis, start, start + t1 - t0));
}

function describe(model: Model, task: TaskDetail): string {
  const { report } = model;
  const tick = report.stream.tick_us;
  const worker = report.workers[report.stream.lanes[task.lane]?.worker];
  const status = report.stream.statuses[task.status] ?? "";
  return [
    report.prefixes[task.prefix]?.prefix ?? "",
    duration((task.stop - task.start) * tick),
    `started ${clock(task.start * tick, 1000)}`,
    worker ? model.called(worker.worker) : "",
    task.nbytes >= 0 ? `output ${nbytes(task.nbytes)}` : "",
    status === "ok" ? "" : `status ${status}`,
    `task ${task.task + 1} of ${report.stream.tasks}`,
  ]
    .filter(Boolean)
    .join(", ");
}
