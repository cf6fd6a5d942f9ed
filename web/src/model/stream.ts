import type { Numbers } from "../api/decode";
import type { Stream } from "../api/schema.gen";

/** Columns that are needed to draw the stream. */
export const DRAWN_COLUMNS = ["gap", "duration", "action", "owner", "prefix", "status"] as const;
/** Columns that are needed when a task is asked for. */
export const DETAIL_COLUMNS = ["type", "nbytes", "wait", "queue", "computation", "template", "number0", "number1", "number2", "number3", "key"] as const;
export type StreamColumn = (typeof DRAWN_COLUMNS)[number] | Exclude<(typeof DETAIL_COLUMNS)[number], "key">;

/** Bars and tasks ready to be searched; times in ticks since the start of the report. */
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

export function decodeStream(stream: Pick<Stream, "lanes" | "bars" | "tasks" | "tick_us">, columns: Partial<Record<StreamColumn, Numbers>>, end: number): StreamData {
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
      // Where the writer thought it ends: gaps are counted in whole ticks.
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

/** The key of a task, where keys are templates with numbers. */
export function keyOf(stream: Pick<Stream, "templates">, columns: Partial<Record<StreamColumn, Numbers>>, task: number): string {
  const which = columns.template ?? columns.prefix;
  const parts = (stream.templates[which ? which[task] : 0] ?? "").split("\0");
  const numbers = [columns.number0, columns.number1, columns.number2, columns.number3];
  return parts.map((part, i) => (i === 0 ? part : `${numbers[i - 1]?.[task] ?? ""}${part}`)).join("");
}

/** What a bar looks like: 0 to 11 prefixes by rank, then these. */
export const LOOK = { rest: 12, failed: 13, transfer: 14, disk: 15, serialize: 16, count: 17 } as const;

export function looksOf(data: StreamData, actions: readonly string[], statuses: readonly string[]): Uint8Array {
  const looks = new Uint8Array(data.bars);
  const byAction = actions.map((name) => (name.startsWith("disk") ? LOOK.disk : name.startsWith("transfer") ? LOOK.transfer : LOOK.serialize));
  const failed = statuses.map((name) => name !== "ok" && name !== "finished" && name !== "memory");
  const { prefix, status } = data.columns;
  for (let i = 0; i < data.bars; i++) {
    const act = data.action[i];
    if (act !== 0) {
      looks[i] = byAction[act] ?? LOOK.serialize;
      continue;
    }
    const t = data.task[i];
    looks[i] = status && failed[status[t]] ? LOOK.failed : Math.min(prefix ? prefix[t] : LOOK.rest, LOOK.rest);
  }
  return looks;
}

/** The first bar in [from, to) that starts at or after ``t``. */
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
