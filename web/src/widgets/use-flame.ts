import { useMemo } from "preact/hooks";
import { sumBy, type Where } from "../model/cube";
import { bottomUp, byLine, type FlameNode, type LineTime, type Stacks, topDown } from "../model/flame";
import { useAsync, useCube, useModel, useSettledSelection } from "../model/hooks";

export interface FlameFilter {
  kind: string;
  prefix: string;
  span: string;
  worker: string;
}

export interface FlameResult {
  top: FlameNode;
  lines: LineTime[];
  samples: number;
  stacks: Stacks;
}

/** Return the flame graph of the selected time and filters; null while loading. */
export function useFlame(filter: FlameFilter, inverted: boolean): FlameResult | null {
  const model = useModel();
  const selection = useSettledSelection();
  const cube = useCube("flame");
  const { flame } = model.report;
  const columns = useAsync(
    () => Promise.all([model.columns.numbers(flame.nodes), model.columns.numbers(flame.parents)]),
    [model],
  ).value;
  return useMemo(() => {
    if (!cube || !columns) return null;
    const [nodes, parents] = columns;
    const where: Where = {};
    for (const key of ["kind", "prefix", "span", "worker"] as const) {
      if (filter[key] !== "") where[key] = cube.keys[key]?.indexOf(filter[key]) ?? -1;
    }
    const self = sumBy(cube, "stack", "count", selection, where, nodes.length);
    const stacks = { frames: flame.frames, nodes, parents };
    const name = filter.kind ? `all ${filter.kind}` : "all samples";
    const top = inverted ? bottomUp(stacks, self, name) : topDown(stacks, self, name);
    return { top, lines: byLine(stacks, self), samples: top.total, stacks };
  }, [cube, columns, selection.b0, selection.b1, filter.kind, filter.prefix, filter.span, filter.worker, inverted]);
}
