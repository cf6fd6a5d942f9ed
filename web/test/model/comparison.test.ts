import { describe, expect, test } from "vitest";
import type { ComparedChange, ComparedPrefix } from "../../src/api/schema.gen";
import { changeText, quantityText } from "../../src/model/comparison";
import { changeStep, differential, type Stacks } from "../../src/model/flame";
import { duration } from "../../src/model/text/format";
import { threadChanges } from "../../src/viewer/comparison/comparison-charts";

const stacks: Stacks = {
  frames: [
    ["f.py", "main", 0, "user"],
    ["f.py", "old", 0, "user"],
    ["f.py", "new", 0, "user"],
  ],
  nodes: new Uint8Array([0, 1, 2]),
  parents: new Uint8Array([0, 1, 1]),
};

describe("differential flame graph", () => {
  const top = differential(stacks, Float64Array.from([1, 2, 0]), Float64Array.from([1, 0, 4]), "all");

  test("a frame is as wide as both sides together", () => {
    expect([top.total, top.children[0].total]).toEqual([8, 8]);
    expect(top.children[0].children.map((c) => [c.name, c.total])).toEqual([
      ["new", 4],
      ["old", 2],
    ]);
  });

  test("each frame has the time of both sides", () => {
    expect(top.sides).toEqual({ before: 3, after: 5 });
    expect(top.children[0].children.map((c) => c.sides)).toEqual([
      { before: 0, after: 4 },
      { before: 2, after: 0 },
    ]);
  });

  test("swapping the sides turns every change around", () => {
    for (const [before, after] of [
      [1, 1],
      [1, 1.04],
      [1, 1.1],
      [1, 2],
      [0, 1],
    ])
      expect(changeStep(after, before) + changeStep(before, after)).toBe(0);
    expect([changeStep(1, 1.04), changeStep(1, 1.1), changeStep(1, 2), changeStep(0, 0)]).toEqual([0, 1, 2, 0]);
  });
});

test("changes have a sign, and missing values say so", () => {
  expect([0.2, -0.05, 0.0001, null].map((ratio) => changeText({ ratio }))).toEqual(["+20 %", "−5.0 %", "0 %", "–"]);
  expect([quantityText(null, duration), quantityText(2e6, duration)]).toEqual(["not recorded", "2.00 s"]);
});

test("changes of the thread time add up to their sum", () => {
  const prefix = (name: string, before: number | null, after: number | null) =>
    ({ prefix: name, total_us: { before, after } }) as ComparedPrefix;
  const many = Array.from({ length: 14 }, (_, i) => prefix(`p${i}`, i * 10, i * 10 + i));
  const idle = { name: "idle", before: 500, after: 300 } as ComparedChange;
  const rows = threadChanges({ prefixes: [prefix("new", null, 1000), ...many], thread_us: [idle] });
  expect(rows[0]).toEqual({ name: "new", before: 0, after: 1000 });
  expect(rows.at(-3)?.name).toBe("3 other prefixes");
  const sum = rows.at(-1);
  const parts = rows.slice(0, -1);
  expect(sum?.before).toBe(parts.reduce((total, row) => total + row.before, 0));
  expect(sum?.after).toBe(1000 + 91 * 10 + 91 + 300);
});
