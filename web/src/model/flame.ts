import type { Numbers } from "../api/decode";
import type { Flame } from "../api/schema.gen";

export type Whose = "user" | "lib" | "native" | "dask";

/** A frame of the graph: one function below one caller, with all its lines. */
export interface FlameNode {
  name: string;
  file: string;
  whose: Whose;
  depth: number;
  parent: FlameNode | null;
  children: FlameNode[];
  total: number;
  self: number;
  /** Start position in samples. */
  at: number;
  /** In a differential graph: the total before and after. */
  sides?: { before: number; after: number };
}

export interface LineTime {
  name: string;
  file: string;
  line: number;
  whose: Whose;
  self: number;
}

/** Stacks of a report. Nodes refer to frames, parents to nodes (index plus one; 0 for roots). */
export interface Stacks {
  frames: Flame["frames"];
  nodes: Numbers;
  parents: Numbers;
}

function parentOf(parents: Numbers, node: number): number {
  return parents[node] - 1;
}

function child(
  parent: FlameNode,
  byName: Map<string, FlameNode>,
  frame: Flame["frames"][number],
  id: number,
  ids: Map<FlameNode, number>,
): FlameNode {
  const key = `${id}\u0000${frame[0]}\u0000${frame[1]}`;
  let found = byName.get(key);
  if (!found) {
    found = {
      name: frame[1],
      file: frame[0],
      whose: frame[3],
      depth: parent.depth + 1,
      parent,
      children: [],
      total: 0,
      self: 0,
      at: 0,
    };
    parent.children.push(found);
    byName.set(key, found);
    ids.set(found, ids.size);
  }
  return found;
}

function root(name: string): FlameNode {
  return { name, file: "", whose: "dask", depth: 0, parent: null, children: [], total: 0, self: 0, at: 0 };
}

/** Build the graph from the outermost callers down. */
export function topDown(stacks: Stacks, self: Float64Array, name: string): FlameNode {
  const { frames, nodes, parents } = stacks;
  const n = nodes.length;
  const total = Float64Array.from(self);
  for (let i = n - 1; i >= 0; i--) {
    const p = parentOf(parents, i);
    if (p >= 0) total[p] += total[i];
  }
  const top = root(name);
  const ids = new Map<FlameNode, number>([[top, 0]]);
  const byName = new Map<string, FlameNode>();
  const made: (FlameNode | undefined)[] = new Array(n);
  for (let i = 0; i < n; i++) {
    if (total[i] <= 0) continue;
    const p = parentOf(parents, i);
    const parent = p >= 0 ? (made[p] ?? top) : top;
    const node = child(parent, byName, frames[nodes[i]], ids.get(parent) ?? 0, ids);
    made[i] = node;
    node.total += total[i];
    node.self += self[i];
    if (p < 0) top.total += total[i];
  }
  return place(top);
}

/** Build one graph of two sides: a frame is as wide as both together, so that code that is gone is still visible. */
export function differential(stacks: Stacks, before: Float64Array, after: Float64Array, name: string): FlameNode {
  const top = topDown(
    stacks,
    before.map((seconds, i) => seconds + after[i]),
    name,
  );
  const pairs: [FlameNode, FlameNode | undefined][] = [[top, topDown(stacks, before, name)]];
  for (let pair = pairs.pop(); pair; pair = pairs.pop()) {
    const [node, old] = pair;
    const total = old?.total ?? 0;
    node.sides = { before: total, after: Math.max(0, node.total - total) };
    for (const c of node.children) pairs.push([c, old?.children.find((o) => o.name === c.name && o.file === c.file)]);
  }
  return top;
}

/** Return how much more or less time a frame takes, from -2 (much less) to 2 (much more). */
export function changeStep(before: number, after: number): -2 | -1 | 0 | 1 | 2 {
  const both = before + after;
  const change = both > 0 ? (after - before) / both : 0;
  // 0.025 of both is a change of 5 %, 0.1 of 22 %.
  const size = Math.abs(change) < 0.025 ? 0 : Math.abs(change) < 0.1 ? 1 : 2;
  return (change < 0 ? -size : size) as -2 | -1 | 0 | 1 | 2;
}

/** Build the graph from the running functions, with their callers below. */
export function bottomUp(stacks: Stacks, self: Float64Array, name: string): FlameNode {
  const { frames, nodes, parents } = stacks;
  const top = root(name);
  const ids = new Map<FlameNode, number>([[top, 0]]);
  const byName = new Map<string, FlameNode>();
  for (let i = 0; i < nodes.length; i++) {
    const own = self[i];
    if (own <= 0) continue;
    top.total += own;
    let at = top;
    for (let node = i; node >= 0; node = parentOf(parents, node)) {
      at = child(at, byName, frames[nodes[node]], ids.get(at) ?? 0, ids);
      at.total += own;
      if (node === i) at.self += own;
    }
  }
  return place(top);
}

/** Sort children by total, largest first, and set their positions. */
function place(top: FlameNode): FlameNode {
  const stack = [top];
  for (let node = stack.pop(); node; node = stack.pop()) {
    node.children.sort((a, b) => b.total - a.total);
    let at = node.at;
    for (const c of node.children) {
      c.at = at;
      at += c.total;
      stack.push(c);
    }
  }
  return top;
}

/** Return the lines by self time, largest first. */
export function byLine(stacks: Stacks, self: Float64Array): LineTime[] {
  const sums = new Float64Array(stacks.frames.length);
  for (let i = 0; i < stacks.nodes.length; i++) sums[stacks.nodes[i]] += self[i];
  return stacks.frames
    .map(([file, name, line, whose], i) => ({ name, file, line, whose, self: sums[i] }))
    .filter((l) => l.self > 0)
    .sort((a, b) => b.self - a.self);
}

export function flatten(top: FlameNode): FlameNode[] {
  const out: FlameNode[] = [];
  const stack = [top];
  for (let node = stack.pop(); node; node = stack.pop()) {
    out.push(node);
    for (let i = node.children.length - 1; i >= 0; i--) stack.push(node.children[i]);
  }
  return out;
}

/** Shorten a path to its last parts, or to the part below site-packages. */
export function shortFile(file: string): string {
  const parts = file.split(/[\\/]/);
  const site = parts.lastIndexOf("site-packages");
  return (site >= 0 ? parts.slice(site + 1) : parts.slice(-3)).join("/");
}
