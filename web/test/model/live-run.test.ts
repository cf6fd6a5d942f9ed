import { describe, expect, test } from "vitest";
import type { Column, Increment } from "../../src/api/increments";
import type { IncrementHeader, IncrementWorker } from "../../src/api/server.gen";
import { barAt, MAX_BARS } from "../../src/model/live/live-lanes";
import { LiveRun } from "../../src/model/live/live-run";

const SECOND = 1e6;

interface Bar {
  start: number;
  length: number;
  prefix?: string;
  category?: number;
  worker?: string;
}

const worker = (name: string, more: Partial<IncrementWorker> = {}): IncrementWorker => ({
  worker: name,
  name: "",
  threads: 2,
  memory_limit: 100,
  start_us: 1,
  stop_us: 0,
  verdict: "",
  ...more,
});

/** Return an increment with bars, and with their thread time in the second of their start. */
function increment(
  bars: Bar[],
  more: Partial<IncrementHeader> = {},
  samples: [number, string, number][] = [],
): Increment {
  const prefixes = [...new Set(bars.map((bar) => bar.prefix ?? "inc"))];
  const workers = [...new Set(bars.map((bar) => bar.worker ?? "a"))];
  const sampled = [...new Set(samples.map(([, name]) => name))];
  const numbers = (values: number[]): Column => Float64Array.from(values);
  const zeros = numbers(samples.map(() => 0));
  return {
    header: {
      cursor: "1.1.1",
      is_first: false,
      origin_us: 0,
      now_us: 10 * SECOND,
      is_live: true,
      state: "running",
      window: 600,
      first_second: 400,
      names: {
        prefixes,
        lanes: workers.map((name) => [name, 1]),
        workers: sampled,
        activities: [],
        frames: [],
      },
      workers: [],
      errors: [],
      keys: bars.map((_, i) => `key-${i}`),
      left_out: 0,
      history: null,
      columns: [],
      ...more,
    },
    parts: {
      bars: {
        start: numbers(bars.map((bar) => bar.start)),
        length: numbers(bars.map((bar) => bar.length)),
        lane: numbers(bars.map((bar) => workers.indexOf(bar.worker ?? "a"))),
        prefix: numbers(bars.map((bar) => prefixes.indexOf(bar.prefix ?? "inc"))),
        category: numbers(bars.map((bar) => bar.category ?? 0)),
      },
      busy: {
        second: numbers(bars.map((bar) => Math.floor(bar.start / SECOND))),
        prefix: numbers(bars.map((bar) => prefixes.indexOf(bar.prefix ?? "inc"))),
        category: numbers(bars.map((bar) => bar.category ?? 0)),
        us: numbers(bars.map((bar) => bar.length)),
        count: numbers(bars.map(() => 1)),
      },
      samples: {
        second: numbers(samples.map(([second]) => second)),
        worker: numbers(samples.map(([, name]) => sampled.indexOf(name))),
        memory: numbers(samples.map(([, , memory]) => memory)),
        managed: zeros,
        spilled: zeros,
        cpu: zeros,
        executing: zeros,
        ready: zeros,
        paused: zeros,
      },
      transfers: { second: numbers([]), nbytes: numbers([]), count: numbers([]) },
      activities: { second: numbers([]), activity: numbers([]), value: numbers([]) },
      stacks: { second: numbers([]), node: numbers([]), count: numbers([]) },
      nodes: { parent: numbers([]), frame: numbers([]) },
    },
  };
}

