import { expect, test } from "vitest";
import { axisTicks } from "../../src/widgets/plots/scatter";

test.each([
  [52_500, [0, 20_000, 40_000]],
  [10, [0, 2, 4, 6, 8, 10]],
  [856_000, [0, 200_000, 400_000, 600_000, 800_000]],
  [1, [0, 0.2, 0.4, 0.6000000000000001, 0.8, 1]],
  [0, [0]],
  [Number.NaN, [0]],
  [Number.POSITIVE_INFINITY, [0]],
])("the ticks up to %d are round", (max, expected) => {
  expect(axisTicks(max)).toEqual(expected);
});
