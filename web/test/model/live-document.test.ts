import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Columns } from "../../src/api/source";
import { BarRoom, barsOf, LiveTaskStream } from "../../src/charts/stream/live";
import { type CubeData, loadCube, overTime, sumBy, total } from "../../src/model/cube";
import { type LiveDocument, liveDocument } from "../../src/model/live/live-document";
import { LiveRun } from "../../src/model/live/live-run";
import { type CubeName, Model } from "../../src/model/model";
import { loadSeries, rowOf } from "../../src/model/series";
import { loadNeighbours } from "../../src/model/task-edges";
import { reaching, untilNow } from "../../src/model/time";
import { LiveModel } from "../../src/widgets/live/live-model";
import { fakeBrowser } from "../fake-browser";
import { type Bar, increment, SECOND, worker } from "../fake-increment";

beforeEach(() => void fakeBrowser("/team/clusters/one"));
afterEach(() => void vi.unstubAllGlobals());

/** Return a run of ten seconds with two workers of two threads; the second one joined after five seconds. */
function makeRun(bars: Bar[], order: ReadonlyMap<string, number> = new Map()): LiveRun {
  const run = new LiveRun(order);
  const workers = [worker("a", { name: "w-10" }), worker("b", { name: "w-9", start_us: 5 * SECOND })];
  run.apply(increment(bars, { workers, first_second: 0, is_first: true }), 0);
  return run;
}

const BARS: Bar[] = [
  { start: 1.5 * SECOND, length: 300_000, prefix: "inc" },
  { start: 2 * SECOND, length: 700_000, prefix: "add" },
  { start: 2.1 * SECOND, length: 100_000, prefix: "add", category: 1 },
  { start: 6 * SECOND, length: 50_000, prefix: "inc", category: 4, worker: "b" },
];

const modelOf = (run: LiveRun, document = liveDocument(run, 10 * SECOND)) =>
  new Model(document.report, document.source, new LiveTaskStream(run, document), false);

const cubeOf = (document: LiveDocument, name: Exclude<CubeName, "flame">): Promise<CubeData> =>
  loadCube(document.report[name], new Columns(document.source));

