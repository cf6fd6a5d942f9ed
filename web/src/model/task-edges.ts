import type { Model } from "./model";
import { unzigzag } from "./stream";

export interface Neighbours {
  dependencies: number[];
  dependents: number[];
}

/** Return the dependencies and dependents of a task; null while the run goes on, because they are recorded with its end. */
export async function loadNeighbours(model: Model, task: number): Promise<Neighbours | null> {
  const { edges } = model.report;
  if (model.isLive) return null;
  if (edges.rows === 0) return { dependencies: [], dependents: [] };
  const [tasks, steps] = await Promise.all([
    model.columns.numbers(edges.tasks),
    model.columns.numbers(edges.dependencies),
  ]);
  const dependencies: number[] = [];
  const dependents: number[] = [];
  let at = 0;
  for (let i = 0; i < edges.rows; i++) {
    at += tasks[i];
    const dependency = at - unzigzag(steps[i]);
    if (at === task) dependencies.push(dependency);
    if (dependency === task) dependents.push(at);
  }
  return { dependencies, dependents };
}
