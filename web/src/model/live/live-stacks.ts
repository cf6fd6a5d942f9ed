import type { Column } from "../../api/increments";
import type { Whose } from "../flame";

/** Nodes that are kept; further stacks end at the deepest known node. */
const MAX_NODES = 50_000;

type Frame = [string, string, number, Whose];

/** The stacks of a live run as one growing tree, and samples by second. */
export class LiveStacks {
  readonly frames: Frame[] = [];
  private readonly frameOf = new Map<string, number>();
  readonly nodes: number[] = [];
  /** Parent plus one; 0 for roots. */
  readonly parents: number[] = [];
  private readonly nodeOf = new Map<string, number>();
  /** Samples by second and node. */
  readonly counts = new Map<number, Map<number, number>>();

  add(
    stacks: Record<string, Column>,
    nodes: Record<string, Column>,
    names: readonly (readonly [string, string, number, string])[],
  ): void {
    const frames = names.map((frame) => this.frame(frame));
    // Parents come before their children.
    const own: number[] = [];
    for (let i = 0; i < nodes.parent.length; i++) {
      const parent = nodes.parent[i] === 0 ? 0 : own[nodes.parent[i] - 1] + 1;
      own.push(this.node(parent, frames[nodes.frame[i]]));
    }
    for (let i = 0; i < stacks.second.length; i++) {
      const node = own[stacks.node[i]];
      if (node === undefined || node < 0) continue;
      let second = this.counts.get(stacks.second[i]);
      if (!second) {
        second = new Map();
        this.counts.set(stacks.second[i], second);
      }
      second.set(node, (second.get(node) ?? 0) + stacks.count[i]);
    }
  }

  private frame([file, name, line, whose]: readonly [string, string, number, string]): number {
    const key = `${file}\0${name}\0${line}`;
    let found = this.frameOf.get(key);
    if (found === undefined) {
      found = this.frames.length;
      this.frames.push([file, name, line, whose as Whose]);
      this.frameOf.set(key, found);
    }
    return found;
  }

  private node(parent: number, frame: number): number {
    const key = `${parent} ${frame}`;
    let found = this.nodeOf.get(key);
    if (found === undefined) {
      if (this.nodes.length >= MAX_NODES) return parent - 1;
      found = this.nodes.length;
      this.nodes.push(frame);
      this.parents.push(parent);
      this.nodeOf.set(key, found);
    }
    return found;
  }

  forget(before: number): void {
    for (const second of this.counts.keys()) if (second < before) this.counts.delete(second);
  }
}
