import { describe, expect, test } from "vitest";
import type { Cube } from "../../src/api/schema.gen";
import type { Columns } from "../../src/api/source";
import { type CubeData, loadCube, overTime, sumBy, sumByTwo, total } from "../../src/model/cube";

/** Rows: (a, cpu, bin 0, 10), (a, idle, bin 1, 20), (b, cpu, bin 1, 30), (b, cpu, bin 2, 40). */
const cube: CubeData = {
  rows: 4,
  step: 1,
  keys: { prefix: ["a", "b"], category: ["cpu", "idle"] },
  codes: { prefix: new Uint8Array([0, 0, 1, 1]), category: new Uint8Array([0, 1, 0, 0]) },
  bin: new Uint8Array([0, 1, 1, 2]),
  measures: { us: new Float64Array([10, 20, 30, 40]) },
};

const empty: CubeData = {
  rows: 0,
  step: 1,
  keys: { prefix: [] },
  codes: { prefix: new Uint8Array(0) },
  bin: new Uint8Array(0),
  measures: { us: new Float64Array(0) },
};

const lists = (series: Float64Array[]) => series.map((s) => Array.from(s));

describe("sums by one key", () => {
  test("without a range they cover all bins", () => {
    expect(Array.from(sumBy(cube, "prefix", "us", null))).toEqual([30, 70]);
  });

  test("a range selects bins, excluding its end", () => {
    expect(Array.from(sumBy(cube, "prefix", "us", { b0: 1, b1: 2 }))).toEqual([20, 30]);
    expect(Array.from(sumBy(cube, "prefix", "us", { b0: 3, b1: 9 }))).toEqual([0, 0]);
  });

  test("a filter selects rows by code", () => {
    expect(Array.from(sumBy(cube, "prefix", "us", null, { category: 0 }))).toEqual([10, 70]);
  });

  test("an unknown code matches nothing", () => {
    expect(Array.from(sumBy(cube, "prefix", "us", null, { category: -1 }))).toEqual([0, 0]);
  });

  test("a filter on a key that the cube does not have is ignored", () => {
    expect(Array.from(sumBy(cube, "prefix", "us", null, { worker: 3 }))).toEqual([30, 70]);
  });

  test("unknown keys and measures give zeros", () => {
    expect(Array.from(sumBy(cube, "worker", "us", null))).toEqual([]);
    expect(Array.from(sumBy(cube, "prefix", "nbytes", null))).toEqual([0, 0]);
  });

  test("the size of the result can be given for keys without names", () => {
    expect(Array.from(sumBy(cube, "prefix", "us", null, {}, 4))).toEqual([30, 70, 0, 0]);
  });

  test("an empty cube has no sums", () => expect(Array.from(sumBy(empty, "prefix", "us", null))).toEqual([]));

  test("sums larger than 32 bits are exact", () => {
    const large: CubeData = { ...cube, measures: { us: new Uint32Array([4e9, 4e9, 4e9, 4e9]) } };
    expect(Array.from(sumBy(large, "prefix", "us", null))).toEqual([8e9, 8e9]);
  });
});

describe("sums by two keys", () => {
  test("rows are the first key, columns the second", () => {
    expect(lists(sumByTwo(cube, "prefix", "category", "us", null))).toEqual([
      [10, 20],
      [70, 0],
    ]);
  });

  test("range and filter apply", () => {
    expect(lists(sumByTwo(cube, "prefix", "category", "us", { b0: 1, b1: 3 }, { prefix: 1 }))).toEqual([
      [0, 0],
      [70, 0],
    ]);
  });

  test("unknown keys give an empty result", () => {
    expect(sumByTwo(cube, "worker", "category", "us", null)).toEqual([]);
    expect(lists(sumByTwo(cube, "prefix", "worker", "us", null))).toEqual([[], []]);
  });
});

describe("totals", () => {
  test("they add up the rows of the range", () => {
    expect(total(cube, "us", null)).toBe(100);
    expect(total(cube, "us", { b0: 0, b1: 2 })).toBe(60);
    expect(total(cube, "us", null, { prefix: 0 })).toBe(30);
  });

  test("an unknown measure or an empty cube has a total of zero", () => {
    expect(total(cube, "nbytes", null)).toBe(0);
    expect(total(empty, "us", null)).toBe(0);
  });
});

describe("cubes with merged bins", () => {
  const coarse: CubeData = { ...cube, step: 2, bin: new Uint8Array([0, 0, 2, 2]) };

  test("a range that starts within merged bins includes all of them", () => {
    expect(total(coarse, "us", { b0: 3, b1: 4 })).toBe(70);
    expect(total(coarse, "us", { b0: 1, b1: 2 })).toBe(30);
  });

  test("a range that ends before merged bins excludes them", () => {
    expect(total(coarse, "us", { b0: 0, b1: 2 })).toBe(30);
  });
});

describe("series over time", () => {
  test("there is one value per bin and one series per code", () => {
    expect(lists(overTime(cube, "category", "us", 3))).toEqual([
      [10, 30, 40],
      [0, 20, 0],
    ]);
  });

  test("bins beyond the end are dropped", () => {
    expect(lists(overTime(cube, "category", "us", 2))).toEqual([
      [10, 30],
      [0, 20],
    ]);
  });

  test("a filter applies", () => {
    expect(lists(overTime(cube, "category", "us", 3, { prefix: 0 }))).toEqual([
      [10, 0, 0],
      [0, 20, 0],
    ]);
  });

  test("an unknown key has no series", () => expect(overTime(cube, "worker", "us", 3)).toEqual([]));
});

test("loading a cube separates keys, bins and measures", async () => {
  const block = (name: string) => ({ block: name, dtype: "u8" as const, length: 2 });
  const document: Cube = {
    rows: 2,
    step: 1,
    keys: { prefix: ["a", "b"] },
    measures: ["us"],
    columns: { prefix: block("p"), bin: block("b"), us: block("u") },
  };
  const data: Record<string, Uint8Array> = {
    p: new Uint8Array([0, 1]),
    b: new Uint8Array([3, 4]),
    u: new Uint8Array([5, 6]),
  };
  const columns = { numbers: (b: { block: string }) => Promise.resolve(data[b.block]) } as unknown as Columns;
  const loaded = await loadCube(document, columns);
  expect(Object.keys(loaded.codes)).toEqual(["prefix"]);
  expect(Array.from(loaded.bin)).toEqual([3, 4]);
  expect(Array.from(sumBy(loaded, "prefix", "us", null))).toEqual([5, 6]);
});
