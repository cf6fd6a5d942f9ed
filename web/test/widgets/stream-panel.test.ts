import { expect, test } from "vitest";
import type { Report } from "../../src/api/schema.gen";
import { laneText } from "../../src/widgets/stream/stream-panel";

const report = (threads: number, ...lanes: number[]) =>
  ({ stream: { lanes: lanes.map((worker) => ({ worker })) }, workers: [{ threads }] }) as unknown as Report;

test("a lane is a thread", () => {
  expect(laneText(report(2, 0, 0))).toBe("1 lane is 1 thread.");
  expect(laneText(report(2, 0))).toBe("1 lane is 1 thread.");
  expect(laneText(report(2))).toBe("1 lane is 1 thread.");
});

test("more lanes than threads are explained", () =>
  expect(laneText(report(2, 0, 0, 0))).toBe("1 lane is 1 thread; tasks of a killed worker can need one more."));
