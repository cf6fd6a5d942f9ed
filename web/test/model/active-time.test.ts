import { expect, test } from "vitest";
import { activeTime } from "../../src/model/active-time";
import type { CubeData } from "../../src/model/cube";
import { select, wholeRun } from "../../src/model/time";

const axis = { length: 1000, width: 10, bins: 100 };

/** A cube with 1 µs of a category in each of the bins. */
function cube(...rows: readonly [category: "cpu" | "idle", bin: number][]): CubeData {
  const names = ["cpu", "idle"];
  return {
    rows: rows.length,
    step: 1,
    keys: { category: names },
    codes: { category: Uint8Array.from(rows, ([category]) => names.indexOf(category)) },
    bin: Uint8Array.from(rows, ([, bin]) => bin),
    measures: { us: Float64Array.from(rows, () => 1) },
  };
}

test("the active time is from the first to the last busy thread", () => {
  expect(activeTime(cube(["idle", 0], ["cpu", 20], ["cpu", 30], ["idle", 99]), axis)).toEqual(select(axis, 200, 310));
});

test("a run without work or with work most of the time is shown whole", () => {
  expect(activeTime(cube(["idle", 0]), axis)).toEqual(wholeRun(axis));
  expect(activeTime(cube(["cpu", 2], ["cpu", 95]), axis)).toEqual(wholeRun(axis));
});
