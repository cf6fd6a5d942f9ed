import { describe, expect, test } from "vitest";
import type { HistoryChange, HistoryRun } from "../../src/api/server.gen";
import {
  axisSteps,
  dateTicks,
  historyLabel,
  knownMeasures,
  RUN_MEASURES,
  runValue,
} from "../../src/model/run-measures";

const run = (start: string | null, cost: number | null = null): HistoryRun => ({
  id: "k",
  cluster_id: "c",
  start,
  duration: 0,
  cost,
  compute: 0,
  transfer: 0,
  disk: 0,
  n_tasks: 0,
  n_errors: 0,
  nbytes: 0,
  threads: 0,
});
const runs = (n: number) =>
  Array.from({ length: n }, (_, i) => run(`2026-01-${String(1 + (i % 28)).padStart(2, "0")}T10:00:00Z`));
const change: HistoryChange = { at: null, sentence: "", causes: [] };

test("a measure without values is left out, but never the duration", () => {
  const without = RUN_MEASURES.filter(([id]) => id !== "cost");
  expect(knownMeasures([run(null), run(null)])).toEqual(without);
  expect(knownMeasures([run(null), run(null, 0.5)])).toEqual(RUN_MEASURES);
  expect(knownMeasures([])).toEqual([["duration", "Duration"]]);
});

test("values have their unit", () => {
  expect(RUN_MEASURES.map(([id]) => runValue(id, 0))).toEqual(["0 s", "$0", "0 s", "0 s", "0 s", "0", "0 B", "0", "0"]);
  expect(RUN_MEASURES.map(([id]) => runValue(id, 1234))).toEqual([
    "20 min 34 s",
    "$1,234",
    "20 min 34 s",
    "20 min 34 s",
    "20 min 34 s",
    "1,234",
    "1.21 KiB",
    "1,234",
    "1,234",
  ]);
  expect(runValue("cost", null)).toBe("not recorded");
});

test("costs below a cent can be told apart", () => {
  expect([0.0123, 0.01, 0.0099, 0.00061, 0.0000012].map((cost) => runValue("cost", cost))).toEqual([
    "$0.01",
    "$0.01",
    "$0.0099",
    "$0.00061",
    "$0.0000012",
  ]);
});

test("counts and bytes have their own steps on the axis", () => {
  expect(axisSteps("threads")?.slice(0, 5)).toEqual([1, 2, 5, 10, 20]);
  expect(axisSteps("nbytes")?.slice(0, 4)).toEqual([1, 2, 4, 8]);
  expect(axisSteps("duration")).toBeUndefined();
});

describe("the dates on the axis", () => {
  test("the time replaces a date that repeats", () => {
    const starts = ["2026-01-01T10:00:00Z", "2026-01-01T22:30:00Z", "2026-01-02T10:00:00Z"];
    expect(dateTicks(starts, 5)).toEqual([
      [0, "2026-01-01"],
      [1, "22:30"],
      [2, "2026-01-02"],
    ]);
  });

  test("there are never more than fit", () => {
    const starts = runs(200).map((one) => one.start);
    for (const max of [0, 1, 3, 12, 500]) expect(dateTicks(starts, max).length).toBeLessThanOrEqual(Math.max(1, max));
    expect(dateTicks(starts, 3).map(([i]) => i)).toEqual([0, 67, 134]);
  });

  test("one run, no run, and an unknown time", () => {
    expect(dateTicks(["2026-01-01T10:00:00Z"], 9)).toEqual([[0, "2026-01-01"]]);
    expect(dateTicks([], 9)).toEqual([]);
    expect(dateTicks([null], 9)).toEqual([[0, ""]]);
  });
});

test("the label says how many runs, from when to when, and how often the duration changed", () => {
  const label = (n: number, changes: HistoryChange[] = []) => historyLabel("Duration", { runs: runs(n), changes });
  expect(label(1)).toBe("Duration of 1 run on 2026-01-01. Changes appear after 15 finished runs.");
  expect(label(14)).toBe("Duration of 14 runs from 2026-01-01 to 2026-01-14. Changes appear after 15 finished runs.");
  expect(label(15)).toBe("Duration of 15 runs from 2026-01-01 to 2026-01-15. The duration has not changed.");
  expect(label(20, [change, change])).toBe(
    "Duration of 20 runs from 2026-01-01 to 2026-01-20. 2 changes of the duration.",
  );
});
