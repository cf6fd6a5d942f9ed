import { expect, test } from "vitest";
import type { SeriesData } from "../../src/model/series";
import { processSeries } from "../../src/viewer/memory-series";

const data = (...values: number[]): SeriesData => ({ workers: ["a"], bins: 2, values: Float32Array.from(values) });
const labels = (spilled: SeriesData, ...limits: number[]) =>
  processSeries({ memory: data(5, 6), managed: data(1, 2), spilled }, Float64Array.from(limits), 0, 2).map(
    (s) => s.label,
  );

test("the limit is drawn however little memory is in use", () => {
  expect(labels(data(0, 0), 1e9, 1e9)).toEqual(["process memory", "managed", "limit"]);
});

test("lines without a value are left out", () => {
  expect(labels(data(0, 0), 0, 0)).toEqual(["process memory", "managed"]);
  expect(labels(data(0, 3), 0, 0)).toEqual(["process memory", "managed", "spilled"]);
});
