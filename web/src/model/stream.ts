import type { Numbers } from "../api/decode";
import type { Stream } from "../api/schema.gen";

/** Columns needed to draw the stream. */
export const DRAWN_COLUMNS = ["gap", "duration", "action", "owner", "prefix", "status", "lost"] as const;
/** Columns needed for task details. */
export const DETAIL_COLUMNS = [
  "type",
  "nbytes",
  "wait",
  "queue",
  "computation",
  "template",
  "number0",
  "number1",
  "number2",
  "number3",
  "key",
] as const;
export type StreamColumn = (typeof DRAWN_COLUMNS)[number] | Exclude<(typeof DETAIL_COLUMNS)[number], "key">;

/** Decoded bars and tasks. Times are in ticks since the start of the report. */
export interface StreamData {
  bars: number;
  tasks: number;
  /** Length of the report. */
  end: number;
  start: Float64Array;
  length: Float64Array;
  action: Numbers;
  /** Task of each bar. */
  task: Uint32Array;
  /** Bar of each task's execution. */
  bar: Uint32Array;
  columns: Partial<Record<StreamColumn, Numbers>>;
}

export function unzigzag(n: number): number {
  return n % 2 === 0 ? n / 2 : -(n + 1) / 2;
}

export function decodeStream(
  stream: Pick<Stream, "lanes" | "bars" | "tasks" | "tick_us">,
  columns: Partial<Record<StreamColumn, Numbers>>,
  end: number,
): StreamData {
  const { bars, tasks, tick_us: tick } = stream;
  const gap = columns.gap ?? new Uint32Array(bars);
  const duration = columns.duration ?? new Uint32Array(bars);
  const length = new Float64Array(bars);
  const action = columns.action ?? new Uint8Array(bars);
  const start = new Float64Array(bars);
  for (const lane of stream.lanes) {
    let end = 0;
    for (let i = lane.first, last = lane.first + lane.count; i < last; i++) {
      const g = gap[i];
      end += (g & 1) === 0 ? g / 2 : -(g + 1) / 2;
      start[i] = end;
      length[i] = duration[i] / tick;
      // The writer rounds ends to whole ticks, and gaps count from there.
      end += Math.floor(length[i] + 0.5);
    }
  }
  const task = new Uint32Array(bars);
  const bar = new Uint32Array(tasks);
  const owner = columns.owner ?? new Uint32Array(bars);
  let next = 0;
  let other = 0;
  for (let i = 0; i < bars; i++) {
    if (action[i] === 0) {
      bar[next] = i;
      task[i] = next++;
    } else {
      task[i] = Math.max(0, Math.min(tasks - 1, next + unzigzag(owner[other++])));
    }
  }
  return { bars, tasks, end, start, length, action, task, bar, columns };
}

/** Return the key of a task from its template and numbers. */
export function keyOf(
  stream: Pick<Stream, "templates">,
  columns: Partial<Record<StreamColumn, Numbers>>,
  task: number,
): string {
  const which = columns.template ?? columns.prefix;
  const parts = (stream.templates[which ? which[task] : 0] ?? "").split("\0");
  const numbers = [columns.number0, columns.number1, columns.number2, columns.number3];
  return parts.map((part, i) => (i === 0 ? part : `${numbers[i - 1]?.[task] ?? ""}${part}`)).join("");
}

/** Bar styles: 0 to 11 are prefixes by rank, the others follow. */
export const BAR_STYLE = { rest: 12, failed: 13, transfer: 14, disk: 15, serialize: 16, count: 17 } as const;

/** Whether an execution with this status failed or was lost. */
export const isFailure = (status: string) => status !== "ok" && status !== "finished" && status !== "memory";

export function barStyles(data: StreamData, actions: readonly string[], statuses: readonly string[]): Uint8Array {
  const styles = new Uint8Array(data.bars);
  const byAction = actions.map((name) =>
    name.startsWith("disk") ? BAR_STYLE.disk : name.startsWith("transfer") ? BAR_STYLE.transfer : BAR_STYLE.serialize,
  );
  const failed = statuses.map(isFailure);
  const { prefix, status, lost } = data.columns;
  for (let i = 0; i < data.bars; i++) {
    const act = data.action[i];
    if (act !== 0) {
      styles[i] = byAction[act] ?? BAR_STYLE.serialize;
      continue;
    }
    const t = data.task[i];
    styles[i] =
      lost?.[t] || (status && failed[status[t]])
        ? BAR_STYLE.failed
        : Math.min(prefix ? prefix[t] : BAR_STYLE.rest, BAR_STYLE.rest);
  }
  return styles;
}

/** Return the first bar in [from, to) that starts at or after `t`. */
export function lowerBound(start: Float64Array, from: number, to: number, t: number): number {
  let lo = from;
  let hi = to;
  while (lo < hi) {
    const mid = (lo + hi) >>> 1;
    if (start[mid] < t) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/** What to draw. A row shows one lane, or several if there are more lanes than pixels. */
export interface StreamView {
  t0: number;
  t1: number;
  width: number;
  height: number;
  /** Triples: y, first lane, lanes. */
  rows: Int32Array;
  rowHeight: number;
  /** Colour of each bar style as a 32-bit pixel. */
  palette: Uint32Array;
  /** Pixels left free after wide bars, to separate neighbours. */
  gap: number;
}

/** Details of a task. Times are in ticks. */
export interface TaskDetail {
  task: number;
  lane: number;
  start: number;
  stop: number;
  prefix: number;
  status: number;
  type: number;
  nbytes: number;
  wait: number;
  queue: number;
  /** Whether the result was lost and computed again. */
  isLost: boolean;
  /** Index of the computation plus one; 0 for none. */
  computation: number;
  key: string;
  parts: { action: number; start: number; stop: number }[];
}

/** Where a task is drawn, and in which style. Times are in ticks. */
export type TaskMark = Pick<TaskDetail, "task" | "lane" | "start" | "stop"> & { style: number };

/** What the pages can ask about the bars of the task stream. */
export interface TaskStream {
  /** Resolves when the bars can be searched. */
  readonly ready: Promise<void>;
  /** Resolves with the first paint, or after a timeout. */
  readonly painted: Promise<void>;
  /** Return the pixels of a view. Give the buffer back with `recycle` once they are on the screen. */
  draw(view: StreamView): Promise<ArrayBuffer>;
  recycle(pixels: ArrayBuffer): void;
  /** Return the task at `t` in one of the lanes, or the nearest within `slack`; -1 if there is none. */
  hit(lane: number, lanes: number, t: number, slack: number): Promise<number>;
  detail(task: number): Promise<TaskDetail | null>;
  /** Return the task next to another one: `across` in its lane, `down` in other lanes; itself if there is none. */
  beside(task: number, across: number, down: number): Promise<number>;
  /** Return the first task in [t0, t1) of the topmost lane that has one; -1 if there is none. */
  first(t0: number, t1: number): Promise<number>;
  tasksIn(t0: number, t1: number, limit: number): Promise<{ rows: TaskDetail[]; of: number }>;
  /** Return the tasks whose key contains the text, or that have this status ("failed" for all that failed), by start. */
  find(text: string, limit: number): Promise<{ tasks: number[]; of: number }>;
  marks(tasks: readonly number[]): Promise<TaskMark[]>;
}
