import { expect, test } from "vitest";
import type { CubeData } from "../../src/model/cube";
import { threadTimeRows } from "../../src/viewer/fine-metrics/thread-time";
import { byLength, reasonsIn } from "../../src/viewer/overview/overview-reasons";

/** 5 µs of "no task" in bin 0, 30 µs of "few tasks" and 1 µs of "no task" in bin 2. */
const cube: CubeData = {
  rows: 3,
  step: 1,
  keys: { reason: ["no task", "few tasks", "scheduler"] },
  codes: { reason: new Uint8Array([0, 1, 0]) },
  bin: new Uint8Array([0, 2, 2]),
  measures: { us: new Float64Array([5, 30, 1]) },
};
const reasons = [
  { reason: "no task", label: "No task to run", us: 6 },
  { reason: "few tasks", label: "Fewer tasks than threads", us: 30 },
];

test("reasons of the selected time are sorted, and those without time left out", () => {
  expect(reasonsIn(cube, reasons, { b0: 0, b1: 3 }).map((r) => [r.label, r.us])).toEqual([
    ["Fewer tasks than threads", 30],
    ["No task to run", 6],
  ]);
  expect(reasonsIn(cube, reasons, { b0: 0, b1: 1 })).toEqual([{ reason: "no task", label: "No task to run", us: 5 }]);
  expect(reasonsIn(cube, reasons, { b0: 1, b1: 2 })).toEqual([]);
});

test("a reason without a label is shown by its name", () => {
  expect(reasonsIn(cube, [], { b0: 0, b1: 1 })[0].label).toBe("no task");
});

test("reasons are listed longest first", () => {
  expect(byLength([...reasons, { reason: "x", label: "X", us: 0 }]).map((r) => r.us)).toEqual([30, 6]);
});

test("thread time has idle time by reason, and shares that add up as in the overview", () => {
  const time: CubeData = {
    rows: 3,
    step: 1,
    keys: { category: ["cpu", "idle", "disk"] },
    codes: { category: new Uint8Array([0, 1, 1]) },
    bin: new Uint8Array([0, 0, 2]),
    measures: { us: new Float64Array([64, 5, 31]) },
  };
  const split = [
    { category: "cpu" as const, label: "CPU", us: 64, reasons: [] },
    { category: "disk" as const, label: "Disk", us: 0, reasons: [] },
    { category: "idle" as const, label: "Idle", us: 36, reasons },
  ];
  expect(threadTimeRows(split, time, cube, { b0: 0, b1: 3 }).map((r) => [r.label, r.us, r.share])).toEqual([
    ["CPU", 64, "64 %"],
    ["Idle: fewer tasks than threads", 30, "30 %"],
    ["Idle: no task to run", 6, "6 %"],
  ]);
});
