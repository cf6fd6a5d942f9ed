import { decodeLines, decodeNumbers, type Numbers, type Raw } from "../../api/decode";
import type { Lane, Stream } from "../../api/schema.gen";
import {
  BAR_STYLE,
  barStyles,
  decodeStream,
  keyOf,
  lowerBound,
  type StreamColumn,
  type StreamData,
  type StreamView,
  type TaskDetail,
  type TaskMark,
} from "../../model/stream";
import { buildMip, halve, type Mip } from "./mip";
import { paint } from "./paint";

export interface StreamInit {
  stream: Stream;
  raws: Partial<Record<string, Raw>>;
  end: number;
}

/** Number of bars from which zoomed-out views are drawn from bins. */
const MIP_FROM = 150_000;

/** Draws and searches the bars of the task stream. */
export class StreamEngine {
  private lines: string[] = [];
  private mips: Mip[] = [];
  private building: Generator<undefined, Mip> | null = null;

  private constructor(
    private readonly stream: Stream,
    private readonly data: StreamData,
    private readonly styles: Uint8Array,
    private readonly longest: Float64Array,
    /** Returns the key of a task, if keys are not among the columns. */
    private readonly keyAt: ((task: number) => string) | null,
  ) {}

  static async load({ stream, raws, end }: StreamInit): Promise<StreamEngine> {
    return StreamEngine.of(stream, decodeStream(stream, await numbers(stream, raws), end));
  }

  /** Return an engine for decoded bars. */
  static of(stream: Stream, data: StreamData, keyAt: ((task: number) => string) | null = null): StreamEngine {
    const styles = barStyles(data, stream.actions, stream.statuses);
    const longest = new Float64Array(stream.lanes.length);
    stream.lanes.forEach((lane, l) => {
      let most = 0;
      for (let i = lane.first; i < lane.first + lane.count; i++) if (data.length[i] > most) most = data.length[i];
      longest[l] = most;
    });
    return new StreamEngine(stream, data, styles, longest, keyAt);
  }

  /** Build the bins for zoomed-out views in the background, a few lanes at a time. */
  prepare(): void {
    if (this.data.bars < MIP_FROM || this.mips.length > 0) return;
    this.building ??= buildMip(this.data, this.stream.lanes, this.styles, this.data.bars > 1_000_000 ? 8192 : 4096);
    const step = this.building.next();
    if (!step.done) {
      setTimeout(() => this.prepare(), 4);
      return;
    }
    const fine = step.value;
    this.mips = fine.bins > 4096 ? [halve(halve(fine)), halve(fine), fine] : [halve(fine), fine];
  }

  /** Load the columns that only task details need. */
  async loadDetails(raws: Partial<Record<string, Raw>>): Promise<void> {
    const { key, ...rest } = raws;
    Object.assign(this.data.columns, await numbers(this.stream, rest));
    if (key !== undefined && this.stream.columns.key) this.lines = await decodeLines(this.stream.columns.key, key);
  }

  draw(view: StreamView, pixels: Uint32Array): void {
    paint(this.data, this.stream.lanes, this.styles, this.longest, this.mips, view, pixels);
  }

  /** Return the task whose bar is at `t` in one of the lanes, or the nearest within `slack`; -1 if there is none. */
  hit(lane: number, lanes: number, t: number, slack: number): number {
    let best = -1;
    let distance = slack;
    for (let l = lane; l < Math.min(lane + lanes, this.stream.lanes.length); l++) {
      const { first, count } = this.stream.lanes[l];
      for (
        let i = lowerBound(this.data.start, first, first + count, t - this.longest[l] - slack);
        i < first + count;
        i++
      ) {
        const a = this.data.start[i];
        if (a > t + slack) break;
        const b = a + this.data.length[i];
        const away = t < a ? a - t : t > b ? t - b : 0;
        if (away < distance || (away === 0 && best < 0)) {
          distance = away;
          best = this.data.task[i];
        }
      }
    }
    return best;
  }

  beside(task: number, across: number, down: number): number {
    return neighbour(this.data, this.stream.lanes, task, across, down);
  }

  first(t0: number, t1: number): number {
    return firstIn(this.data, this.stream.lanes, t0, t1);
  }

  detail(task: number): TaskDetail | null {
    const { data } = this;
    if (!(task >= 0 && task < data.tasks)) return null;
    const bar = data.bar[task];
    const lane = this.stream.lanes.findIndex((l) => bar >= l.first && bar < l.first + l.count);
    const parts: TaskDetail["parts"] = [];
    const owner = data.task;
    const { first, count } = this.stream.lanes[lane];
    for (let i = first; i < first + count; i++) {
      if (owner[i] === task)
        parts.push({ action: data.action[i], start: data.start[i], stop: data.start[i] + data.length[i] });
    }
    const value = (name: StreamColumn) => data.columns[name]?.[task] ?? -1;
    return {
      task,
      lane,
      start: data.start[bar],
      stop: data.start[bar] + data.length[bar],
      prefix: value("prefix"),
      status: value("status"),
      type: value("type"),
      nbytes: value("nbytes"),
      wait: value("wait"),
      queue: value("queue"),
      isLost: value("lost") > 0,
      computation: value("computation"),
      key: this.key(task),
      parts,
    };
  }

