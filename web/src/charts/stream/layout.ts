import type { Lane } from "../../api/schema.gen";

export interface LaneGroup {
  worker: number;
  y: number;
  height: number;
}

/** Positions of the lanes: rows for painting, groups for labels. */
export interface LaneLayout {
  rows: Int32Array;
  rowHeight: number;
  groups: LaneGroup[];
  height: number;
}

/** Gap between workers in pixels, if lanes are not too low for it. */
const GAP = 4;

/** Return the height of a lane so that all lanes fill the height, within limits. */
export function laneHeight(lanes: readonly Lane[], height: number, least: number, most: number): number {
  const workers = new Set(lanes.map((l) => l.worker)).size;
  return Math.max(least, Math.min(most, Math.floor((height - workers * GAP) / Math.max(1, lanes.length))));
}

/** Stack the lanes, with a gap between workers. Lanes share rows if there are more lanes than pixels. */
export function layOut(lanes: readonly Lane[], maxHeight: number, maxRowHeight: number): LaneLayout {
  const workers = new Set(lanes.map((l) => l.worker)).size;
  const room = (height: number, gap: number) => lanes.length * height + workers * gap;
  let rowHeight = maxRowHeight;
  let gap = GAP;
  while (rowHeight > 1 && room(rowHeight, gap) > maxHeight) {
    rowHeight -= 1;
    gap = rowHeight >= 6 ? GAP : rowHeight >= 3 ? 2 : rowHeight >= 2 ? 1 : 0;
  }
  const lanesPerRow = room(rowHeight, gap) > maxHeight * 1.5 ? Math.ceil(lanes.length / maxHeight) : 1;
  const rows: number[] = [];
  const groups: LaneGroup[] = [];
  let y = 0;
  for (let i = 0; i < lanes.length; i += lanesPerRow) {
    const worker = lanes[i].worker;
    let group = groups.at(-1);
    if (group?.worker !== worker) {
      if (group) y += gap;
      group = { worker, y, height: 0 };
      groups.push(group);
    }
    rows.push(y, i, Math.min(lanesPerRow, lanes.length - i));
    y += rowHeight;
    group.height = y - group.y;
  }
  return { rows: Int32Array.from(rows), rowHeight, groups, height: y };
}
