import type { Column } from "../../api/increments";
import type { IncrementHistory } from "../../api/server.gen";

/** Categories of thread time, in the order of the server. */
export const LIVE_CATEGORIES = ["compute", "transfer", "disk", "serialize", "failed"] as const;
const KINDS = LIVE_CATEGORIES.length;
const FAILED = KINDS - 1;

/** Thread time and executions of one category. */
export interface LiveSum {
  second: number;
  /** Seconds that it covers. */
  length: number;
  prefix: number;
  category: number;
  us: number;
  count: number;
}

/** Sums over some time. */
interface Busy {
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
  first = 0;
  /** The end of the last second, or step of the time before, in which something ran; 0 if nothing did. */
  last = 0;

  /** Start with the sums of the whole run; seconds from `first` on come with increments. */
  start(history: IncrementHistory | null, first: number): void {
    this.first = Math.max(0, first);
    if (!history) return;
    this.step = Math.max(1, history.step);
    history.seconds.forEach((second, i) => {
      if (second + this.step > this.first) return;
      const busy = this.oldAt(second);
      if (history.us[i] > 0) this.last = Math.max(this.last, second + this.step);
      busy.us[0] += history.us[i];
      busy.tasks += history.tasks[i];
      busy.errors += history.errors[i];
    });
  }

  private oldAt(second: number): Busy {
    // The first step may begin before the run.
    const at = Math.floor(Math.max(0, second) / this.step) * this.step;
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
      if (us[i] > 0) this.last = Math.max(this.last, second[i] + 1);
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

  /** Call `put` with all sums. Sums of the time before do not have a prefix (-1), and cover several seconds. */
  each(put: (sum: LiveSum) => void): void {
    for (const [second, { us, tasks, errors }] of this.old)
      for (let category = 0; category < KINDS; category++) {
        const count = category === FAILED ? errors : category === 0 ? tasks - errors : 0;
        if (us[category] > 0 || count > 0)
          put({ second, length: this.step, prefix: -1, category, us: us[category], count });
      }
    for (const [second, cells] of this.cells)
      for (const [key, { us, count }] of cells)
        put({ second, length: 1, prefix: Math.floor(key / KINDS), category: key % KINDS, us, count });
  }

  /** The number of seconds and steps in memory. */
  get size(): number {
    return this.cells.size + this.old.size;
  }
}
