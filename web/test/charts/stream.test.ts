import { describe, expect, test } from "vitest";
import type { Lane } from "../../src/api/schema.gen";
import { firstIn, neighbour } from "../../src/charts/stream/engine";
import { laneHeight, layOut } from "../../src/charts/stream/layout";
import { buildMip, halve, type Mip } from "../../src/charts/stream/mip";
import { frameOf, linkPath } from "../../src/charts/stream/overlay";
import { paint } from "../../src/charts/stream/paint";
import { BAR_STYLE, barStyles, decodeStream, type StreamView } from "../../src/model/stream";

const lane = (first: number, count: number): Lane => ({ worker: 0, thread: 0, first, count, tasks: 0 });

describe("painting", () => {
  // Lane 0: transfer 10 to 20 (of task 0), task 0 20 to 50, task 1 45 to 60. Lane 1: task 2 at 100.
  const lanes = [lane(0, 3), lane(3, 1)];
  const data = decodeStream(
    { tick_us: 1, lanes, bars: 4, tasks: 3 },
    {
      gap: new Uint32Array([20, 0, 9, 200]),
      duration: new Uint32Array([10, 30, 15, 5]),
      action: new Uint8Array([1, 0, 0, 0]),
      owner: new Uint8Array([0]),
      prefix: new Uint8Array([0, 20, 3]),
      status: new Uint8Array([0, 1, 0]),
    },
    110,
  );
  const styles = barStyles(data, ["compute", "transfer"], ["ok", "error"]);
  const palette = Uint32Array.from({ length: BAR_STYLE.count }, (_, i) => 0xff000000 + i + 1);
  const view = (over: Partial<StreamView>): StreamView => ({
    t0: 0,
    t1: 110,
    width: 110,
    height: 16,
    rows: Int32Array.from([0, 0, 1, 8, 1, 1]),
    rowHeight: 8,
    palette,
    gap: 0,
    ...over,
  });
  const colourAt = (v: StreamView, mips: Mip[], x: number, y: number) => {
    const pixels = new Uint32Array(v.width * v.height);
    paint(data, lanes, styles, Float64Array.from([30, 5]), mips, v, pixels);
    return pixels[y * v.width + x] & 0xffffff;
  };

  test("a pixel has the colour of the bar that covers it", () => {
    expect(colourAt(view({}), [], 30, 3)).toBe(1);
    expect(colourAt(view({}), [], 102, 10)).toBe(4);
    expect(colourAt(view({}), [], 80, 3)).toBe(0);
    expect(colourAt(view({ t0: 40, t1: 44, width: 4 }), [], 1, 3)).toBe(1);
  });

  test("transfers are drawn at half height", () => {
    expect(colourAt(view({}), [], 15, 3)).toBe(BAR_STYLE.transfer + 1);
    expect(colourAt(view({}), [], 15, 0)).toBe(0);
  });

  test("work whose result was lost looks like failed work", () => {
    const lost = { ...data, columns: { ...data.columns, lost: new Uint8Array([1, 0, 0]) } };
    expect(barStyles(lost, ["compute", "transfer"], ["ok", "error"])[1]).toBe(BAR_STYLE.failed);
  });

  test("an empty view has no pixels", () => {
    expect(colourAt(view({ t0: 50, t1: 50 }), [], 30, 3)).toBe(0);
  });

  test("zoomed-out views from bins look the same", () => {
    const steps = buildMip(data, lanes, styles, 220);
    let step = steps.next();
    while (!step.done) step = steps.next();
    const mip = step.value;
    expect(mip.style[2 * 30]).toBe(0);
    expect(mip.cover[2 * 30]).toBe(255);
    expect(mip.cover[2 * 80]).toBe(0);
    expect(halve(mip).style[30]).toBe(0);
    expect(halve(mip).cover[80]).toBe(0);
  });
});

