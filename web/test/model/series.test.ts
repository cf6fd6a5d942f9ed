import { describe, expect, test } from "vitest";
import type { Series } from "../../src/api/schema.gen";
import type { Columns } from "../../src/api/source";
import { fillGaps, loadSeries, peak, rowOf, type SeriesData, sumWorkers } from "../../src/model/series";

const nan = Number.NaN;
const data = (workers: number, bins: number, values: number[]): SeriesData => ({
  workers: Array.from({ length: workers }, (_, i) => `w${i}`),
  bins,
  values: Float32Array.from(values),
});

describe("filling gaps", () => {
  test("a gap between two samples has the value of the first", () => {
    expect(Array.from(fillGaps(Float32Array.from([1, nan, nan, 4]), 4))).toEqual([1, 1, 1, 4]);
  });

  test("there is no value before the first and after the last sample", () => {
    expect(Array.from(fillGaps(Float32Array.from([nan, 1, nan, 3, nan]), 5))).toEqual([nan, 1, 1, 3, nan]);
  });

  test("the last sample holds until the worker left", () => {
    const values = Float32Array.from([nan, 2, nan, nan, 3, nan, nan, nan]);
    const held = (row: number) => [2, 99][row];
    expect(Array.from(fillGaps(values, 4, held))).toEqual([nan, 2, 2, nan, 3, 3, 3, 3]);
  });

  test("workers do not affect each other", () => {
    expect(Array.from(fillGaps(Float32Array.from([1, nan, nan, 2, nan, 3]), 3))).toEqual([1, nan, nan, 2, 2, 3]);
  });

  test("a worker without samples has no values", () => {
    expect(Array.from(fillGaps(Float32Array.from([nan, nan]), 2))).toEqual([nan, nan]);
  });

  test("zero is a sample", () => {
    expect(Array.from(fillGaps(Float32Array.from([0, nan, 5]), 3))).toEqual([0, 0, 5]);
  });

  test("the input is not changed and may be empty", () => {
    const values = Float32Array.from([1, nan, 3]);
    fillGaps(values, 3);
    expect(values[1]).toBeNaN();
    expect(fillGaps(new Float32Array(0), 3)).toHaveLength(0);
  });
});

describe("rows and peaks", () => {
  const two = data(2, 3, [1, 5, 2, nan, 7, nan]);

  test("a row has the bins of one worker", () => {
    expect(Array.from(rowOf(two, 0))).toEqual([1, 5, 2]);
    expect(Array.from(rowOf(two, 1))).toEqual([nan, 7, nan]);
  });

  test("the peak is the largest sample in the bins", () => {
    expect(peak(two, 0, 0, 3)).toBe(5);
    expect(peak(two, 0, 2, 3)).toBe(2);
    expect(peak(two, 1, 0, 3)).toBe(7);
  });

  test("without samples the peak is NaN", () => {
    expect(peak(two, 1, 0, 1)).toBeNaN();
    expect(peak(two, 0, 1, 1)).toBeNaN();
  });

  test("negative samples have a peak", () => expect(peak(data(1, 2, [-5, -3]), 0, 0, 2)).toBe(-3));
});

describe("the sum of all workers", () => {
  test("samples of one bin add up", () => {
    expect(Array.from(sumWorkers(data(2, 3, [1, nan, 3, 10, nan, nan]), 0, 3))).toEqual([11, nan, 3]);
  });

  test("only the bins of the range are returned", () => {
    expect(Array.from(sumWorkers(data(1, 4, [1, 2, 3, 4]), 1, 3))).toEqual([2, 3]);
  });

  test("without workers there are no values", () => {
    expect(Array.from(sumWorkers(data(0, 3, []), 0, 2))).toEqual([nan, nan]);
  });

  test("sums are exact beyond 32 bits", () => {
    expect(Array.from(sumWorkers(data(2, 1, [2 ** 40, 2 ** 40]), 0, 1))).toEqual([2 ** 41]);
  });
});

describe("loading", () => {
  const series = {
    workers: ["a"],
    measures: { process: { block: "m", dtype: "f32", length: 3 } },
  } as unknown as Series;
  const columns = { numbers: () => Promise.resolve(Float32Array.from([1, nan, 3])) } as unknown as Columns;

  test("gaps are filled", async () => {
    const loaded = await loadSeries(series, "process", 3, columns);
    expect(Array.from(loaded?.values ?? [])).toEqual([1, 1, 3]);
  });

  test("an unknown measure is null", async () => {
    expect(await loadSeries(series, "nonsense", 3, columns)).toBeNull();
  });
});
