import { describe, expect, test } from "vitest";
import { MAX_BARS } from "../../src/model/live/live-lanes";
import { LiveRun } from "../../src/model/live/live-run";
import { sampleAt } from "../../src/model/live/live-workers";
import { increment, SECOND, worker } from "../fake-increment";

/** Return thread time, executions and failures of the whole run. */
function sums(run: LiveRun): { us: number; tasks: number; errors: number } {
  const all = { us: 0, tasks: 0, errors: 0 };
  run.busy.each(({ us, count, category }) => {
    all.us += us;
    all.tasks += count;
    if (category === 4) all.errors += count;
  });
  return all;
}

describe("bars", () => {
  test("executions are numbered without transfers, disk and serialization, and keep their number", () => {
    const run = new LiveRun();
    const late = 700 * SECOND;
    const bars = [0, 1, 2, 3, 4].map((category) => ({ start: 1, length: 9, category }));
    run.apply(increment([...bars, { start: late, length: 9 }, { start: late, length: 9, category: 3 }]), 0);
    expect(run.lanes.lanes[0].task).toEqual([0, -1, -1, -1, 1, 2, -1]);
    const { version } = run.lanes;
    run.apply(increment([], { now_us: late }), 0);
    expect([run.lanes.bars, run.lanes.tasks]).toEqual([2, 3]);
    expect(run.lanes.lanes[0].task).toEqual([2, -1]);
    expect(run.lanes.version, "the picture has changed").toBeGreaterThan(version);
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

  test("of too many bars with one start, none are kept", () => {
    const run = new LiveRun();
    const bars = Array.from({ length: MAX_BARS + 10 }, () => ({ start: 100, length: 50 }));
    run.apply(increment([...bars, { start: 200, length: 50 }]), 0);
    expect(run.lanes.lanes.map((lane) => lane.start)).toEqual([[200]]);
  });

  test("beyond the limit the oldest are forgotten", () => {
    const run = new LiveRun();
    const bars = Array.from({ length: MAX_BARS + 10 }, (_, i) => ({ start: i * 100, length: 50 }));
    run.apply(increment(bars), 0);
    expect(run.lanes.bars).toBeLessThanOrEqual(MAX_BARS);
    expect(run.lanes.lanes[0].start.at(-1)).toBe((MAX_BARS + 9) * 100);
    expect(run.tasks).toBe(MAX_BARS + 10);
    expect(run.keptFrom).toBeGreaterThan(0);
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
    // The step that begins at second 400 is in the window: its tasks come as bars.
    expect(sums(run)).toEqual({ us: 10 + 20 + 30 + 40, tasks: 1 + 2 + 3 + 1, errors: 1 });
    expect(run.keptFrom).toBe(400 * SECOND);
  });

  test("nothing is lost when seconds leave the window", () => {
    const run = new LiveRun();
    for (let second = 0; second < 2000; second += 5)
      run.apply(increment([{ start: second * SECOND, length: 7 }], { now_us: second * SECOND }), 0);
    expect(sums(run)).toEqual({ us: 2800, tasks: 400, errors: 0 });
  });

  test("a page that is open for a day does not grow", () => {
    const run = new LiveRun();
    const sizes: number[] = [];
    for (let second = 0; second < 86_400; second += 2) {
      const at = second * SECOND;
      const more = { now_us: at, workers: second === 0 ? [worker("a")] : [] };
      run.apply(increment([{ start: at, length: 10, prefix: `p${second % 7}` }], more, [[second, "a", second]]), 0);
      if (second % 21_600 === 21_598) sizes.push(run.busy.size + run.lanes.bars);
    }
    expect(sizes).toHaveLength(4);
    expect(Math.max(...sizes)).toBeLessThan(2_100);
    expect(sums(run).tasks).toBe(43_200);
    // Two seconds; beside other programs it can take longer than the five seconds that a test may take by default.
  }, 60_000);
});

describe("workers", () => {
  test("a sample is known in its second, for eleven minutes", () => {
    const run = new LiveRun();
    const samples: [number, string, number][] = [
      [1, "a", 10],
      [2, "b", 5],
      [4, "a", 20],
    ];
    run.apply(increment([], { workers: [worker("a"), worker("b")] }, samples), 0);
    const at = (name: string, second: number) => {
      const found = run.workers.workers.get(name);
      return found && sampleAt(found, "memory", second);
    };
    expect([1, 2, 3, 4, 5].map((second) => at("a", second))).toEqual([10, Number.NaN, Number.NaN, 20, Number.NaN]);
    run.apply(increment([], {}, [[661, "a", 30]]), 0);
    expect(
      [1, 4, 661].map((second) => at("a", second)),
      "the place of second 1 is used again",
    ).toEqual([Number.NaN, 20, 30]);
    expect(at("b", 2)).toBe(5);
  });

  test("samples of a worker that left are forgotten", () => {
    const run = new LiveRun();
    run.apply(increment([], { workers: [worker("a")] }, [[1, "a", 10]]), 0);
    run.apply(increment([], { workers: [worker("a", { stop_us: 9, verdict: "closed" })], now_us: 700 * SECOND }), 0);
    expect(run.workers.isConnected("a")).toBe(false);
    expect(run.workers.workers.get("a")?.samples).toBeNull();
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