describe("layout of lanes", () => {
  test("lanes get the maximum row height if there is room", () => {
    expect(layOut([lane(0, 3), lane(3, 1)], 400, 8)).toMatchObject({ rowHeight: 8, height: 16 });
  });

  test("more lanes than pixels share rows", () => {
    const crowd = Array.from({ length: 2000 }, (_, i): Lane => ({ ...lane(0, 0), worker: i >> 2, thread: i & 3 }));
    const layout = layOut(crowd, 400, 8);
    expect(layout.height).toBeLessThanOrEqual(420);
    expect(layout.rows.filter((_, i) => i % 3 === 2).reduce((a, b) => a + b)).toBe(2000);
  });

  test("workers are separated by a gap", () => {
    const { groups } = layOut([lane(0, 0), { ...lane(0, 0), worker: 1 }], 400, 8);
    expect(groups.map((g) => [g.worker, g.y, g.height])).toEqual([
      [0, 0, 8],
      [1, 12, 8],
    ]);
  });

  test.each([
    [4, 500, 110],
    [10, 500, 49],
    [100, 500, 8],
    [0, 500, 110],
  ])("%d lanes in %d px are %d px high", (count, height, expected) => {
    const lanes = Array.from({ length: count }, () => lane(0, 1));
    expect(laneHeight(lanes, height, 8, 110)).toBe(expected);
  });

  test("no lanes have no height", () => expect(layOut([], 400, 8)).toMatchObject({ height: 0, groups: [] }));
});

describe("marks above the lanes", () => {
  const lanes = [lane(0, 1), lane(1, 1)];
  const selection = { t0: 100, t1: 200, b0: 0, b1: 1, whole: false };
  const view = { layout: layOut(lanes, 100, 10), selection, tick: 1, width: 1000, scroll: 0 };

  test("a frame is cut at the edges, and null out of view", () => {
    expect(frameOf({ lane: 0, start: 110, stop: 120 }, view)).toEqual({ left: 100, width: 100, top: 0, height: 10 });
    expect(frameOf({ lane: 1, start: 50, stop: 150 }, view)).toMatchObject({ left: 0, width: 500, top: 10 });
    expect(frameOf({ lane: 0, start: 10, stop: 20 }, view)).toBeNull();
    expect(frameOf({ lane: 7, start: 110, stop: 120 }, view)).toBeNull();
  });

  test("a line leads from the end of the input to the start of its task", () => {
    const path = linkPath({ lane: 0, start: 100, stop: 110 }, { lane: 1, start: 150, stop: 160 }, view);
    expect(path).toMatch(/^M100,5 .* 500,15$/);
    expect(linkPath({ lane: 0, start: 0, stop: 1 }, { lane: 1, start: 150, stop: 160 }, view)).toMatch(/^M-2,5 /);
  });
});

describe("keyboard steps", () => {
  // Lane 0: tasks 0 (0 to 10), 1 (20 to 30), 2 (40 to 50). Lane 1: a transfer. Lane 2: tasks 3 (0 to 5), 4 (24 to 60).
  const lanes = [lane(0, 3), lane(3, 1), lane(4, 3)];
  const data = decodeStream(
    { lanes, bars: 7, tasks: 5, tick_us: 1 },
    {
      gap: new Uint32Array([0, 20, 20, 0, 0, 10, 28]),
      duration: new Uint32Array([10, 10, 10, 5, 5, 5, 36]),
      action: new Uint8Array([0, 0, 0, 1, 0, 1, 0]),
      owner: new Uint32Array([0, 0]),
    },
    100,
  );

  test("left and right stay within the lane", () => {
    expect(neighbour(data, lanes, 0, 1, 0)).toBe(1);
    expect(neighbour(data, lanes, 2, 1, 0)).toBe(2);
    expect(neighbour(data, lanes, 0, -1, 0)).toBe(0);
    expect(neighbour(data, lanes, 4, -1, 0)).toBe(3);
  });

  test("up and down go to the nearest task in time of the next lane with tasks", () => {
    expect([0, 1, 2].map((task) => neighbour(data, lanes, task, 0, 1))).toEqual([3, 4, 4]);
    expect([3, 4].map((task) => neighbour(data, lanes, task, 0, -1))).toEqual([0, 2]);
    expect(neighbour(data, lanes, 3, 0, 1)).toBe(3);
  });

  test("the cursor starts at the first task in the selected time", () => {
    expect(firstIn(data, lanes, 0, 100)).toBe(0);
    expect(firstIn(data, lanes, 12, 100)).toBe(1);
    expect(firstIn(data, lanes, 52, 55)).toBe(4);
    expect(firstIn(data, lanes, 70, 80)).toBe(-1);
  });
});
