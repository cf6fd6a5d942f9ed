import { expect, test } from "vitest";
import type { RecentRun } from "../../src/api/server.gen";
import { compared, parseRuns, sidesOf } from "../../src/app/compare/compare-runs";
import { compareText } from "../../src/app/run/earlier-runs";

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

test("the last finished runs are compared with those before, or with another name", () => {
  const group = (...states: RecentRun["state"][]) => ({
    recent: states.map((state, i) => ({ id: `r${i}`, state }) as RecentRun),
  });
  const seven = group("finished", "finished", "failed", "finished", "finished", "finished", "running");
  expect(sidesOf(seven, null, 2)).toEqual({ before: ["r1", "r3"], after: ["r4", "r5"] });
  expect(sidesOf(seven, null, 5)).toEqual({ before: ["r0", "r1"], after: ["r3", "r4", "r5"] });
  expect(sidesOf(seven, group("finished"), 5)).toEqual({ before: ["r0"], after: ["r0", "r1", "r3", "r4", "r5"] });
  expect(sidesOf(group("finished"), null, 5)).toEqual({ before: [], after: ["r0"] });
  expect(sidesOf(group("failed"), null, 5)).toEqual({ before: [], after: [] });
});

test("the button says with how many runs", () => {
  expect([0, 1, 2, 10].map(compareText)).toEqual([
    "Compare",
    "Compare with this run",
    "Compare with these 2 runs",
    "Compare with these 10 runs",
  ]);
});