  /** Return at most `limit` tasks that overlap [t0, t1), and their total number. */
  tasksIn(t0: number, t1: number, limit: number): { rows: TaskDetail[]; of: number } {
    const found: number[] = [];
    let of = 0;
    for (let task = 0; task < this.data.tasks; task++) {
      const bar = this.data.bar[task];
      const a = this.data.start[bar];
      if (a >= t1 || a + this.data.length[bar] <= t0) continue;
      if (of++ < limit) found.push(task);
    }
    const rows = found.map((task) => this.detail(task)).filter((row) => row !== null);
    return { rows, of };
  }

  find(text: string, limit: number): { tasks: number[]; of: number } {
    const want = text.toLowerCase();
    const { bar, start, tasks, columns } = this.data;
    const status = this.stream.statuses.indexOf(want);
    const found: number[] = [];
    for (let task = 0; task < tasks; task++) {
      const isFailed = want === "failed" && this.styles[bar[task]] === BAR_STYLE.failed;
      if (isFailed || (status >= 0 && columns.status?.[task] === status) || this.key(task).toLowerCase().includes(want))
        found.push(task);
    }
    found.sort((a, b) => start[bar[a]] - start[bar[b]]);
    return { tasks: found.slice(0, limit), of: found.length };
  }

  marks(tasks: readonly number[]): TaskMark[] {
    const { bar, start, length } = this.data;
    return tasks
      .filter((task) => task >= 0 && task < this.data.tasks)
      .map((task) => {
        const at = bar[task];
        return {
          task,
          lane: this.stream.lanes.findIndex((l) => at >= l.first && at < l.first + l.count),
          start: start[at],
          stop: start[at] + length[at],
          style: this.styles[at],
        };
      });
  }

  private key(task: number): string {
    if (this.keyAt) return this.keyAt(task);
    if (this.stream.templates.length) return keyOf(this.stream, this.data.columns, task);
    const line = this.lines[task] ?? "";
    // Keys with line breaks are stored as JSON.
    return line.startsWith('"') && line.includes("\\") ? (JSON.parse(line) as string) : line;
  }
}

async function numbers(
  stream: Stream,
  raws: Partial<Record<string, Raw>>,
): Promise<Partial<Record<StreamColumn, Numbers>>> {
  const columns: Partial<Record<StreamColumn, Numbers>> = {};
  await Promise.all(
    Object.entries(raws).map(async ([name, raw]) => {
      if (raw !== undefined) columns[name as StreamColumn] = await decodeNumbers(stream.columns[name], raw);
    }),
  );
  return columns;
}

/** Steps of the keyboard cursor. Tasks are numbered by lane, then by start. */

/** Return the index of the first number in the ascending list that is at least `value`. */
function atLeast(list: Uint32Array, value: number): number {
  let lo = 0;
  let hi = list.length;
  while (lo < hi) {
    const mid = (lo + hi) >>> 1;
    if (list[mid] < value) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/** Return the tasks [first, last) of a lane. */
function tasksOf(data: StreamData, lane: Lane): [number, number] {
  return [atLeast(data.bar, lane.first), atLeast(data.bar, lane.first + lane.count)];
}

const start = (data: StreamData, task: number) => data.start[data.bar[task]];
const stop = (data: StreamData, task: number) => data.start[data.bar[task]] + data.length[data.bar[task]];

/** Return the first task in [t0, t1) of the topmost lane that has one, or -1. */
export function firstIn(data: StreamData, lanes: readonly Lane[], t0: number, t1: number): number {
  for (const lane of lanes) {
    const [first, last] = tasksOf(data, lane);
    for (let task = first; task < last && start(data, task) < t1; task++) if (stop(data, task) > t0) return task;
  }
  return -1;
}

/** Return the task `across` steps along the lane, or the nearest in time in the next lane `down`; the task itself if there is none. */
export function neighbour(
  data: StreamData,
  lanes: readonly Lane[],
  task: number,
  across: number,
  down: number,
): number {
  const at = data.bar[task];
  let lane = lanes.findIndex((l) => at >= l.first && at < l.first + l.count);
  if (lane < 0) return task;
  if (down === 0) {
    const [first, last] = tasksOf(data, lanes[lane]);
    return Math.max(first, Math.min(last - 1, task + across));
  }
  const middle = (start(data, task) + stop(data, task)) / 2;
  for (lane += down; lane >= 0 && lane < lanes.length; lane += down) {
    const [first, last] = tasksOf(data, lanes[lane]);
    if (last > first) return nearest(data, first, last, middle);
  }
  return task;
}

function nearest(data: StreamData, first: number, last: number, t: number): number {
  let lo = first;
  let hi = last;
  while (lo < hi) {
    const mid = (lo + hi) >>> 1;
    if (start(data, mid) <= t) lo = mid + 1;
    else hi = mid;
  }
  // Task lo - 1 is the last to start before t, lo the first to start after it.
  if (lo === first) return first;
  if (lo === last) return last - 1;
  return t - stop(data, lo - 1) <= start(data, lo) - t ? lo - 1 : lo;
}
