import { expect, test } from "vitest";
import { estimatedShare, expectedSeconds } from "../../src/app/reports/report-viewer";

test("small reports need no progress bar", () => {
  expect(expectedSeconds(0)).toBe(0);
  expect(expectedSeconds(100_000)).toBe(0);
});

test("five million tasks take about 15 seconds", () => {
  expect(expectedSeconds(5_000_000)).toBeCloseTo(14.5);
});

test("the bar grows, and stops before its end", () => {
  const shares = [0, 1, 5, 10, 20, 1000].map((elapsed) => estimatedShare(elapsed, 10));
  expect(shares[0]).toBe(0);
  expect(shares).toEqual([...shares].sort((a, b) => a - b));
  expect(shares.at(-1)).toBe(0.95);
});
