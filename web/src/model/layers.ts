/** A layered drawing of a directed graph: inputs at the left, long edges straight, few crossings. */

export interface Placed {
  index: number;
  layer: number;
  row: number;
}

/** ``dependencies[i]`` are nodes that i needs. Cycles, which Dask cannot have, are cut. */
export function layers(dependencies: readonly (readonly number[])[]): Placed[] {
  const n = dependencies.length;
  const layer = new Int32Array(n).fill(-1);
  const visit = (start: number) => {
    const stack = [{ node: start, next: 0 }];
    const open = new Set([start]);
    while (stack.length) {
      const top = stack[stack.length - 1];
      const needs = dependencies[top.node];
      if (top.next < needs.length) {
        const d = needs[top.next++];
        if (d >= 0 && d < n && layer[d] < 0 && !open.has(d)) {
          open.add(d);
          stack.push({ node: d, next: 0 });
        }
        continue;
      }
      layer[top.node] = needs.reduce((most, d) => Math.max(most, d >= 0 && d < n ? layer[d] + 1 : 0), 0);
      open.delete(top.node);
      stack.pop();
    }
  };
  for (let i = 0; i < n; i++) if (layer[i] < 0) visit(i);
  const columns: number[][] = [];
  for (let i = 0; i < n; i++) (columns[layer[i]] ??= []).push(i);
  const row = new Float64Array(n);
  for (const column of columns) column.forEach((node, r) => { row[node] = r; });
  const users: number[][] = dependencies.map(() => []);
  dependencies.forEach((needs, i) => needs.forEach((d) => users[d]?.push(i)));
  for (let pass = 0; pass < 8; pass++) {
    const forward = pass % 2 === 0;
    const order = forward ? columns : [...columns].reverse();
    for (const column of order) {
      const mean = new Map(column.map((node) => {
        const near = forward ? dependencies[node] : users[node];
        return [node, near.length ? near.reduce((a, d) => a + row[d], 0) / near.length : row[node]];
      }));
      column.sort((a, b) => (mean.get(a) ?? 0) - (mean.get(b) ?? 0) || a - b);
      column.forEach((node, r) => { row[node] = r; });
    }
  }
  return Array.from({ length: n }, (_, index) => ({ index, layer: layer[index], row: row[index] }));
}
