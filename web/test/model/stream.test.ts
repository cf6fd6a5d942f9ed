import { describe, expect, test } from "vitest";
import type { Lane } from "../../src/api/schema.gen";
import { BAR_STYLE, barStyles, decodeStream, keyOf, lowerBound, unzigzag } from "../../src/model/stream";

const lane = (first: number, count: number): Lane => ({ worker: 0, thread: 0, first, count, tasks: 0 });

describe("decoding bars", () => {
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

  test("starts are the sums of gaps and lengths, per lane", () => {
    expect(Array.from(data.start)).toEqual([10, 20, 45, 100]);
    expect(Array.from(data.length)).toEqual([10, 30, 15, 5]);
  });

  test("executions are numbered, other bars refer to their task", () => {
    expect(Array.from(data.task)).toEqual([0, 0, 1, 2]);
    expect(Array.from(data.bar)).toEqual([1, 2, 3]);
  });

  test("durations are converted to ticks, gaps count from whole ticks", () => {
    const coarse = decodeStream(
      { tick_us: 4, lanes: [lane(0, 2)], bars: 2, tasks: 2 },
      { gap: new Uint32Array([0, 2]), duration: new Uint32Array([6, 8]) },
      10,
    );
    expect(Array.from(coarse.length)).toEqual([1.5, 2]);
    expect(Array.from(coarse.start)).toEqual([0, 3]);
  });

  test("a stream without bars is empty", () => {
    const empty = decodeStream({ tick_us: 1, lanes: [], bars: 0, tasks: 0 }, {}, 0);
    expect(empty).toMatchObject({ bars: 0, tasks: 0 });
    expect(Array.from(barStyles(empty, [], []))).toEqual([]);
  });

  test("missing columns count as zero", () => {
    const bare = decodeStream({ tick_us: 1, lanes: [lane(0, 2)], bars: 2, tasks: 2 }, {}, 10);
    expect(Array.from(bare.start)).toEqual([0, 0]);
    expect(Array.from(bare.task)).toEqual([0, 1]);
  });

  test("an owner outside the tasks is clamped", () => {
    const broken = decodeStream(
      { tick_us: 1, lanes: [lane(0, 2)], bars: 2, tasks: 1 },
      { action: new Uint8Array([1, 0]), owner: new Uint32Array([400]) },
      10,
    );
    expect(broken.task[0]).toBe(0);
  });

  test("gaps use all 32 bits", () => {
    const far = decodeStream(
      { tick_us: 1, lanes: [lane(0, 1)], bars: 1, tasks: 1 },
      { gap: new Uint32Array([4_294_967_294]), duration: new Uint32Array([1]) },
      3e9,
    );
    expect(far.start[0]).toBe(2_147_483_647);
  });

  describe("styles", () => {
    test("prefixes go by rank, failures and transfers have their own style", () => {
      expect(Array.from(barStyles(data, ["compute", "transfer"], ["ok", "error"]))).toEqual([
        BAR_STYLE.transfer,
        0,
        BAR_STYLE.failed,
        3,
      ]);
    });

    test("prefixes beyond the palette share a style", () => {
      expect(barStyles(data, ["compute", "transfer"], ["ok", "ok"])[2]).toBe(BAR_STYLE.rest);
    });

    test.each([
      ["disk-read", BAR_STYLE.disk],
      ["transfer", BAR_STYLE.transfer],
      ["deserialize", BAR_STYLE.serialize],
      ["something new", BAR_STYLE.serialize],
    ])("the action %s has its style", (action, style) => {
      expect(barStyles(data, ["compute", action], ["ok", "ok"])[0]).toBe(style);
    });

    test.each(["ok", "finished", "memory"])("the status %s is not a failure", (status) => {
      expect(barStyles(data, ["compute", "transfer"], [status, status])[1]).toBe(0);
    });
  });
});

test.each([
  [0, 0],
  [1, -1],
  [2, 1],
  [9, -5],
  [4_294_967_295, -2_147_483_648],
])("unzigzag(%d) is %d", (n, value) => expect(unzigzag(n)).toBe(value));

describe("keys", () => {
  const columns = {
    template: new Uint8Array([0, 1, 2, 9]),
    number0: new Uint32Array([7, 8, 0, 0]),
    number1: new Uint32Array([1, 2, 0, 0]),
  };
  const templates = ["sum-\0", "('x', \0, \0)", "plain"];

  test("numbers are put into the template", () => {
    expect(keyOf({ templates }, columns, 0)).toBe("sum-7");
    expect(keyOf({ templates }, columns, 1)).toBe("('x', 8, 2)");
    expect(keyOf({ templates }, columns, 2)).toBe("plain");
  });

  test("an unknown template is an empty key", () => expect(keyOf({ templates }, columns, 3)).toBe(""));

  test("missing numbers are left out", () => {
    expect(keyOf({ templates }, { template: new Uint8Array([1]) }, 0)).toBe("('x', , )");
  });

  test("without templates per task the prefix selects the template", () => {
    expect(keyOf({ templates }, { prefix: new Uint8Array([2]) }, 0)).toBe("plain");
    expect(keyOf({ templates }, {}, 0)).toBe("sum-");
  });
});

describe("searching bars", () => {
  const start = Float64Array.from([0, 10, 10, 20, 30]);

  test.each([
    [-5, 0],
    [0, 0],
    [1, 1],
    [10, 1],
    [10.5, 3],
    [30, 4],
    [31, 5],
  ])("the first bar at or after %d is %d", (t, bar) => expect(lowerBound(start, 0, 5, t)).toBe(bar));

  test("the search is limited to the given bars", () => {
    expect(lowerBound(start, 2, 4, 0)).toBe(2);
    expect(lowerBound(start, 2, 4, 99)).toBe(4);
    expect(lowerBound(start, 3, 3, 0)).toBe(3);
  });
});
