import { expect, test } from "vitest";
import { curveLabel, hasRange, perfectScaling, wallTime, wholeNumber, workerCounts } from "../../src/model/what-if";

test("a curve has powers of two up to the largest number, and that number", () => {
  expect(workerCounts(1)).toEqual([1]);
  expect(workerCounts(8)).toEqual([1, 2, 4, 8]);
  expect(workerCounts(12)).toEqual([1, 2, 4, 8, 12]);
  expect(workerCounts(1000)).toEqual([8, 16, 32, 64, 128, 256, 512, 1000]);
});

test("a number that a reader types stays within its limits", () => {
  expect(["7", "0", "-3", "2.6", "99999", "", " ", "x"].map((text) => wholeNumber(text, 5, 1000))).toEqual([
    7, 1, 1, 3, 1000, 5, 5, 5,
  ]);
});

test("perfect scaling divides the time of the smallest cluster", () => {
  const predictions = [
    { workers: 2, duration: 10 },
    { workers: 4, duration: 7 },
    { workers: 8, duration: 6 },
  ];
  expect(perfectScaling(predictions)).toEqual([10, 5, 2.5]);
});

test("a wall time is a range if its ends differ to the reader", () => {
  expect(wallTime({ duration: 10, max_duration: 12 })).toBe("10.0 s to 12.0 s");
  expect(wallTime({ duration: 10, max_duration: 10.001 })).toBe("10.0 s");
  expect(hasRange([{ duration: 10, max_duration: 10.001 }])).toBe(false);
  expect(
    hasRange([
      { duration: 10, max_duration: 10 },
      { duration: 5, max_duration: 8 },
    ]),
  ).toBe(true);
});

test("the label of the curve has its ends, and explains its lines", () => {
  const one = { workers: 1, duration: 8, max_duration: 8 };
  expect(curveLabel([one, { workers: 4, duration: 2, max_duration: 2 }])).toBe(
    "8.00 s with 1 worker, 2.00 s with 4. Dashed: perfect scaling.",
  );
  expect(curveLabel([one, { workers: 4, duration: 2, max_duration: 3 }])).toBe(
    "8.00 s with 1 worker, 2.00 s to 3.00 s with 4. Shaded: the range up to the longest wall time. Dashed: perfect scaling.",
  );
});
