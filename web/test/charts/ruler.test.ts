import { describe, expect, test } from "vitest";
import { rulerColumns, shareOf } from "../../src/charts/ruler";
import { legendOf } from "../../src/widgets/stream/time-ruler";

const AXIS = { length: 9.5, width: 1, bins: 10 };
const ends = (width: number, knownUntil: number) => rulerColumns(AXIS, width, knownUntil).map(({ t0, t1 }) => [t0, t1]);

describe("the columns of the ruler", () => {
  test("there is one per bin, or as many as there are pixels", () => {
    expect(ends(100, Number.POSITIVE_INFINITY).slice(-2)).toEqual([
      [8, 9],
      [9, 9.5],
    ]);
    expect(ends(2, Number.POSITIVE_INFINITY)).toEqual([
      [0, 5],
      [5, 9.5],
    ]);
  });

  test("they end where nothing is known", () => {
    expect(ends(100, 2.25)).toEqual([
      [0, 1],
      [1, 2],
      [2, 2.25],
    ]);
    expect(ends(100, 0)).toEqual([]);
  });

  test("the last one is as high as the others if as many threads are busy", () => {
    // Four threads for two seconds and a quarter.
    const values = Float64Array.from([4, 4, 1, 0, 0, 0, 0, 0, 0, 0]);
    expect(rulerColumns(AXIS, 100, 2.25).map((column) => shareOf(values, column, AXIS, 8))).toEqual([0.5, 0.5, 0.5]);
  });

  test("none is higher than the ruler", () => {
    const [first] = rulerColumns(AXIS, 100, 0.5);
    expect(shareOf(Float64Array.from([9]), first, AXIS, 8)).toBe(1);
    expect(shareOf(Float64Array.from([9]), first, AXIS, 0)).toBe(0);
  });
});

test("the legend of a run that goes on does not call its compute time CPU time", () => {
  const names = (isLive: boolean) => legendOf(isLive).map(([, text]) => text);
  expect(names(false).slice(0, 2)).toEqual(["CPU", "waiting"]);
  expect(names(true)).toEqual(["compute (CPU and waiting)", ...names(false).slice(2)]);
});
