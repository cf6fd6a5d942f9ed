import { expect, test } from "vitest";
import { compared, parseRuns } from "../../src/team/compare-runs";

test("runs survive the URL, whatever their IDs contain", () => {
  const odd = { cluster_id: "a,b", id: "c/d %" };
  const { before, after } = compared([odd, { cluster_id: "x", id: "y" }], odd);
  expect(parseRuns(before)).toEqual([
    { cluster: "a,b", computation: "c/d %" },
    { cluster: "x", computation: "y" },
  ]);
  expect(parseRuns(after)).toEqual([{ cluster: "a,b", computation: "c/d %" }]);
});

test("a cluster without a computation, and broken text", () => {
  expect(parseRuns("whole,%zz/b,")).toEqual([
    { cluster: "whole", computation: "" },
    { cluster: "%zz", computation: "b" },
  ]);
});