describe("thread time", () => {
  test("is the time of the increments, by second, prefix and category", async () => {
    const document = liveDocument(makeRun(BARS), 10 * SECOND);
    const cube = await cubeOf(document, "time_by_prefix");
    const { category, prefix } = cube.keys;
    const sums = sumBy(cube, "category", "us", null);
    expect(["cpu", "transfer", "failed"].map((name) => sums[category.indexOf(name)])).toEqual([1e6, 1e5, 5e4]);
    const second = sumBy(cube, "prefix", "us", { b0: 2, b1: 3 }, { category: category.indexOf("cpu") });
    expect(second[prefix.indexOf("add")]).toBe(700_000);
    expect(second[prefix.indexOf("inc")]).toBe(0);
  });

  test("and idle time make up the threads of the connected workers", async () => {
    const cube = await cubeOf(liveDocument(makeRun(BARS), 9.5 * SECOND), "time_by_prefix");
    const all = overTime(cube, "prefix", "us", 10).reduce((sum, series) => sum.map((us, bin) => us + series[bin]));
    // Two threads, four after five seconds, and half of the last second.
    expect([...all]).toEqual([2e6, 2e6, 2e6, 2e6, 2e6, 4e6, 4e6, 4e6, 4e6, 2e6]);
  });

  test("ends with what has arrived: nothing is idle in the seconds since", async () => {
    const run = new LiveRun();
    const header = { workers: [worker("a")], first_second: 0, is_first: true, known_until_us: 6.5 * SECOND };
    run.apply(increment([{ start: 2 * SECOND, length: SECOND }], header), 0);
    const document = liveDocument(run, 10 * SECOND);
    const [series] = overTime(await cubeOf(document, "time_by_prefix"), "category", "us", 10).slice(-1);
    expect([...series]).toEqual([2e6, 2e6, 1e6, 2e6, 2e6, 2e6, 1e6, 0, 0, 0]);
    const byWorker = await cubeOf(document, "time_by_worker");
    expect(total(byWorker, "us", null), "two threads").toBe(13e6);
    expect(document.report.totals).toMatchObject({ duration_us: 10e6, tasks: 1, compute_us: 1e6, thread_us: 13e6 });
  });

  test("of the time before the window is complete, also if its first step begins before the run", async () => {
    const run = new LiveRun();
    const history = { step: 10, seconds: [-6, 4], us: [3e6, 1e6], tasks: [3, 1], errors: [0, 0] };
    run.apply(increment([], { workers: [worker("a")], first_second: 14, is_first: true, history, now_us: 20e6 }), 0);
    const document = liveDocument(run, 20 * SECOND);
    expect(sumBy(await cubeOf(document, "counts"), "status", "us", null)[0]).toBeCloseTo(4e6, 3);
    expect(document.report.totals).toMatchObject({ tasks: 4, compute_us: 4e6 });
    expect(run.busy.last).toBe(14);
  });

  test("ends when a worker leaves", async () => {
    const run = makeRun([]);
    run.apply(increment([], { workers: [worker("a", { stop_us: 3.5 * SECOND, verdict: "vanished" })] }), 0);
    const document = liveDocument(run, 10 * SECOND);
    const [series] = overTime(await cubeOf(document, "time_by_prefix"), "prefix", "us", 10);
    expect([...series.subarray(2, 6)]).toEqual([2e6, 1e6, 0, 2e6]);
    expect(document.report.workers.find((w) => w.worker === "a")?.verdict).toBe("vanished");
  });

  test("of a worker comes from its bars", async () => {
    const cube = await cubeOf(liveDocument(makeRun(BARS), 10 * SECOND), "time_by_worker");
    const at = cube.keys.worker.indexOf("b");
    const [busy, idle] = ["cpu", "idle"].map(
      (name) => sumBy(cube, "worker", "us", null, { category: cube.keys.category.indexOf(name) })[at],
    );
    expect([busy, idle]).toEqual([50_000, 10e6 - 50_000]);
  });

  test("of a worker is not known if there are executions without a bar", () => {
    const run = makeRun(BARS);
    run.apply(increment([], { left_out: 1 }), 0);
    const { rows, keys } = liveDocument(run, 10 * SECOND).report.time_by_worker;
    expect([rows, keys.worker]).toEqual([0, ["b", "a"]]);
  });

  test("of a day has bins of a few seconds", async () => {
    const run = makeRun([{ start: 86_000 * SECOND, length: 500 }]);
    const document = liveDocument(run, 86_400 * SECOND);
    expect(document.report.bins).toEqual({ width_us: 16 * SECOND, count: 5_400 });
    const cube = await cubeOf(document, "counts");
    expect([...cube.bin]).toEqual([86_000 / 16]);
  });
});

test("executions are counted by prefix and status", async () => {
  const document = liveDocument(makeRun(BARS), 10 * SECOND);
  const cube = await cubeOf(document, "counts");
  expect(total(cube, "count", null) - 1, "a transfer is not an execution").toBe(2);
  expect(sumBy(cube, "status", "count", null)[1]).toBe(1);
});

test("prefixes are in order of their time, and have the colours of the cluster", () => {
  const run = makeRun(
    BARS,
    new Map([
      ["inc", 0],
      ["other", 1],
    ]),
  );
  const model = modelOf(run);
  expect(model.report.prefixes.map((p) => [p.prefix, p.order, p.errors])).toEqual([
    ["add", 2, 0],
    ["inc", 0, 1],
    ["other", 1, 0],
  ]);
  expect(["inc", "other", "add"].map((name) => model.colour(name))).toEqual(["--cat-1", "--cat-2", "--cat-3"]);
  const { p50_us, max_us } = model.report.prefixes[1];
  expect([p50_us, max_us]).toEqual([50_000, 300_000]);
  expect(model.report.prefixes[2].mean_us, "not known, and not zero").toBeNaN();
});

