import { afterEach, describe, expect, test, vi } from "vitest";
import { Building, estimatedShare, expectedSeconds } from "../../src/app/run/building";
import { type FakeNode, renderFake } from "../fake-document";

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("small reports need no progress bar", () => {
  expect(expectedSeconds(0)).toBe(0);
  expect(expectedSeconds(100_000)).toBe(0);
});

test("five million tasks take about 15 seconds", () => {
  expect(expectedSeconds(5_000_000)).toBeCloseTo(14.5);
});

test("the bar grows, and stops before its end", () => {
  const shares = [0, 1, 5, 10, 20, 1000].map((elapsed) => estimatedShare(elapsed, 10));
  expect(shares[0]).toBe(0);
  expect(shares).toEqual([...shares].sort((a, b) => a - b));
  expect(shares.at(-1)).toBe(0.95);
});

describe("a report that has not arrived after two seconds", () => {
  async function waiting(tasks: number): Promise<FakeNode> {
    vi.useFakeTimers();
    const shown = await renderFake(<Building tasks={tasks} />, { loading: true });
    await vi.advanceTimersByTimeAsync(2_000);
    return shown;
  }

  test("has no progress bar if it is small", async () => {
    const shown = await waiting(8);
    expect(shown.text).toBe("Loading");
    expect(shown.all("data-testid", "building")).toEqual([]);
  });

  test("has one if it is large", async () => {
    const shown = await waiting(5_000_000);
    expect(shown.textOf("building")).toContain("A report of 5,000,000 tasks takes about 15 seconds to build");
    expect(Number(shown.all("role", "progressbar")[0].attributes.get("aria-valuenow"))).toBeGreaterThan(0);
  });
});
