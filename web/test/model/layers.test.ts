import { describe, expect, test } from "vitest";
import { layOutGraph } from "../../src/model/layers";

const flat = (n: number) => Array.from({ length: n }, () => 10);

/** A layout that starts at the top and in which nodes of one layer do not overlap. */
function expectValid(dependencies: number[][], heights: number[], gap: number): ReturnType<typeof layOutGraph> {
  const layout = layOutGraph(dependencies, heights, gap);
  for (const layer of new Set(layout.nodes.map((p) => p.layer))) {
    const column = layout.nodes.filter((p) => p.layer === layer).sort((a, b) => a.y - b.y);
    for (const [i, p] of column.slice(1).entries())
      expect(p.y).toBeGreaterThanOrEqual(column[i].y + heights[column[i].index] + gap - 1e-6);
  }
  expect(Math.min(...layout.nodes.map((p) => p.y))).toBeCloseTo(0);
  expect(Math.max(...layout.nodes.map((p) => p.y + heights[p.index]))).toBeCloseTo(layout.height);
  return layout;
}

test("a node is one layer after its last dependency", () => {
  expect(layOutGraph([[], [0], [0], [1, 2]], flat(4), 4).nodes.map((p) => p.layer)).toEqual([0, 1, 1, 2]);
  expect(layOutGraph([[], [0], [0, 1]], flat(3), 4).nodes.map((p) => p.layer)).toEqual([0, 1, 2]);
});

test("nodes keep the order of the input, also if dependencies come later", () => {
  const { nodes } = layOutGraph([[1], [2], []], flat(3), 4);
  expect(nodes.map((p) => [p.index, p.layer])).toEqual([
    [0, 2],
    [1, 1],
    [2, 0],
  ]);
});

test("a graph without nodes is empty", () => {
  expect(layOutGraph([], [], 4)).toEqual({ nodes: [], layers: 1, height: 0 });
});

test("a single node is at the top left", () => {
  expect(layOutGraph([[]], [25], 4)).toEqual({ nodes: [{ index: 0, layer: 0, y: 0 }], layers: 1, height: 25 });
});

describe("invalid graphs", () => {
  test("cycles are cut", () => {
    expect(layOutGraph([[1], [0]], flat(2), 4).nodes).toHaveLength(2);
    expect(layOutGraph([[0]], flat(1), 4).nodes).toHaveLength(1);
    expect(layOutGraph([[1], [0], [1]], flat(3), 4).nodes.every((p) => p.layer >= 0)).toBe(true);
  });

  test("dependencies that do not exist are ignored", () => {
    expect(layOutGraph([[], [0, 99, -1]], flat(2), 4).nodes.map((p) => p.layer)).toEqual([0, 1]);
  });
});

describe("positions", () => {
  test("nodes of one layer never overlap, whatever their heights", () => {
    const heights = Array.from({ length: 60 }, (_, i) => 10 + ((i * 37) % 90));
    expectValid(
      heights.map((_, i) => (i < 20 ? [] : [i % 20, (i * 7) % 20])),
      heights,
      6,
    );
  });

  test("a node is centered between its dependencies", () => {
    const { nodes } = expectValid([[], [], [], [0, 1, 2]], flat(4), 4);
    expect(nodes[3].y).toBe(nodes[1].y);
  });

  test("a chain is a straight line", () => {
    const { nodes, height } = expectValid([[], [0], [1], [2]], flat(4), 4);
    expect(new Set(nodes.map((p) => p.y))).toEqual(new Set([0]));
    expect(height).toBe(10);
  });

  test("a chain of 5,000 nodes does not overflow the stack", () => {
    const chain = Array.from({ length: 5000 }, (_, i) => (i === 0 ? [] : [i - 1]));
    expect(layOutGraph(chain, flat(5000), 4).layers).toBe(5000);
  });
});

describe("unconnected nodes", () => {
  test("they are in rows below the others", () => {
    const { nodes, layers } = layOutGraph([[], [0], ...Array.from({ length: 12 }, () => [])], flat(14), 4);
    expect(layers).toBe(5);
    expect(nodes.slice(2).map((p) => p.layer)).toEqual([0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]);
    expect(nodes[2].y).toBeGreaterThan(nodes[1].y + 10);
  });

  test("without other nodes they start at the top", () => {
    const { nodes, height } = layOutGraph([[], [], []], flat(3), 4);
    expect(nodes.map((p) => [p.layer, p.y])).toEqual([
      [0, 0],
      [1, 0],
      [2, 0],
    ]);
    expect(height).toBe(10);
  });
});
