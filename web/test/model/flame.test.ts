import { describe, expect, test } from "vitest";
import { layOutFlame } from "../../src/charts/flame";
import { bottomUp, byLine, type FlameNode, flatten, type Stacks, shortFile, topDown } from "../../src/model/flame";

/** main calls helper from two lines; helper also runs on its own. */
const stacks: Stacks = {
  frames: [
    ["f.py", "main", 1, "user"],
    ["l.py", "helper", 2, "lib"],
    ["l.py", "helper", 9, "lib"],
  ],
  nodes: new Uint8Array([0, 1, 2]),
  parents: new Uint8Array([0, 1, 1]),
};
const self = Float64Array.from([1, 2, 4]);
const none: Stacks = { frames: [], nodes: new Uint8Array(0), parents: new Uint8Array(0) };

const brief = (nodes: FlameNode[]) => nodes.map((n) => [n.name, n.total, n.self]);

describe("top down", () => {
  const top = topDown(stacks, self, "all");

  test("totals include callees, self does not", () => {
    expect(top).toMatchObject({ name: "all", total: 7, depth: 0 });
    expect(brief(top.children)).toEqual([["main", 7, 1]]);
  });

  test("lines of one function below one caller are one frame", () => {
    expect(brief(top.children[0].children)).toEqual([["helper", 6, 6]]);
  });

  test("frames without samples are left out", () => {
    expect(brief(topDown(stacks, Float64Array.from([1, 0, 0]), "all").children)).toEqual([["main", 1, 1]]);
    expect(topDown(stacks, Float64Array.from([1, 0, 0]), "all").children[0].children).toEqual([]);
  });

  test("siblings are sorted by total and placed side by side", () => {
    const siblings: Stacks = { ...stacks, parents: new Uint8Array([0, 0, 0]) };
    const { children } = topDown(siblings, Float64Array.from([1, 0, 5]), "all");
    expect(children.map((c) => [c.name, c.at])).toEqual([
      ["helper", 0],
      ["main", 5],
    ]);
  });

  test("no stacks have no frames", () => {
    expect(topDown(none, new Float64Array(0), "all")).toMatchObject({ total: 0, children: [] });
  });

  test("recursion adds a frame per level", () => {
    const recursive: Stacks = { ...stacks, nodes: new Uint8Array([0, 0, 0]), parents: new Uint8Array([0, 1, 2]) };
    const nodes = flatten(topDown(recursive, Float64Array.from([0, 0, 3]), "all"));
    expect(nodes.map((n) => [n.depth, n.total])).toEqual([
      [0, 3],
      [1, 3],
      [2, 3],
      [3, 3],
    ]);
  });
});

describe("bottom up", () => {
  const top = bottomUp(stacks, self, "all");

  test("the functions that ran come first, their callers below", () => {
    expect(top.total).toBe(7);
    expect(top.children.map((c) => [c.name, c.total, c.children[0]?.name])).toEqual([
      ["helper", 6, "main"],
      ["main", 1, undefined],
    ]);
  });

  test("self time belongs to the function that ran, not to its callers", () => {
    expect(brief(top.children)).toEqual([
      ["helper", 6, 6],
      ["main", 1, 1],
    ]);
    expect(top.children[0].children[0].self).toBe(0);
  });

  test("both directions have the same total self time", () => {
    const sum = (node: FlameNode) => flatten(node).reduce((a, n) => a + n.self, 0);
    expect(sum(top)).toBe(sum(topDown(stacks, self, "all")));
  });

  test("no stacks have no frames", () => {
    expect(bottomUp(none, new Float64Array(0), "all")).toMatchObject({ total: 0, children: [] });
  });
});

describe("lines", () => {
  test("they are sorted by self time", () => {
    expect(byLine(stacks, self).map((l) => [l.line, l.self])).toEqual([
      [9, 4],
      [2, 2],
      [1, 1],
    ]);
  });

  test("nodes of one line add up", () => {
    const twice: Stacks = { ...stacks, nodes: new Uint8Array([1, 1, 0]) };
    expect(byLine(twice, Float64Array.from([2, 3, 0])).map((l) => [l.line, l.self])).toEqual([[2, 5]]);
  });

  test("lines that never ran themselves are left out", () => {
    expect(byLine(stacks, Float64Array.from([0, 0, 0]))).toEqual([]);
  });
});

test("flattening visits parents before children, in order", () => {
  const top = bottomUp(stacks, self, "all");
  expect(flatten(top).map((n) => n.name)).toEqual(["all", "helper", "main", "main"]);
});

test.each([
  ["/usr/lib/python3.12/site-packages/pandas/core/frame.py", "pandas/core/frame.py"],
  ["/home/ada/project/jobs/etl.py", "project/jobs/etl.py"],
  ["C:\\Users\\ada\\etl.py", "Users/ada/etl.py"],
  ["etl.py", "etl.py"],
  ["<string>", "<string>"],
  ["", ""],
])("%s is shortened to %s", (file, short) => expect(shortFile(file)).toBe(short));

describe("layout", () => {
  const top = topDown(stacks, self, "all");

  test("widths are proportional to totals", () => {
    const { boxes, rows } = layOutFlame(top, 700);
    expect(rows).toBe(3);
    expect(boxes.map((b) => [b.node.name, b.width])).toEqual([
      ["all", 700],
      ["main", 700],
      ["helper", 600],
    ]);
  });

  test("the zoomed frame and its callers have the full width", () => {
    const helper = top.children[0].children[0];
    expect(layOutFlame(helper, 700).boxes.map((b) => b.width)).toEqual([700, 700, 700]);
  });

  test("frames too thin to see are left out", () => {
    expect(layOutFlame(top, 0.5).boxes).toEqual([]);
  });

  test("an empty graph has no boxes", () => {
    expect(layOutFlame(topDown(none, new Float64Array(0), "all"), 700).boxes).toEqual([]);
  });
});