test("memory is a row per worker, without a value where there is no sample", async () => {
  const run = makeRun([]);
  run.apply(
    increment([], {}, [
      [2, "a", 7],
      [4, "a", 9],
    ]),
    0,
  );
  const { report, source } = liveDocument(run, 10 * SECOND);
  expect(report.series.workers).toEqual(["a"]);
  const data = await loadSeries(report.series, "process", 10, new Columns(source));
  const row = data && [...rowOf(data, 0)];
  expect(row).toEqual([NaN, NaN, 7, 7, 9, NaN, NaN, NaN, NaN, NaN]);
});

test("the time in which a worker was paused is marked", () => {
  const run = makeRun([]);
  const samples = increment([], {}, [
    [2, "a", 1],
    [3, "a", 1],
    [5, "a", 1],
    [6, "a", 1],
  ]);
  samples.parts.samples.paused = Uint8Array.from([1, 1, 1, 0]);
  run.apply(samples, 0);
  expect(liveDocument(run, 10 * SECOND).report.worker_periods).toEqual([
    { worker: "a", state: "paused", start_us: 2 * SECOND, stop_us: 6 * SECOND },
  ]);
});

describe("bars", () => {
  test("lie in the lanes of their workers, which are in order of their names", () => {
    const document = liveDocument(makeRun(BARS), 10 * SECOND);
    expect(document.report.workers.map((w) => w.name)).toEqual(["w-9", "w-10"]);
    expect(document.report.stream.lanes.map((lane) => lane.worker)).toEqual([0, 1]);
    const { stream, data, keyAt } = barsOf(document, 10 * SECOND, new BarRoom());
    expect(stream.lanes.map((lane) => [lane.first, lane.count])).toEqual([
      [0, 1],
      [1, 3],
    ]);
    expect([...data.start.subarray(0, 4)]).toEqual([6e6, 1.5e6, 2e6, 2.1e6]);
    expect([...data.length.subarray(0, 4)]).toEqual([5e4, 3e5, 7e5, 1e5]);
    expect([...(data.columns.prefix?.subarray(0, 3) ?? [])], "ranks").toEqual([1, 1, 0]);
    expect([...(data.columns.status?.subarray(0, 3) ?? [])]).toEqual([1, 0, 0]);
    // The transfer belongs to the execution of its prefix.
    expect([...data.task.subarray(0, 4)]).toEqual([0, 1, 2, 2]);
    expect([0, 1, 2].map(keyAt)).toEqual(["key-3", "key-0", "key-1"]);
  });

  test("a bar that arrives before its worker has a lane", () => {
    const run = new LiveRun();
    run.apply(increment([{ start: 1, length: 1, worker: "new" }]), 0);
    const { report } = liveDocument(run, SECOND);
    expect(report.workers.map((w) => w.worker)).toEqual(["new"]);
    expect(report.stream.lanes).toHaveLength(1);
  });
});

describe("a task", () => {
  test("keeps its number when others arrive, and its neighbours are not known", async () => {
    const run = makeRun(BARS);
    const model = modelOf(run);
    const task = await model.stream.hit(1, 1, 2.5 * SECOND, 0);
    expect(await model.stream.detail(task)).toMatchObject({ task, key: "key-1", lane: 1, start: 2e6, nbytes: -1 });
    run.apply(increment([{ start: 0, length: 100, worker: "b" }]), 0);
    expect(await model.stream.detail(task)).toMatchObject({ task, key: "key-1", lane: 1 });
    expect((await model.stream.detail(task))?.parts).toHaveLength(2);
    expect(await loadNeighbours(model, task)).toBeNull();
  });

  test("can be found, and be gone", async () => {
    const run = makeRun(BARS);
    const { stream } = modelOf(run);
    const { tasks, of } = await stream.find("failed", 10);
    expect([tasks, of]).toEqual([[2], 1]);
    expect(await stream.marks(tasks)).toMatchObject([{ task: 2, lane: 0, start: 6e6 }]);
    expect((await stream.tasksIn(0, 3 * SECOND, 10)).rows.map((row) => row.key)).toEqual(["key-0", "key-1"]);
    run.apply(increment([], { now_us: 2000 * SECOND }), 0);
    await expect(stream.detail(tasks[0])).rejects.toThrow("no longer shown");
    expect(await stream.marks(tasks)).toEqual([]);
  });
});

