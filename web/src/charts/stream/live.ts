import type { Stream } from "../../api/schema.gen";
import type { LiveDocument } from "../../model/live/live-document";
import { isExecution, type LiveLane } from "../../model/live/live-lanes";
import type { LiveRun } from "../../model/live/live-run";
import type { StreamData, StreamView, TaskDetail, TaskMark, TaskStream } from "../../model/stream";
import { StreamEngine } from "./engine";

/** The task stream of a live run. It has every increment as soon as it arrives, and numbers tasks in the order of their arrival. */
export class LiveTaskStream implements TaskStream {
  readonly ready = Promise.resolve();
  readonly painted = Promise.resolve();
  private version = -1;
  private bars: LiveBars | null = null;
  private engine: StreamEngine | null = null;
  private drawn = 0;

  constructor(
    private readonly run: LiveRun,
    private readonly document: LiveDocument,
    private readonly room = new BarRoom(),
  ) {}

  /** The bars as they are now: an engine takes 2 ms for 50,000 of them. */
  private get now(): { engine: StreamEngine; bars: LiveBars } {
    const { lanes } = this.run;
    if (!this.engine || !this.bars || this.version !== lanes.version || this.room.user !== this) {
      this.version = lanes.version;
      this.room.user = this;
      this.bars = barsOf(this.document, this.run.latest, this.room);
      this.engine = StreamEngine.of(this.bars.stream, this.bars.data, this.bars.keyAt);
    }
    return { engine: this.engine, bars: this.bars };
  }

  async draw(view: StreamView): Promise<ArrayBuffer> {
    const size = view.width * view.height * 4;
    const { pixels: spare } = this.room;
    const pixels = spare?.byteLength === size ? spare : new ArrayBuffer(size);
    this.room.pixels = null;
    this.now.engine.draw(view, new Uint32Array(pixels));
    this.drawn = this.run.tasks;
    return pixels;
  }

  recycle(pixels: ArrayBuffer): void {
    this.room.pixels = pixels;
    // For benchmarks. Marks and measures stay in memory until they are cleared, and a page may follow for days.
    performance.clearMeasures("daskscope-redraw");
    performance.clearMarks("daskscope-live-drawn");
    performance.mark("daskscope-live-drawn", { detail: this.drawn });
  }

  async hit(lane: number, lanes: number, t: number, slack: number): Promise<number> {
    const { engine, bars } = this.now;
    return bars.tasks[engine.hit(lane, lanes, t, slack)] ?? -1;
  }

  async detail(task: number): Promise<TaskDetail | null> {
    const { engine, bars } = this.now;
    const at = bars.tasks.indexOf(task);
    if (at < 0) throw new Error("This task is no longer shown. A page that follows a run keeps its last minutes.");
    const found = engine.detail(at);
    return found && { ...found, task };
  }

  async beside(task: number, across: number, down: number): Promise<number> {
    const { engine, bars } = this.now;
    const at = bars.tasks.indexOf(task);
    return at < 0 ? task : bars.tasks[engine.beside(at, across, down)];
  }

  async first(t0: number, t1: number): Promise<number> {
    const { engine, bars } = this.now;
    return bars.tasks[engine.first(t0, t1)] ?? -1;
  }

  async tasksIn(t0: number, t1: number, limit: number): Promise<{ rows: TaskDetail[]; of: number }> {
    const { engine, bars } = this.now;
    const { rows, of } = engine.tasksIn(t0, t1, limit);
    return { rows: rows.map((row) => ({ ...row, task: bars.tasks[row.task] })), of };
  }

  async find(text: string, limit: number): Promise<{ tasks: number[]; of: number }> {
    const { engine, bars } = this.now;
    const { tasks, of } = engine.find(text, limit);
    return { tasks: tasks.map((task) => bars.tasks[task]), of };
  }

  async marks(tasks: readonly number[]): Promise<TaskMark[]> {
    const { engine, bars } = this.now;
    const places = new Map<number, number>();
    bars.tasks.forEach((task, i) => {
      places.set(task, i);
    });
    return engine
      .marks(tasks.map((task) => places.get(task) ?? -1))
      .map((mark) => ({ ...mark, task: bars.tasks[mark.task] }));
  }
}

