import { expect, test } from "vitest";
import type { CubeData } from "../../src/model/cube";
import {
  activityName,
  activityStyle,
  contextName,
  hitRate,
  isInternal,
  joinList,
  legendOf,
  splitList,
  sumByStyle,
  sumMetrics,
  unitsOf,
} from "../../src/model/fine-metrics";
import { select, wholeRun } from "../../src/model/time";

const axis = { length: 100, width: 10, bins: 10 };
const whole = wholeRun(axis);

/** Seconds of a (cpu twice, my-reader) and b (cpu), and bytes of a. */
const cube: CubeData = {
  rows: 5,
  step: 1,
  keys: {
    context: ["execute", "get-data"],
    prefix: ["", "a", "b"],
    span: ["", "s1"],
    activity: ["thread-cpu", "my-reader"],
    unit: ["seconds", "bytes"],
  },
  codes: {
    context: new Uint8Array([0, 0, 0, 1, 0]),
    prefix: new Uint8Array([1, 1, 1, 2, 1]),
    span: new Uint8Array([0, 0, 1, 0, 0]),
    activity: new Uint8Array([0, 0, 1, 0, 0]),
    unit: new Uint8Array([0, 0, 0, 0, 1]),
  },
  bin: new Uint8Array([0, 5, 5, 9, 5]),
  measures: { value: new Float64Array([1, 2, 4, 8, 100]) },
};

test("values add up by context, prefix and activity", () => {
  expect(sumMetrics(cube, whole, { unit: "seconds" })).toEqual([
    { context: "execute", prefix: "a", activity: "thread-cpu", value: 3 },
    { context: "execute", prefix: "a", activity: "my-reader", value: 4 },
    { context: "get-data", prefix: "b", activity: "thread-cpu", value: 8 },
  ]);
});

test("units do not mix", () => {
  expect(sumMetrics(cube, whole, { unit: "bytes" }).map((s) => s.value)).toEqual([100]);
  expect(sumMetrics(cube, whole, { unit: "furlongs" })).toEqual([]);
});

test("the selection limits the bins", () => {
  const values = sumMetrics(cube, select(axis, 50, 100), { unit: "seconds" }).map((s) => s.value);
  expect(values).toEqual([2, 4, 8]);
});

test("prefix, span and activity filter the values", () => {
  expect(sumMetrics(cube, whole, { unit: "seconds", prefixes: ["b"] }).map((s) => s.value)).toEqual([8]);
  expect(sumMetrics(cube, whole, { unit: "seconds", span: "s1" }).map((s) => s.value)).toEqual([4]);
  expect(sumMetrics(cube, whole, { unit: "seconds", category: "cpu" }).map((s) => s.value)).toEqual([3, 8]);
  expect(sumMetrics(cube, whole, { unit: "seconds", category: "disk" })).toEqual([]);
});

test("an unknown prefix or span in the URL matches nothing", () => {
  expect(sumMetrics(cube, whole, { unit: "seconds", prefixes: ["nonsense"] })).toEqual([]);
  expect(sumMetrics(cube, whole, { unit: "seconds", span: "nonsense" })).toEqual([]);
});

test("an empty cube has no metrics", () => {
  expect(sumMetrics({ ...cube, rows: 0 }, whole, { unit: "seconds" })).toEqual([]);
});

test("several prefixes and activities filter the values", () => {
  const values = (filter: object) => sumMetrics(cube, whole, { unit: "seconds", ...filter }).map((s) => s.value);
  expect(values({ prefixes: ["a", "b"] })).toEqual([3, 4, 8]);
  expect(values({ activities: ["my-reader"] })).toEqual([4]);
  expect(values({ activities: ["my-reader", "nonsense"], prefixes: ["b"] })).toEqual([]);
});

/** A cube of single rows in bin 0: context, prefix, activity, unit, value. */
function cubeOf(...rows: readonly [string, string, string, string, number][]): CubeData {
  const names = ["context", "prefix", "activity", "unit"] as const;
  const keys = Object.fromEntries(names.map((name, k) => [name, [...new Set(rows.map((r) => r[k] as string))]]));
  const codes = Object.fromEntries(
    names.map((name, k) => [name, Uint8Array.from(rows, (r) => keys[name].indexOf(r[k] as string))]),
  );
  return {
    rows: rows.length,
    step: 1,
    keys: { ...keys, span: [""] },
    codes: { ...codes, span: new Uint8Array(rows.length) },
    bin: new Uint8Array(rows.length),
    measures: { value: Float64Array.from(rows, (r) => r[4]) },
  };
}