describe("following", () => {
  const start = () => {
    let changes = 0;
    const live = new LiveModel(new Map(), () => changes++);
    live.follow(4, 0);
    live.run.apply(increment(BARS, { workers: [worker("a")], now_us: 10 * SECOND, is_first: true }), 0);
    live.advance(0);
    if (!live.model) throw new Error("There is no model");
    return { live, nav: live.model.nav, changes: () => changes };
  };

  test("the selection is the last seconds, and moves with every increment", () => {
    const { live, nav } = start();
    expect(nav.state.selection).toMatchObject({ t0: 6e6, t1: 10e6, b0: 6, b1: 10, whole: false, isNow: true });
    const { model } = live;
    live.run.apply(increment([], { now_us: 10.4 * SECOND }), 400);
    live.advance(400);
    expect(nav.state.selection.t1).toBe(10.4e6);
    expect(live.model, "sums follow once a second").toBe(model);
    live.advance(1400);
    expect(live.model).not.toBe(model);
    expect(live.model?.nav, "the page keeps its state").toBe(nav);
  });

  test("nothing before the start of a computation is shown", () => {
    const live = new LiveModel(new Map(), () => {}, 7e6);
    live.follow(4, 0);
    live.run.apply(increment(BARS, { workers: [worker("a")], now_us: 10 * SECOND, is_first: true }), 0);
    live.advance(0);
    expect(live.model?.nav.state.selection).toMatchObject({ t0: 7e6, t1: 10e6 });
  });

  test("the model knows up to when rows have arrived", () => {
    const { live } = start();
    live.run.apply(increment([], { now_us: 13 * SECOND, known_until_us: 11 * SECOND }), 3000);
    live.advance(3000);
    expect([live.model?.knownUntil, live.model?.axis.length]).toEqual([11e6, 13e6]);
  });

  test("it says how long nothing has arrived, and how long nothing has run", () => {
    const { live } = start();
    expect([live.silentUs, live.idleUs], "the last bar is in the seventh second").toEqual([0, 3e6]);
    live.advance(5000);
    expect([live.silentUs, live.idleUs]).toEqual([5e6, 8e6]);
    const fresh = new LiveModel(new Map(), () => {});
    fresh.run.apply(increment([], { is_first: true }), 0);
    fresh.advance(0);
    expect(fresh.idleUs, "nothing has run yet").toBe(0);
  });

  test("the ruler reaches the end of the selection, which moves more often than the sums", () => {
    const { live, nav } = start();
    live.run.apply(increment([], { now_us: 10.4 * SECOND }), 400);
    live.advance(400);
    expect(nav.axis.length).toBe(10e6);
    expect(reaching(nav.axis, nav.state.selection)).toEqual({ ...nav.axis, length: 10.4e6 });
    const past = { ...nav.state.selection, t1: 3e6 };
    expect(reaching(nav.axis, past)).toBe(nav.axis);
  });

  test("a new lane is shown at once", () => {
    const { live } = start();
    live.run.apply(increment([{ start: 10e6, length: 5, worker: "c" }]), 10);
    live.advance(10);
    expect(live.model?.report.stream.lanes).toHaveLength(3);
  });

  test("selecting a time pauses, and new tasks are counted", () => {
    const { live, nav, changes } = start();
    const before = changes();
    nav.select({ ...untilNow(nav.axis, 8e6, 2e6), isNow: false });
    expect([live.isPaused, live.missed, changes()]).toEqual([true, 0, before + 1]);
    live.run.apply(increment([{ start: 12e6, length: 5 }], { now_us: 13e6 }), 3000);
    live.advance(3000);
    expect([nav.state.selection.t1, live.missed]).toEqual([8e6, 1]);
    live.follow(4, 3000);
    expect([live.isPaused, nav.state.selection.t1]).toEqual([false, 13e6]);
  });

  test("links to other views contain a time only if the reader selected it", () => {
    const { live, nav } = start();
    expect(nav.href("profile")).toBe("#profile");
    live.pause();
    expect(nav.href("profile")).toBe("#profile?t=6-10");
  });
});