describe("bars", () => {
  test("executions are counted without transfers, disk and serialization, also after some are forgotten", () => {
    const run = new LiveRun();
    const late = 700 * SECOND;
    const bars = [0, 1, 2, 3, 4].map((category) => ({ start: 1, length: 9, category }));
    run.apply(increment([...bars, { start: late, length: 9 }, { start: late, length: 9, category: 3 }]), 0);
    expect([run.lanes.bars, run.lanes.tasks]).toEqual([7, 3]);
    run.apply(increment([], { now_us: late }), 0);
    expect([run.lanes.bars, run.lanes.tasks]).toEqual([2, 1]);
  });

  test("stay in order of their start, also if a long task ends late", () => {
    const run = new LiveRun();
    run.apply(increment([{ start: 5, length: 1 }]), 0);
    run.apply(increment([{ start: 1, length: 8 }]), 0);
    expect(run.lanes.lanes[0].start).toEqual([1, 5]);
    expect(run.lanes.lanes[0].longest).toBe(8);
  });

  test("prefixes keep their number in all increments", () => {
    const run = new LiveRun();
    run.apply(increment([{ start: 1, length: 1, prefix: "add" }]), 0);
    run.apply(increment([{ start: 2, length: 1, prefix: "inc" }]), 0);
    run.apply(increment([{ start: 3, length: 1, prefix: "add" }], { is_first: true }), 0);
    expect(run.prefixes).toEqual(["add", "inc"]);
    expect(run.lanes.lanes[0].prefix).toEqual([0]);
  });

  test("beyond the limit the oldest are forgotten", () => {
    const run = new LiveRun();
    const bars = Array.from({ length: MAX_BARS + 10 }, (_, i) => ({ start: i * 100, length: 50 }));
    run.apply(increment(bars), 0);
    expect(run.lanes.bars).toBeLessThanOrEqual(MAX_BARS);
    expect(run.lanes.lanes[0].start.at(-1)).toBe((MAX_BARS + 9) * 100);
    expect(run.tasks).toBe(MAX_BARS + 10);
  });

  test("the bar at a time is the shortest of those that cover it", () => {
    const run = new LiveRun();
    run.apply(
      increment([
        { start: 0, length: 100 },
        { start: 40, length: 10, category: 1 },
      ]),
      0,
    );
    const [lane] = run.lanes.lanes;
    expect(barAt(lane, 45, 0)?.start).toBe(40);
    expect(barAt(lane, 60, 0)?.start).toBe(0);
    expect(barAt(lane, 500, 1)).toBeNull();
  });
});

test("lanes of workers that left disappear with their bars", () => {
  const run = new LiveRun();
  run.apply(increment([{ start: 1, length: 1, worker: "a" }], { workers: [worker("a")] }), 0);
  const before = run.lanes.revision;
  run.apply(increment([], { workers: [worker("a", { stop_us: 9 })], now_us: 5000 * SECOND }), 0);
  expect(run.lanes.lanes).toEqual([]);
  expect(run.lanes.revision).toBeGreaterThan(before);
});

