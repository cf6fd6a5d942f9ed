import { expect, test } from "vitest";
import { MAX_COMPARED_RUNS } from "../../src/api/limits.gen";
import { type Chosen, chooseSide, compared, parseRuns, problemOf, runsOf } from "../../src/app/compare/compare-runs";
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

test("a run is on one side, or on none", () => {
  const first = chooseSide(chooseSide(new Map(), "a/1", "before"), "b/2", "after");
  expect([runsOf(first, "before"), runsOf(first, "after")]).toEqual([["a/1"], ["b/2"]]);
  const moved = chooseSide(first, "a/1", "after");
  expect([runsOf(moved, "before"), runsOf(moved, "after")]).toEqual([[], ["a/1", "b/2"]]);
  expect(runsOf(chooseSide(moved, "a/1", "after"), "after")).toEqual(["b/2"]);
});

test("both sides need a run, and no more than the server takes", () => {
  const side = (before: number, after: number): Chosen =>
    new Map([
      ...Array.from({ length: before }, (_, i) => [`b/${i}`, "before"] as const),
      ...Array.from({ length: after }, (_, i) => [`a/${i}`, "after"] as const),
    ]);
  const none = "Choose at least one run before and one after.";
  expect([side(0, 0), side(3, 0), side(0, 3)].map(problemOf)).toEqual([none, none, none]);
  expect([side(1, 1), side(MAX_COMPARED_RUNS, MAX_COMPARED_RUNS)].map(problemOf)).toEqual(["", ""]);
  expect([side(21, 1), side(1, 21)].map(problemOf)).toEqual(Array(2).fill("Choose up to 20 runs on each side."));
});

test("the button says with how many runs", () => {
  expect([0, 1, 2, 10].map(compareText)).toEqual([
    "Compare",
    "Compare with this run",
    "Compare with these 2 runs",
    "Compare with these 10 runs",
  ]);
});