const internals = cubeOf(
  ["execute", "a", "thread-cpu", "seconds", 1],
  ["tick-duration", "", "total", "seconds", 35],
  ["p2p", "a", "idle", "seconds", 34],
  ["p2p", "a", "send", "seconds", 2],
  ["p2p", "foreground", "shard-partition-cpu", "seconds", 3],
  ["transfer-bandwidth", "", "total", "", 1e9],
);

test("Dask's internal metrics are left out unless requested", () => {
  const of = (internal: boolean) => sumMetrics(internals, whole, { unit: "seconds", internal }).map((s) => s.value);
  expect(of(false)).toEqual([1, 2]);
  expect(of(true)).toEqual([1, 35, 34, 2, 3]);
  expect(unitsOf(internals, false)).toEqual(["seconds"]);
  expect(unitsOf(internals, true)).toEqual(["seconds", ""]);
});

test.each([
  [{ context: "latency", prefix: "", activity: "total" }, true],
  [{ context: "execute", prefix: "a", activity: "total" }, false],
  [{ context: "gather-dep", prefix: "", activity: "network" }, false],
  [{ context: "execute", prefix: "a", activity: "idle" }, false],
])("%j is internal: %s", (metric, internal) => expect(isInternal(metric)).toBe(internal));

test("the hit rate counts inputs of tasks, or their bytes", () => {
  const reads = cubeOf(
    ["execute", "a", "memory-read", "count", 93],
    ["execute", "a", "disk-read", "count", 7],
    ["get-data", "", "disk-read", "count", 50],
  );
  expect(hitRate(reads, whole, {})).toEqual({ share: 0.93, hits: 93, reads: 100, unit: "count" });
  expect(hitRate(reads, whole, { prefixes: ["b"] })).toBeNull();
  const bytes = cubeOf(["execute", "a", "memory-read", "bytes", 10]);
  expect(hitRate(bytes, whole, {})).toEqual({ share: 1, hits: 10, reads: 10, unit: "bytes" });
  expect(hitRate(internals, whole, {})).toBeNull();
});

test("memory and disk reads have different colours", () => {
  expect(activityStyle("memory-read")).toEqual({ name: "Memory read", colour: "--mem-managed" });
  expect(activityStyle("disk-read")).toEqual({ name: "Disk", class: "a-disk" });
  expect(activityStyle("my-reader")).toEqual({ name: "Other", colour: "--cat-2" });
});

test("the legend lists each colour once, in the order of the bars", () => {
  const rows = ["my-reader", "memory-read", "disk-read", "other", "executor", "thread-cpu"].map((activity) => ({
    ...{ context: "execute", prefix: "a", value: 1 },
    activity,
  }));
  expect(legendOf(rows).map((style) => style.name)).toEqual(["CPU", "Waiting", "Disk", "Memory read", "Other"]);
});

test("activities of one colour add up, the largest first", () => {
  const rows = [
    { activity: "p2p-get-output-noncpu", value: 1 },
    { activity: "thread-cpu", value: 5 },
    { activity: "thread-noncpu", value: 80 },
  ].map((row) => ({ context: "execute", prefix: "a", ...row }));
  expect(sumByStyle(rows).map(({ style, value, members }) => [style.name, value, members.map((m) => m.value)])).toEqual(
    [
      ["CPU", 5, [5]],
      ["Waiting", 81, [80, 1]],
    ],
  );
});

test.each([[[]], [["a"]], [["a,b", "c d", "100%", "é"]]])("the list %j survives the URL", (items) => {
  expect(splitList(joinList(items))).toEqual(items);
});

test("a list written by hand is read as it is", () => expect(splitList("100%,a b")).toEqual(["100%", "a b"]));

test("activities of Dask have plain names, and activities of users keep theirs", () => {
  expect(activityName("thread-noncpu", "execute")).toBe("Waiting in task");
  expect(activityName("network", "get-data")).toBe("Send");
  expect(activityName("network", "gather-dep")).toBe("Receive");
  expect(activityName("network")).toBe("Send and receive");
  expect(["my-reader", "constructor", "__proto__"].map((name) => activityName(name))).toEqual([
    "my-reader",
    "constructor",
    "__proto__",
  ]);
  expect([contextName("gather-dep"), contextName("mine")]).toEqual(["fetching inputs", "mine"]);
});