/** Bars in the form that the engine draws. */
interface LiveBars {
  stream: Stream;
  data: StreamData;
  keyAt: (task: number) => string;
  /** The number of each task in the order of arrival. */
  tasks: Float64Array;
}

/** Columns and pixels of bars that are used again and again: 20 increments a second with 50,000 bars are 40 MB a second otherwise. */
export class BarRoom {
  /** Who filled it last. */
  user: unknown = null;
  pixels: ArrayBuffer | null = null;
  private size = 0;
  private columns:
    | (Pick<StreamData, "start" | "length" | "task" | "bar"> &
        Record<"action" | "status", Uint8Array> &
        Record<"prefix" | "numbers", Float64Array>)
    | null = null;

  take(bars: number) {
    if (!this.columns || this.size < bars) {
      this.size = Math.ceil(bars * 1.25);
      const { size } = this;
      this.columns = {
        start: new Float64Array(size),
        length: new Float64Array(size),
        task: new Uint32Array(size),
        bar: new Uint32Array(size),
        action: new Uint8Array(size),
        status: new Uint8Array(size),
        prefix: new Float64Array(size),
        numbers: new Float64Array(size),
      };
    }
    return this.columns;
  }
}

export function barsOf(
  { lanes, ranks, report }: Pick<LiveDocument, "lanes" | "ranks" | "report">,
  end: number,
  room: BarRoom,
): LiveBars {
  const bars = lanes.reduce((sum, lane) => sum + lane.start.length, 0);
  const { start, length, action, task, bar, prefix, status, numbers } = room.take(bars);
  let first = 0;
  let tasks = 0;
  const placed = lanes.map((lane, l) => {
    start.set(lane.start, first);
    length.set(lane.length, first);
    const before = tasks;
    for (let i = 0; i < lane.start.length; i++) {
      const category = lane.category[i];
      const isTask = isExecution(category);
      action[first + i] = isTask ? 0 : category;
      if (!isTask) continue;
      bar[tasks] = first + i;
      task[first + i] = tasks;
      prefix[tasks] = ranks[lane.prefix[i]];
      status[tasks] = category === 0 ? 0 : 1;
      numbers[tasks] = lane.task[i];
      tasks++;
    }
    setOwners(lane, before, task.subarray(first, first + lane.start.length));
    const place = { ...report.stream.lanes[l], first, count: lane.start.length, tasks: tasks - before };
    first += lane.start.length;
    return place;
  });
  const keyAt = (at: number) => {
    const place = placed.findIndex((lane) => bar[at] < lane.first + lane.count);
    return lanes[place]?.key[bar[at] - placed[place].first] ?? "";
  };
  // Only the first part of the room is used.
  const data = {
    bars,
    tasks,
    end,
    start,
    length,
    action,
    task,
    bar: bar.subarray(0, tasks),
    columns: { prefix, status },
  };
  return { stream: { ...report.stream, lanes: placed }, data, keyAt, tasks: numbers.subarray(0, tasks) };
}

/** Set the task of each bar that is not an execution. Increments do not name it: it is the next one of the prefix, or else the one before. */
function setOwners(lane: LiveLane, first: number, task: Uint32Array): void {
  let before = -1;
  for (let i = 0, executions = 0; i < lane.start.length; i++) {
    if (isExecution(lane.category[i])) {
      before = i;
      executions++;
      continue;
    }
    let next = i + 1;
    while (next < lane.start.length && !isExecution(lane.category[next])) next++;
    const isBefore =
      before >= 0 &&
      lane.prefix[before] === lane.prefix[i] &&
      (next === lane.start.length ||
        lane.prefix[next] !== lane.prefix[i] ||
        lane.start[i] <= lane.start[before] + lane.length[before]);
    task[i] = first + (isBefore || next === lane.start.length ? Math.max(0, executions - 1) : executions);
  }
}
