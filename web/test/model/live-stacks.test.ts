import { expect, test } from "vitest";
import type { Column } from "../../src/api/increments";
import { topDown } from "../../src/model/flame";
import { LiveStacks } from "../../src/model/live/live-stacks";

type Frame = [string, string, number, string];

const numbers = (values: number[]): Column => Uint32Array.from(values);
const frames: Frame[] = [
  ["f.py", "outer", 1, "user"],
  ["f.py", "inner", 2, "user"],
];
const nodes = { parent: numbers([0, 1]), frame: numbers([0, 1]) };

/** Return the flame graph of all samples. */
function flame(stacks: LiveStacks) {
  const self = new Float64Array(stacks.nodes.length);
  for (const counts of stacks.counts.values()) for (const [node, count] of counts) self[node] += count;
  const tree = { nodes: Uint32Array.from(stacks.nodes), parents: Uint32Array.from(stacks.parents) };
  return topDown({ frames: stacks.frames, ...tree }, self, "all samples");
}

test("stacks of two increments become one tree, whatever their numbers are", () => {
  const stacks = new LiveStacks();
  stacks.add({ second: numbers([1]), node: numbers([1]), count: numbers([5]) }, nodes, frames);
  const reversed: Frame[] = [frames[1], frames[0]];
  stacks.add(
    { second: numbers([2, 2]), node: numbers([0, 1]), count: numbers([2, 3]) },
    { parent: numbers([0, 1]), frame: numbers([1, 0]) },
    reversed,
  );
  const top = flame(stacks);
  expect(top.total).toBe(10);
  expect(top.children.map((node) => [node.name, node.total])).toEqual([["outer", 10]]);
  expect(top.children[0].children.map((node) => [node.name, node.total])).toEqual([["inner", 8]]);
});

test("old samples are forgotten", () => {
  const stacks = new LiveStacks();
  stacks.add({ second: numbers([1, 50]), node: numbers([0, 1]), count: numbers([5, 7]) }, nodes, frames);
  expect([...stacks.counts.keys()]).toEqual([1, 50]);
  stacks.forget(10);
  expect(flame(stacks).total).toBe(7);
});
