import { describe, expect, test } from "vitest";
import type { CubeData } from "../../src/model/cube";
import { pairs, rate } from "../../src/model/transfers";

/** a → b twice in bins 0 and 1, b → a once in bin 2. */
const cube: CubeData = {
  rows: 3,
  step: 1,
  keys: { source: ["a", "b"], destination: ["a", "b"] },
  codes: { source: new Uint8Array([0, 0, 1]), destination: new Uint8Array([1, 1, 0]) },
  bin: new Uint8Array([0, 1, 2]),
  measures: {
    count: new Uint32Array([1, 2, 3]),
    nbytes: new Float64Array([10, 20, 2 ** 40]),
    compressed: new Float64Array([5, 0, 0]),
    us: new Float64Array([100, 200, 300]),
  },
};

describe("worker pairs", () => {
  test("transfers add up by sender and receiver", () => {
    expect(pairs(cube, 0, 3)).toEqual([
      { source: "a", destination: "b", count: 3, nbytes: 30, compressed: 5, us: 300 },
      { source: "b", destination: "a", count: 3, nbytes: 2 ** 40, compressed: 0, us: 300 },
    ]);
  });

  test("only transfers of the selected bins count", () => {
    expect(pairs(cube, 1, 2)).toMatchObject([{ source: "a", destination: "b", count: 2 }]);
    expect(pairs(cube, 5, 9)).toEqual([]);
  });

  test("an empty cube has no pairs", () => expect(pairs({ ...cube, rows: 0 }, 0, 3)).toEqual([]));
});

describe("rate", () => {
  test("it is in bytes per second", () => expect(rate({ nbytes: 1000, us: 1e6 })).toBe(1000));
  test("transfers without a duration have no rate", () => expect(rate({ nbytes: 1000, us: 0 })).toBe(0));
  test("short transfers have high rates", () => expect(rate({ nbytes: 1, us: 1 })).toBe(1e6));
});
