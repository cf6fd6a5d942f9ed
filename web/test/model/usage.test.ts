import { describe, expect, test } from "vitest";
import type { UsageLine } from "../../src/api/server.gen";
import { usageBars, usageTicks } from "../../src/model/usage";

const line = (name: string, over: Partial<UsageLine> = {}): UsageLine => ({
  ...{ name, label: name, tasks: 0, errors: 0, compute_seconds: 0, transfer_seconds: 0, nbytes: 0 },
  ...{ thread_seconds: 0, cost: 0, cost_busy: 0, cost_idle: 0 },
  ...over,
});

describe("bars", () => {
  test("days are in order, also those without usage", () => {
    const items = [line("2026-03-02"), line("2026-03-01", { cost: 3, cost_busy: 1, cost_idle: 2 })];
    const { bars, max, measure } = usageBars({ items, by: "day" });
    expect(bars.map((b) => [b.name, b.busy, b.idle])).toEqual([
      ["2026-03-01", 1, 2],
      ["2026-03-02", 0, 0],
    ]);
    expect([max, measure]).toEqual([3, "cost"]);
  });

  test("days before the first usage are left out, but two weeks are shown", () => {
    const days = Array.from({ length: 30 }, (_, i) => `2026-03-${String(i + 1).padStart(2, "0")}`);
    const used = (from: number) =>
      days.map((day, i) => line(day, { cost: i >= from ? 1 : 0, cost_busy: i >= from ? 1 : 0 }));
    const first = (from: number) => usageBars({ items: used(from), by: "day" }).bars[0].name;
    expect([first(0), first(5), first(29), first(30)]).toEqual([
      "2026-03-01",
      "2026-03-06",
      "2026-03-17",
      "2026-03-01",
    ]);
  });

  test("small costs are shown as thread time, split like the cost", () => {
    const items = [line("u", { cost: 0.004, cost_busy: 0.001, cost_idle: 0.003, thread_seconds: 8 })];
    expect(usageBars({ items, by: "user" })).toMatchObject({
      measure: "thread",
      bars: [{ busy: 2e6, idle: 6e6 }],
      max: 8e6,
    });
  });

  test("without prices, compute time is busy", () => {
    const items = [line("u", { thread_seconds: 8, compute_seconds: 3 }), line("p", { compute_seconds: 1 })];
    expect(usageBars({ items, by: "user" }).bars).toMatchObject([
      { name: "u", busy: 3e6, idle: 5e6 },
      { name: "p", busy: 1e6, idle: 0 },
    ]);
  });

  test("many lines end with the sum of the others", () => {
    const items = Array.from({ length: 20 }, (_, i) => line(`c${i}`, { cost: i, cost_busy: i }));
    const { bars } = usageBars({ items, by: "cluster" });
    expect(bars).toHaveLength(13);
    expect(bars[0]).toMatchObject({ name: "c19", busy: 19 });
    expect(bars[12]).toMatchObject({ label: "8 others", busy: 28 });
  });

  test("nothing is nothing", () => expect(usageBars({ items: [], by: "user" }).max).toBe(0));
});

test("ticks are round", () => {
  expect(usageTicks("cost", 7)).toEqual([0, 2, 4, 6]);
  expect(usageTicks("cost", 0.31).map((v) => v.toFixed(2))).toEqual(["0.00", "0.10", "0.20", "0.30"]);
  expect(usageTicks("cost", 640)).toEqual([0, 200, 400, 600]);
  expect(usageTicks("thread", 100e6)).toEqual([0, 30e6, 60e6, 90e6]);
  expect(usageTicks("thread", 0)).toEqual([0]);
});
