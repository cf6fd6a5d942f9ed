import { describe, expect, test } from "vitest";
import { pan, select, tickStep, wholeRun, zoom } from "../../src/model/time";

const axis = { length: 1000, width: 10, bins: 100 };

describe("selecting time", () => {
  test("the whole run covers all bins", () => {
    expect(wholeRun(axis)).toEqual({ t0: 0, t1: 1000, b0: 0, b1: 100, whole: true });
  });

  test("long selections snap to bins, so that sums are exact", () => {
    expect(select(axis, 104, 296)).toEqual({ t0: 100, t1: 300, b0: 10, b1: 30, whole: false });
  });

  test("the order of the ends does not matter", () => {
    expect(select(axis, 296, 104)).toEqual(select(axis, 104, 296));
  });

  test("selections shorter than four bins keep their exact ends", () => {
    expect(select(axis, 103, 108)).toEqual({ t0: 103, t1: 108, b0: 10, b1: 11, whole: false });
    expect(select(axis, 108, 112)).toMatchObject({ b0: 10, b1: 12 });
    expect(select(axis, 100, 139.9)).toMatchObject({ t0: 100, t1: 139.9 });
    expect(select(axis, 101, 141)).toMatchObject({ t0: 100, t1: 140 });
  });

  test("ends outside the run are clamped", () => {
    expect(select(axis, -50, 300)).toMatchObject({ t0: 0, t1: 300 });
    expect(select(axis, 700, 5000)).toMatchObject({ t0: 700, t1: 1000, b1: 100 });
    expect(select(axis, -5, 2000)).toEqual(wholeRun(axis));
  });

  test.each([
    ["empty", 7, 7],
    ["outside the run", 2000, 3000],
    ["before the run", -3000, -2000],
    ["not a number", Number.NaN, 5],
    ["not a number at the end", 5, Number.NaN],
  ])("a selection that is %s selects the whole run", (_, from, to) => {
    expect(select(axis, from, to)).toEqual(wholeRun(axis));
  });

  test("the last moment of the run is in the last bin", () => {
    expect(select(axis, 999.999999999, 1000)).toMatchObject({ b0: 99, b1: 100 });
    expect(select(axis, 999.9999999999, 1000)).toMatchObject({ b0: 99, b1: 100 });
  });

  test("a partial last bin belongs to the selection", () => {
    const partial = { length: 995, width: 10, bins: 100 };
    expect(select(partial, 500, 995)).toMatchObject({ t0: 500, t1: 995, b1: 100, whole: false });
    expect(select(partial, 0, 995).whole).toBe(true);
  });

  test("a run with one bin can be selected in part", () => {
    expect(select({ length: 10, width: 10, bins: 1 }, 2, 4)).toEqual({ t0: 2, t1: 4, b0: 0, b1: 1, whole: false });
  });
});

describe("zooming", () => {
  test("the center stays in place by default", () => {
    const near = zoom(axis, wholeRun(axis), 0.5);
    expect((near.t0 + near.t1) / 2).toBe(500);
    expect(near.t1 - near.t0).toBe(500);
  });

  test("a given time keeps its position", () => {
    expect(zoom(axis, wholeRun(axis), 0.5, 0)).toMatchObject({ t0: 0, t1: 500 });
    expect(zoom(axis, wholeRun(axis), 0.5, 1000)).toMatchObject({ t0: 500, t1: 1000 });
  });

  test("zooming out stops at the whole run", () => {
    expect(zoom(axis, select(axis, 400, 600), 100)).toEqual(wholeRun(axis));
    expect(zoom(axis, select(axis, 0, 200), 2)).toMatchObject({ t0: 0, t1: 400 });
  });

  test("zooming in stops at 20 µs", () => {
    const closest = zoom(axis, select(axis, 500, 510), 1e-9);
    expect(closest.t1 - closest.t0).toBeCloseTo(20);
  });

  test("a run shorter than 20 µs cannot be zoomed", () => {
    const short = { length: 5, width: 1, bins: 5 };
    expect(zoom(short, wholeRun(short), 0.5)).toEqual(wholeRun(short));
  });
});

describe("panning", () => {
  test("the selection moves by a share of its length", () => {
    expect(pan(axis, select(axis, 200, 400), 0.5)).toMatchObject({ t0: 300, t1: 500 });
    expect(pan(axis, select(axis, 200, 400), -0.5)).toMatchObject({ t0: 100, t1: 300 });
  });

  test("the selection stays within the run and keeps its length", () => {
    expect(pan(axis, select(axis, 0, 200), -1)).toMatchObject({ t0: 0, t1: 200 });
    expect(pan(axis, select(axis, 800, 1000), 3)).toMatchObject({ t0: 800, t1: 1000 });
  });

  test("the whole run does not move", () => expect(pan(axis, wholeRun(axis), 0.5)).toEqual(wholeRun(axis)));
});

describe("ticks of a time axis", () => {
  test.each([
    [60e6, 10, 10e6],
    [60e6, 5, 15e6],
    [10, 5, 2],
    [10, 1, 10],
    [3_600e6, 4, 900e6],
    [86_400e6 * 30, 5, 86_400e6 * 6],
    [0.9e6, 10, 0.1e6],
    [0, 10, 1],
    [1, 0, 1],
  ])("%d µs with about %d ticks have a step of %d µs", (length, ticks, step) => {
    expect(tickStep(length, ticks)).toBe(step);
  });

  test("there are never more ticks than asked for", () => {
    for (const length of [1, 37, 999, 12_345, 7e6, 95e6, 4_000e6, 9e11])
      expect(length / tickStep(length, 8)).toBeLessThanOrEqual(8);
  });
});
