import type { Lane } from "../../api/schema.gen";

export interface LaneGroup {
  worker: number;
  y: number;
  height: number;
}

/** Where the lanes are: rows for the painter, groups for labels. */
export interface LaneLayout {
  rows: Int32Array;
  rowHeight: number;
  groups: LaneGroup[];
  height: number;
}

/** Lanes one below the other with a little room between workers; several lanes share a row where there are more than pixels. */
export function layOut(lanes: readonly Lane[], maxHeight: number, tallest: number): LaneLayout {
  const workers = new Set(lanes.map((l) => l.worker)).size;
  const room = (height: number, gap: number) => lanes.length * height + workers * gap;
  let rowHeight = tallest;
  let gap = 4;
  while (rowHeight > 1 && room(rowHeight, gap) > maxHeight) {
    rowHeight -= 1;
    gap = rowHeight >= 6 ? 4 : rowHeight >= 3 ? 2 : rowHeight >= 2 ? 1 : 0;
  }
  const together = room(rowHeight, gap) > maxHeight * 1.5 ? Math.ceil(lanes.length / maxHeight) : 1;
  const rows: number[] = [];
  const groups: LaneGroup[] = [];
  let y = 0;
  for (let i = 0; i < lanes.length; i += together) {
    const worker = lanes[i].worker;
    let group = groups.at(-1);
    if (group?.worker !== worker) {
      if (group) y += gap;
      group = { worker, y, height: 0 };
      groups.push(group);
    }
    rows.push(y, i, Math.min(together, lanes.length - i));
    y += rowHeight;
    group.height = y - group.y;
  }
  return { rows: Int32Array.from(rows), rowHeight, groups, height: y };
}
