import { describe, expect, test } from "vitest";
import type { UsualDuration } from "../../src/api/server.gen";
import { howKnown } from "../../src/app/run/computation";

const usual = (runs: number, left: UsualDuration["left"] = null) => ({ runs, left }) as UsualDuration;

describe("where the usual duration comes from", () => {
  test.each([
    [howKnown(usual(1)), "From 1 earlier run of this code"],
    [howKnown(usual(20)), "From 20 earlier runs of this code"],
    [
      howKnown(usual(12, { low: 1, high: 2 })),
      "From 12 earlier runs of this code. Time left: from those that took longer than this run so far, and later from the pace of its tasks",
    ],
  ])("it reads %j", (text, expected) => expect(text).toBe(expected));
});
