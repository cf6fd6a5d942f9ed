import type { Column } from "../../api/increments";
import type { IncrementHistory } from "../../api/server.gen";

/** Categories of thread time, in the order of the server. */
export const LIVE_CATEGORIES = ["compute", "transfer", "disk", "serialize", "failed"] as const;
const KINDS = LIVE_CATEGORIES.length;
const FAILED = KINDS - 1;

/** Sums over some time. */
export interface Busy {
  /** Microseconds by category. */
  us: number[];
  /** Executions that ended. */
  tasks: number;
  /** Tasks among them that failed or were lost. */
  errors: number;
}

interface Cell {
  us: number;
  count: number;
}

function noBusy(): Busy {
  return { us: new Array<number>(KINDS).fill(0), tasks: 0, errors: 0 };
}

/** Thread time and executions by second, and of the time before in larger steps. */
export class LiveBusy {
  private readonly cells = new Map<number, Map<number, Cell>>();
  /** By the first second of a step. */
  private readonly old = new Map<number, Busy>();
  private step = 10;
  /** Seconds before this are only known in steps. */
  private first = 0;

  /** Start with the sums of the whole run; seconds from `first` on come with increments. */
  start(history: IncrementHistory | null, first: number): void {
    this.first = Math.max(0, first);
    if (!history) return;
    this.step = Math.max(1, history.step);
    history.seconds.forEach((second, i) => {
      if (second + this.step > this.first) return;
      const busy = this.oldAt(second);
      busy.us[0] += history.us[i];
      busy.tasks += history.tasks[i];
      busy.errors += history.errors[i];
    });
  }

  private oldAt(second: number): Busy {
    const at = Math.floor(second / this.step) * this.step;
    let found = this.old.get(at);
    if (!found) {
      found = noBusy();
      this.old.set(at, found);
    }
    return found;
  }

  add(part: Record<string, Column>, prefixes: readonly number[]): void {
    const { second, prefix, category, us, count } = part;
    for (let i = 0; i < second.length; i++) {
      if (second[i] < this.first) {
        this.addOld(second[i], category[i], us[i], count[i]);
        continue;
      }
      let at = this.cells.get(second[i]);
      if (!at) {
        at = new Map();
        this.cells.set(second[i], at);
      }
      const key = (prefixes[prefix[i]] ?? 0) * KINDS + category[i];
      const cell = at.get(key);
      if (cell) {
        cell.us += us[i];
        cell.count += count[i];
      } else at.set(key, { us: us[i], count: count[i] });
    }
  }

  private addOld(second: number, category: number, us: number, count: number): void {
    const busy = this.oldAt(second);
    busy.us[category] += us;
    busy.tasks += count;
    if (category === FAILED) busy.errors += count;
  }

  /** Keep seconds before this only in steps. */
  forget(before: number): void {
    for (const [second, cells] of this.cells) {
      if (second >= before) continue;
      for (const [key, cell] of cells) this.addOld(second, key % KINDS, cell.us, cell.count);
      this.cells.delete(second);
    }
    this.first = Math.max(this.first, before);
    if (this.old.size > 1_200) this.widen();
  }

  /** Double the steps of the time before. */
  private widen(): void {
    const before = [...this.old];
    this.old.clear();
    this.step *= 2;
    for (const [second, busy] of before) {
      const into = this.oldAt(second);
      busy.us.forEach((us, k) => {
        into.us[k] += us;
      });
      into.tasks += busy.tasks;
      into.errors += busy.errors;
    }
  }

  /** Return the sums of `count` bins of `width` seconds from second `from` on. Old steps are spread evenly. */
  bins(from: number, width: number, count: number): Busy[] {
    const bins = Array.from({ length: count }, noBusy);
    const put = (second: number, length: number, busy: Busy) => {
      const first = Math.max(0, Math.floor((second - from) / width));
      const last = Math.min(count - 1, Math.ceil((second + length - from) / width) - 1);
      for (let b = first; b <= last; b++) {
        const a = Math.max(second, from + b * width);
        const z = Math.min(second + length, from + (b + 1) * width);
        const share = (z - a) / length;
        if (share <= 0) continue;
        busy.us.forEach((us, k) => {
          bins[b].us[k] += us * share;
        });
        bins[b].tasks += busy.tasks * share;
        bins[b].errors += busy.errors * share;
      }
    };
    for (const [second, busy] of this.old) put(second, this.step, busy);
    for (const [second, cells] of this.cells) {
      if (second + 1 <= from || second >= from + width * count) continue;
      const busy = noBusy();
      for (const [key, cell] of cells) {
        busy.us[key % KINDS] += cell.us;
        busy.tasks += cell.count;
        if (key % KINDS === FAILED) busy.errors += cell.count;
      }
      put(second, 1, busy);
    }
    return bins;
  }

  /** Return microseconds and executions of each prefix in [from, to) seconds. Old steps do not have prefixes. */
  byPrefix(from: number, to: number): Map<number, Cell> {
    const sums = new Map<number, Cell>();
    for (const [second, cells] of this.cells) {
      if (second < from || second >= to) continue;
      for (const [key, cell] of cells) {
        const prefix = Math.floor(key / KINDS);
        const sum = sums.get(prefix) ?? { us: 0, count: 0 };
        sums.set(prefix, { us: sum.us + cell.us, count: sum.count + cell.count });
      }
    }
    return sums;
  }

  /** The number of seconds and steps in memory. */
  get size(): number {
    return this.cells.size + this.old.size;
  }
}
