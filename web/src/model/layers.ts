/** Layered layout of a directed graph: inputs on the left, few crossings, neighbours at similar heights. */

export interface Placed {
  index: number;
  layer: number;
  /** Top edge. */
  y: number;
}

export interface GraphLayout {
  /** In the order of the nodes. */
  nodes: Placed[];
  layers: number;
  height: number;
}

const PASSES = 8;
/** Number of unconnected nodes per row. */
const UNCONNECTED_COLUMNS = 5;

/** Lay out the graph in which node i depends on `dependencies[i]`. Nodes are at least `gap` apart. Cycles, which Dask cannot have, are cut. */
export function layOutGraph(
  dependencies: readonly (readonly number[])[],
  heights: readonly number[],
  gap: number,
): GraphLayout {
  const needs = dependencies.map((of) => of.filter((d) => d >= 0 && d < dependencies.length));
  const users: number[][] = needs.map(() => []);
  for (const [i, of] of needs.entries()) for (const d of of) users[d].push(i);
  const layer = layersOf(needs);
  const unconnected = needs.flatMap((of, i) => (of.length === 0 && users[i].length === 0 ? [i] : []));
  const columns: number[][] = [];
  needs.forEach((of, i) => {
    if (of.length === 0 && users[i].length === 0) return;
    columns[layer[i]] ??= [];
    columns[layer[i]].push(i);
  });
  const y = new Float64Array(needs.length);
  for (const column of columns) stack(column, y, heights, gap);
  for (let pass = 0; pass < PASSES; pass++) {
    const forward = pass % 2 === 0;
    for (const column of forward ? columns : columns.toReversed())
      settle(column, forward ? needs : users, y, heights, gap);
  }
  // Passes can move nodes above the top edge.
  const tied = columns.flat();
  const top = tied.reduce((least, i) => Math.min(least, y[i]), Infinity);
  for (const i of tied) y[i] -= top;
  const below = tied.reduce((most, i) => Math.max(most, y[i] + heights[i]), 0);
  return placeUnconnected(unconnected, layer, y, heights, gap, columns.length, below);
}

/** Place unconnected nodes in rows below the others. */
function placeUnconnected(
  unconnected: readonly number[],
  layer: Int32Array,
  y: Float64Array,
  heights: readonly number[],
  gap: number,
  columns: number,
  below: number,
): GraphLayout {
  const wide = Math.max(columns, Math.min(UNCONNECTED_COLUMNS, unconnected.length));
  let at = below > 0 && unconnected.length ? below + 2 * gap : below;
  for (let first = 0; first < unconnected.length; first += wide) {
    const row = unconnected.slice(first, first + wide);
    row.forEach((node, column) => {
      layer[node] = column;
      y[node] = at;
    });
    at += Math.max(...row.map((node) => heights[node])) + (first + wide < unconnected.length ? gap : 0);
  }
  return {
    nodes: Array.from(layer, (l, index) => ({ index, layer: l, y: y[index] })),
    layers: Math.max(1, wide),
    height: at,
  };
}

/** Return the layer of each node: the longest path from a node without dependencies. */
function layersOf(needs: readonly (readonly number[])[]): Int32Array {
  const layer = new Int32Array(needs.length).fill(-1);
  const visit = (start: number) => {
    const stack = [{ node: start, next: 0 }];
    const open = new Set([start]);
    while (stack.length) {
      const top = stack[stack.length - 1];
      if (top.next < needs[top.node].length) {
        const d = needs[top.node][top.next++];
        if (layer[d] < 0 && !open.has(d)) {
          open.add(d);
          stack.push({ node: d, next: 0 });
        }
        continue;
      }
      layer[top.node] = needs[top.node].reduce((most, d) => Math.max(most, layer[d] + 1), 0);
      open.delete(top.node);
      stack.pop();
    }
  };
  needs.forEach((_, i) => {
    if (layer[i] < 0) visit(i);
  });
  return layer;
}

function stack(column: readonly number[], y: Float64Array, heights: readonly number[], gap: number, from = 0): void {
  let at = from;
  for (const node of column) {
    y[node] = at;
    at += heights[node] + gap;
  }
}

/** Move each node of a column to the mean position of its neighbours, and push overlapping nodes apart. */
function settle(
  column: number[],
  near: readonly (readonly number[])[],
  y: Float64Array,
  heights: readonly number[],
  gap: number,
): void {
  const middle = (i: number) => y[i] + heights[i] / 2;
  const want = new Map(
    column.map((node) => [
      node,
      near[node].length ? near[node].reduce((a, d) => a + middle(d), 0) / near[node].length : middle(node),
    ]),
  );
  const wanted = (node: number) => want.get(node) ?? 0;
  column.sort((a, b) => wanted(a) - wanted(b) || a - b);
  // Touching nodes form a run with one offset: the mean of the positions its nodes want.
  interface Run {
    nodes: number[];
    sum: number;
    size: number;
  }
  const runs: Run[] = [];
  const start = (run: Run) => run.sum / run.nodes.length;
  for (const node of column) {
    let run: Run = { nodes: [node], sum: wanted(node) - heights[node] / 2, size: heights[node] };
    for (let last = runs.at(-1); last && start(last) + last.size + gap > start(run); last = runs.at(-1)) {
      runs.pop();
      run = {
        nodes: [...last.nodes, ...run.nodes],
        sum: last.sum + run.sum - run.nodes.length * (last.size + gap),
        size: last.size + gap + run.size,
      };
    }
    runs.push(run);
  }
  for (const run of runs) stack(run.nodes, y, heights, gap, start(run));
}
