import { describe, expect, test } from "vitest";
import { updatedText, windowOf } from "../../src/app/run/live-view";
import { renewedEvery } from "../../src/app/shell/use-time";

const SECOND = 1e6;

describe("the window of a live view", () => {
  test.each([
    ["", 0, "2min"],
    ["", 120 * SECOND, "2min"],
    // Nothing would be in it.
    ["", 121 * SECOND, "all"],
    ["2min", 3600 * SECOND, "2min"],
    ["30s", 0, "30s"],
    ["toString", 0, "2min"],
  ])("chosen %j, idle for %j us: %s", (chosen, idle, expected) => expect(windowOf(chosen, idle)).toBe(expected));
});

test.each([
  [0, ""],
  [9.9 * SECOND, ""],
  [34 * SECOND, " Updated 34 s ago."],
  [90 * SECOND, " Updated 1 min ago."],
])("rows that are %j us old read %j", (silent, expected) => expect(updatedText(silent)).toBe(expected));

test("a text in seconds is renewed every second", () => {
  expect([0, 9920, 59_999, 60_000].map(renewedEvery)).toEqual([1000, 1000, 1000, 30_000]);
});
