import { deflateSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { decodeLines, decodeNumbers } from "../src/api/decode";
import type { Block, DType, Lane } from "../src/api/schema.gen";
import { layFlame } from "../src/charts/flame";
import { layOut } from "../src/charts/stream/layout";
import { buildMip, halve } from "../src/charts/stream/mip";
import { paint, type StreamView } from "../src/charts/stream/paint";
import { firstIn, neighbour } from "../src/charts/stream/steps";
import { categoryOf } from "../src/model/activity";
import { type CubeData, overTime, sumBy, sumByTwo, total } from "../src/model/cube";
import { bottomUp, byLine, topDown } from "../src/model/flame";
import { draw } from "../src/model/layers";
import { sharedLength } from "../src/model/names";
import { parseHash, toHash } from "../src/model/nav";
import { filterRows, sortRows, toCsv, toJson } from "../src/model/rows";
import { held, sumWorkers } from "../src/model/series";
import { decodeStream, LOOK, looksOf, unzigzag } from "../src/model/stream";
import { pan, select, tickStep, wholeRun, zoom } from "../src/model/time";
import { fold, parseTraceback } from "../src/model/traceback";

function packed(values: ArrayBufferView<ArrayBuffer>, dtype: DType, length: number): [Block, ArrayBuffer] {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  const k = bytes.length / length;
  const planes = new Uint8Array(bytes.length);
  for (let i = 0; i < length; i++) for (let p = 0; p < k; p++) planes[p * length + i] = bytes[i * k + p];
  const z = deflateSync(planes);
  return [{ block: "b", dtype, length }, new Uint8Array(z).buffer];
}

describe("columns", () => {
  test.each([
    ["u8", new Uint8Array([0, 7, 255])], ["u16", new Uint16Array([0, 300, 65535])], ["u32", new Uint32Array([0, 70000, 4294967295])], ["f32", new Float32Array([0.5, Number.NaN, -3])], ["f64", new Float64Array([1e300, -0.1, 0])],
  ] as const)("%s comes back from its byte planes", async (dtype, values) => {
    const [block, raw] = packed(values, dtype, values.length);
    expect(Array.from(await decodeNumbers(block, raw))).toEqual(Array.from(values));
  });

  test("base64 of a page and bytes of a server are the same", async () => {
    const [block, raw] = packed(new Uint16Array([1, 2, 515]), "u16", 3);
    expect(Array.from(await decodeNumbers(block, Buffer.from(raw).toString("base64")))).toEqual([1, 2, 515]);
  });

  test("lines", async () => {
    const raw = new Uint8Array(deflateSync(Buffer.from("a\nü\n</script>"))).buffer;
    expect(await decodeLines({ block: "k", dtype: "utf8", length: 3 }, raw)).toEqual(["a", "ü", "</script>"]);
    expect(await decodeLines({ block: "k", dtype: "utf8", length: 0 }, raw)).toEqual([]);
  });

  test("a column that is too short says so", async () => {
    const [block, raw] = packed(new Uint16Array([1]), "u16", 1);
    await expect(decodeNumbers({ ...block, length: 2 }, raw)).rejects.toThrow("too short");
  });
});

const cube: CubeData = { rows: 4, step: 1, keys: { prefix: ["a", "b"], category: ["cpu", "idle"] }, codes: { prefix: new Uint8Array([0, 0, 1, 1]), category: new Uint8Array([0, 1, 0, 0]) }, bin: new Uint8Array([0, 1, 1, 2]), measures: { us: new Float64Array([10, 20, 30, 40]) } };

test("cubes add up what is selected", () => {
  expect(Array.from(sumBy(cube, "prefix", "us", null))).toEqual([30, 70]);
  expect(Array.from(sumBy(cube, "prefix", "us", { b0: 1, b1: 2 }))).toEqual([20, 30]);
  expect(Array.from(sumBy(cube, "prefix", "us", null, { category: 0 }))).toEqual([10, 70]);
  expect(sumByTwo(cube, "prefix", "category", "us", null).map((r) => Array.from(r))).toEqual([[10, 20], [70, 0]]);
  expect(total(cube, "us", { b0: 0, b1: 2 })).toBe(60);
  expect(overTime(cube, "category", "us", 3).map((r) => Array.from(r))).toEqual([[10, 30, 40], [0, 20, 0]]);
});

test("bins taken together are summed whole when a part of them is selected", () => {
  const coarse: CubeData = { ...cube, step: 2, bin: new Uint8Array([0, 0, 2, 2]) };
  expect(total(coarse, "us", { b0: 3, b1: 4 })).toBe(70);
  expect(total(coarse, "us", { b0: 1, b1: 2 })).toBe(30);
});

describe("the task stream", () => {
  const lanes: Lane[] = [{ worker: 0, thread: 0, first: 0, count: 3, tasks: 2 }, { worker: 0, thread: 1, first: 3, count: 1, tasks: 1 }];
  // lane 0: transfer 10 to 20 (of task 0), task 0 20 to 50, task 1 45 to 60; lane 1: task 2 at 100
  const data = decodeStream({ tick_us: 1, lanes, bars: 4, tasks: 3 }, { gap: new Uint32Array([20, 0, 9, 200]), duration: new Uint32Array([10, 30, 15, 5]), action: new Uint8Array([1, 0, 0, 0]), owner: new Uint8Array([0]), prefix: new Uint8Array([0, 20, 3]), status: new Uint8Array([0, 1, 0]) }, 110);

  test("gaps become starts, other bars find their task", () => {
    expect(unzigzag(9)).toBe(-5);
    expect(Array.from(data.start)).toEqual([10, 20, 45, 100]);
    expect(Array.from(data.task)).toEqual([0, 0, 1, 2]);
    expect(Array.from(data.bar)).toEqual([1, 2, 3]);
  });

  const looks = looksOf(data, ["compute", "transfer"], ["ok", "error"]);
  test("looks: prefixes by rank, failures in ink, movement apart", () => expect(Array.from(looks)).toEqual([LOOK.transfer, 0, LOOK.failed, 3]));

  const palette = Uint32Array.from({ length: LOOK.count }, (_, i) => 0xff000000 + i + 1);
  const view = (over: Partial<StreamView>): StreamView => ({ t0: 0, t1: 110, width: 110, height: 16, rows: Int32Array.from([0, 0, 1, 8, 1, 1]), rowHeight: 8, palette, gap: 0, ...over });
  const colourAt = (v: StreamView, mips: Parameters<typeof paint>[4], x: number, y: number) => {
    const pixels = new Uint32Array(v.width * v.height);
    paint(data, lanes, looks, Float64Array.from([30, 5]), mips, v, pixels);
    return pixels[y * v.width + x] & 0xffffff;
  };
  test("a pixel has the colour of what took most of it", () => {
    expect(colourAt(view({}), [], 30, 3)).toBe(1);
    expect(colourAt(view({}), [], 15, 3)).toBe(LOOK.transfer + 1);
    expect(colourAt(view({}), [], 15, 0)).toBe(0);
    expect(colourAt(view({}), [], 102, 10)).toBe(4);
    expect(colourAt(view({}), [], 80, 3)).toBe(0);
    expect(colourAt(view({ t0: 40, t1: 44, width: 4 }), [], 1, 3)).toBe(1);
  });
  test("far views from bins show the same", () => {
    const steps = buildMip(data, lanes, looks, 220);
    let step = steps.next();
    while (!step.done) step = steps.next();
    const mip = step.value;
    expect(mip.look[2 * 30]).toBe(0);
    expect(mip.cover[2 * 30]).toBe(255);
    expect(mip.cover[2 * 80]).toBe(0);
    expect(halve(mip).look[30]).toBe(0);
    expect(halve(mip).cover[80]).toBe(0);
  });
  test("more lanes than pixels share rows", () => {
    const crowd = Array.from({ length: 2000 }, (_, i): Lane => ({ worker: i >> 2, thread: i & 3, first: 0, count: 0, tasks: 0 }));
    const layout = layOut(crowd, 400, 8);
    expect(layout.height).toBeLessThanOrEqual(420);
    expect(layout.rows.filter((_, i) => i % 3 === 2).reduce((a, b) => a + b)).toBe(2000);
    expect(layOut(lanes, 400, 8)).toMatchObject({ rowHeight: 8, height: 16 });
  });
});

test("flame graphs: top down, bottom up, lines", () => {
  const stacks = { frames: [["f.py", "main", 1, "user"], ["l.py", "helper", 2, "lib"], ["l.py", "helper", 9, "lib"]] as [string, string, number, "user" | "lib"][], nodes: new Uint8Array([0, 1, 2]), parents: new Uint8Array([0, 1, 1]) };
  const self = Float64Array.from([1, 2, 4]);
  const top = topDown(stacks, self, "all");
  expect(top.total).toBe(7);
  expect(top.children.map((c) => [c.name, c.total, c.self])).toEqual([["main", 7, 1]]);
  expect(top.children[0].children.map((c) => [c.name, c.total])).toEqual([["helper", 6]]);
  const up = bottomUp(stacks, self, "all");
  expect(up.children.map((c) => [c.name, c.total, c.children[0]?.name])).toEqual([["helper", 6, "main"], ["main", 1, undefined]]);
  expect(byLine(stacks, self).map((l) => [l.line, l.self])).toEqual([[9, 4], [2, 2], [1, 1]]);
  expect(layFlame(top, top, 700).boxes).toHaveLength(3);
});

describe("time", () => {
  const axis = { length: 1000, width: 10, bins: 100 };
  test("selections snap to bins", () => {
    expect(select(axis, 104, 296)).toMatchObject({ t0: 100, t1: 300, b0: 10, b1: 30, whole: false });
    expect(select(axis, 296, 104)).toMatchObject({ t0: 100, t1: 300 });
    expect(select(axis, 103, 108)).toMatchObject({ t0: 103, t1: 108, b0: 10, b1: 11 });
    expect(select(axis, -5, 2000)).toEqual(wholeRun(axis));
    expect(select(axis, 7, 7)).toEqual(wholeRun(axis));
  });
  test("zoom and pan stay inside the run", () => {
    expect(pan(axis, select(axis, 0, 200), -1)).toMatchObject({ t0: 0, t1: 200 });
    expect(pan(axis, select(axis, 800, 1000), 3)).toMatchObject({ t0: 800, t1: 1000 });
    expect(zoom(axis, wholeRun(axis), 0.5)).toMatchObject({ t0: 250, t1: 750 });
    expect(zoom(axis, wholeRun(axis), 2).whole).toBe(true);
  });
  test("ticks are round", () => {
    expect(tickStep(250e6, 10)).toBe(30e6);
    expect(tickStep(9, 10)).toBe(1);
    expect(tickStep(1e6, 10)).toBe(100_000);
  });
  test("a link holds the whole state", () => {
    const state = { view: "profile" as const, selection: select(axis, 100, 300), activity: "transfer" as const, params: { prefix: "a&b=c #?", item: "7" } };
    expect(parseHash(toHash(state), axis)).toEqual(state);
    expect(parseHash("#nonsense?t=x", axis)).toEqual({ view: "overview", selection: wholeRun(axis), activity: null, params: {} });
    expect(parseHash("#fine?activity=__proto__", axis)).toMatchObject({ activity: null, params: {} });
    expect(parseHash("", axis, "profile").view).toBe("profile");
  });
});

test("samples stand until the next one, workers add up", () => {
  const nan = Number.NaN;
  const values = held(Float32Array.from([nan, 1, nan, 3, nan, 10, nan, nan, nan, 20]), 5);
  expect(Array.from(values)).toEqual([nan, 1, 1, 3, nan, 10, 10, 10, 10, 20]);
  expect(Array.from(sumWorkers({ workers: ["a", "b"], bins: 5, values }, 0, 5))).toEqual([10, 11, 11, 13, 20]);
});

test("tables sort, filter and export", () => {
  const columns = [{ id: "n", head: "N", num: true, value: (r: { n: number; s: string }) => r.n }, { id: "s", head: "S", value: (r: { n: number; s: string }) => r.s }];
  const rows = [{ n: 2, s: "w-10" }, { n: 1, s: "w-9" }, { n: 3, s: '=cmd("x")' }];
  expect(sortRows(rows, columns, { id: "n", down: true }).map((r) => r.n)).toEqual([3, 2, 1]);
  expect(sortRows(rows, columns, { id: "s", down: false }).map((r) => r.s).slice(-2)).toEqual(["w-9", "w-10"]);
  expect(filterRows(rows, columns, "W-9")).toEqual([rows[1]]);
  expect(toCsv(rows.slice(2), columns)).toBe('N,S\r\n3,"\'=cmd(""x"")"\r\n');
  expect(JSON.parse(toJson(rows.slice(0, 1), columns))).toEqual([{ n: 2, s: "w-10" }]);
});

test("tracebacks fold other people's frames", () => {
  const text = 'Traceback (most recent call last):\n  File "/a/site-packages/dask/x.py", line 3, in run\n    f()\n  File "/home/me/job.py", line 8, in job\n    1/0\n    ~^~\nZeroDivisionError: division by zero';
  const { frames, rest } = parseTraceback(text);
  expect(frames.map((f) => [f.name, f.line, f.mine])).toEqual([["run", 3, false], ["job", 8, true]]);
  expect(rest).toEqual(["ZeroDivisionError: division by zero"]);
  expect(fold(frames).map((g) => [g.mine, g.frames.length])).toEqual([[true, 1], [false, 1]]);
});

describe("arrow keys in the task stream", () => {
  // Lane 0: tasks 0 (0 to 10), 1 (20 to 30), 2 (40 to 50); lane 1: a transfer only; lane 2: tasks 3 (0 to 5), 4 (24 to 60).
  const lanes = [{ first: 0, count: 3 }, { first: 3, count: 1 }, { first: 4, count: 3 }].map((l) => ({ worker: 0, thread: 0, tasks: 0, ...l }));
  const data = decodeStream(
    { lanes, bars: 7, tasks: 5, tick_us: 1 },
    { gap: new Uint32Array([0, 20, 20, 0, 0, 10, 28]), duration: new Uint32Array([10, 10, 10, 5, 5, 5, 36]), action: new Uint8Array([0, 0, 0, 1, 0, 1, 0]), owner: new Uint32Array([0, 0]) },
    100,
  );
  test("along a lane, and not beyond its ends", () => {
    expect([neighbour(data, lanes, 0, 1, 0), neighbour(data, lanes, 2, 1, 0), neighbour(data, lanes, 0, -1, 0), neighbour(data, lanes, 4, -1, 0)]).toEqual([1, 2, 0, 3]);
  });
  test("to the nearest in time of the next lane that has tasks", () => {
    expect([0, 1, 2].map((task) => neighbour(data, lanes, task, 0, 1))).toEqual([3, 4, 4]);
    expect([3, 4].map((task) => neighbour(data, lanes, task, 0, -1))).toEqual([0, 2]);
    expect(neighbour(data, lanes, 3, 0, 1)).toBe(3);
  });
  test("from the first that is there", () => {
    expect([firstIn(data, lanes, 0, 100), firstIn(data, lanes, 12, 100), firstIn(data, lanes, 52, 55), firstIn(data, lanes, 70, 80)]).toEqual([0, 1, 4, -1]);
  });
});

describe("a drawing of a graph", () => {
  const flat = (n: number) => Array.from({ length: n }, () => 10);
  test("layers follow dependencies, and survive cycles", () => {
    expect(draw([[], [0], [0], [1, 2]], flat(4), 4).nodes.map((p) => p.layer)).toEqual([0, 1, 1, 2]);
    expect(draw([[1], [0], [2, 9]], flat(3), 4).nodes).toHaveLength(3);
    expect(draw([], [], 4).nodes).toEqual([]);
  });
  test("nodes of one layer never overlap, whatever their heights", () => {
    const heights = Array.from({ length: 60 }, (_, i) => 10 + ((i * 37) % 90));
    const { nodes, height } = draw(heights.map((_, i) => (i < 20 ? [] : [i % 20, (i * 7) % 20])), heights, 6);
    for (const layer of [0, 1]) {
      const column = nodes.filter((p) => p.layer === layer).sort((a, b) => a.y - b.y);
      column.slice(1).forEach((p, i) => expect(p.y).toBeGreaterThanOrEqual(column[i].y + heights[column[i].index] + 6 - 1e-6));
    }
    expect(Math.min(...nodes.map((p) => p.y))).toBe(0);
    expect(Math.max(...nodes.map((p) => p.y + heights[p.index]))).toBeCloseTo(height);
  });
  test("one that needs several stands in their middle", () => {
    const { nodes } = draw([[], [], [], [0, 1, 2]], flat(4), 4);
    expect(nodes[3].y).toBe(nodes[1].y);
  });
  test("what has no edge is in rows below", () => {
    const { nodes, layers } = draw([[], [0], ...Array.from({ length: 12 }, () => [])], flat(14), 4);
    expect(layers).toBe(5);
    expect(nodes.slice(2).map((p) => p.layer)).toEqual([0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]);
    expect(nodes[2].y).toBeGreaterThan(nodes[1].y + 10);
  });
});

test.each([
  [["SLURMCluster-1", "SLURMCluster-12"], 13], [["tcp://10.0.0.1:40001", "tcp://10.0.0.1:40002"], 15], [["w-1", "w-2"], 0], [["one-long-name-1"], 0], [["one-long-name-", "one-long-name-2"], 0],
  [["tcp://10.0.0.1:1", "other"], 0], [[], 0],
])("what %j all begin with is %d long", (names, length) => expect(sharedLength(names)).toBe(length));

test("activities have the colours of their kind", () => {
  expect(["thread-cpu", "thread-noncpu", "executor", "deserialize", "disk-write", "network", "mine"].map(categoryOf)).toEqual(["cpu", "noncpu", "noncpu", "serialize", "disk", "transfer", null]);
});