describe("sums", () => {
  test("add up over increments", () => {
    const run = new LiveRun();
    run.apply(increment([{ start: 2 * SECOND, length: 300 }]), 0);
    run.apply(
      increment([
        { start: 2 * SECOND, length: 200 },
        { start: 3 * SECOND, length: 50, category: 4 },
      ]),
      0,
    );
    const [before, second, third] = run.busy.bins(1, 1, 3);
    expect(before.tasks).toBe(0);
    expect([second.us[0], second.tasks, second.errors]).toEqual([500, 2, 0]);
    expect([third.us[4], third.tasks, third.errors]).toEqual([50, 1, 1]);
    expect(run.busy.byPrefix(0, 10).get(0)).toEqual({ us: 550, count: 3 });
  });

  test("the time before the window comes from the history, and is not counted twice", () => {
    const run = new LiveRun();
    const history = {
      step: 10,
      seconds: [0, 10, 390, 400],
      us: [10, 20, 30, 40],
      tasks: [1, 2, 3, 4],
      errors: [0, 0, 1, 0],
    };
    run.apply(increment([{ start: 401 * SECOND, length: 40 }], { is_first: true, history, now_us: 1000 * SECOND }), 0);
    const all = run.busy.bins(0, 1000, 1)[0];
    // The step that begins at second 400 is in the window: its tasks come as bars.
    expect([all.us[0], all.tasks, all.errors]).toEqual([10 + 20 + 30 + 40, 1 + 2 + 3 + 1, 1]);
  });

  test("nothing is lost when seconds leave the window", () => {
    const run = new LiveRun();
    for (let second = 0; second < 2000; second += 5)
      run.apply(increment([{ start: second * SECOND, length: 7 }], { now_us: second * SECOND }), 0);
    const all = run.busy.bins(0, 2000, 1)[0];
    expect(all.tasks).toBeCloseTo(400, 6);
    expect(all.us[0]).toBeCloseTo(2800, 6);
  });

  test("a page that is open for a day does not grow", () => {
    const run = new LiveRun();
    const sizes: number[] = [];
    for (let second = 0; second < 86_400; second += 2) {
      const at = second * SECOND;
      const more = { now_us: at, workers: second === 0 ? [worker("a")] : [] };
      run.apply(increment([{ start: at, length: 10, prefix: `p${second % 7}` }], more, [[second, "a", second]]), 0);
      if (second % 21_600 === 21_598) sizes.push(run.busy.size + run.workers.size + run.lanes.bars);
    }
    expect(sizes).toHaveLength(4);
    expect(Math.max(...sizes)).toBeLessThan(4_500);
    expect(run.busy.bins(0, 86_400, 1)[0].tasks).toBeCloseTo(43_200, 3);
  });
});

describe("workers", () => {
  test("totals carry the last sample of each worker forward", () => {
    const run = new LiveRun();
    run.apply(
      increment([], { workers: [worker("a"), worker("b")] }, [
        [1, "a", 10],
        [2, "b", 5],
        [4, "a", 20],
      ]),
      0,
    );
    expect(run.workers.series("memory", 0, 9)).toEqual({ x: [1.5, 2.5, 4.5], y: [10, 15, 25] });
    expect(run.workers.totals()).toMatchObject({ memory: 25, threads: 4, workers: 2, memory_limit: 200 });
  });

  test("a worker that left counts no longer", () => {
    const run = new LiveRun();
    run.apply(
      increment([], { workers: [worker("a"), worker("b")] }, [
        [1, "a", 10],
        [1, "b", 5],
      ]),
      0,
    );
    run.apply(increment([], { workers: [worker("a", { stop_us: 9, verdict: "closed" })] }, [[2, "b", 6]]), 0);
    expect(run.workers.totals()).toMatchObject({ memory: 6, workers: 1 });
    expect(run.workers.connected.map((one) => one.worker)).toEqual(["b"]);
  });

  test("a late row of an earlier worker at the same address changes nothing", () => {
    const run = new LiveRun();
    run.apply(increment([], { workers: [worker("a", { start_us: 50 })] }), 0);
    run.apply(increment([], { workers: [worker("a", { start_us: 1, stop_us: 40 })] }), 0);
    expect(run.workers.isConnected("a")).toBe(true);
  });
});

describe("time", () => {
  test("goes on between increments, for half a minute", () => {
    const run = new LiveRun();
    run.apply(increment([], { now_us: 10 * SECOND }), 1000);
    expect(run.now(3000)).toBe(12 * SECOND);
    expect(run.now(1_000_000)).toBe(40 * SECOND);
  });

  test("stands still when the cluster has ended", () => {
    const run = new LiveRun();
    run.apply(increment([], { now_us: 10 * SECOND, is_live: false }), 1000);
    expect(run.now(9000)).toBe(10 * SECOND);
  });
});

test("failures of a group add up", () => {
  const run = new LiveRun();
  const error = { fingerprint: "f", type: "ValueError", message: "", prefix: "", key: "one", count: 2, time_us: 1 };
  run.apply(increment([], { errors: [error] }), 0);
  run.apply(increment([], { errors: [{ ...error, key: "two", count: 1 }] }), 0);
  expect([...run.errors.values()]).toEqual([{ ...error, key: "two", count: 3 }]);
});
