import type { LiveLane } from "../model/live/live-lanes";
import { surface, truncate } from "./canvas";
import { drawTicks } from "./ruler";
import { palette } from "./stream/decorations";
import { fill } from "./stream/fill";
import { PixelRow } from "./stream/pixel-row";
import { css, font } from "./theme";

/** Where the lanes are drawn. */
export interface LiveLayout {
  lanes: readonly LiveLane[];
  rowHeight: number;
  /** Top of each lane. */
  y: number[];
  height: number;
}

const GAP = 4;
const MIN_ROW = 3;
const MAX_ROW = 22;
const AXIS = 20;

/** Stack the lanes with a gap between workers. If there are too many for the height, the last ones are left out. */
export function layOutLive(lanes: readonly LiveLane[], maxHeight: number): LiveLayout {
  const workers = new Set(lanes.map((lane) => lane.worker)).size;
  const room = maxHeight - AXIS;
  const rowHeight = Math.max(
    MIN_ROW,
    Math.min(MAX_ROW, Math.floor((room - workers * GAP) / Math.max(1, lanes.length))),
  );
  const gap = rowHeight >= 6 ? GAP : 1;
  const y: number[] = [];
  let at = AXIS;
  lanes.forEach((lane, i) => {
    if (i > 0 && lane.worker !== lanes[i - 1].worker) at += gap;
    y.push(at);
    at += rowHeight;
  });
  const shown = y.filter((top) => top + rowHeight <= maxHeight).length;
  return {
    lanes: lanes.slice(0, shown),
    rowHeight,
    y: y.slice(0, shown),
    height: Math.max(AXIS + 40, (y[shown - 1] ?? AXIS) + rowHeight),
  };
}

/** Return the lane at a height; null between lanes. */
export function laneAt(layout: LiveLayout, y: number): LiveLane | null {
  const i = layout.y.findIndex((top) => y >= top && y < top + layout.rowHeight);
  return i < 0 ? null : layout.lanes[i];
}

/** Draw the bars between two times, in microseconds since the origin. `selected` is a range that the reader drags. */
export function drawLiveStream(
  canvas: HTMLCanvasElement,
  width: number,
  layout: LiveLayout,
  t0: number,
  t1: number,
  selected: readonly [number, number] | null,
): void {
  const s = surface(canvas, width, layout.height);
  if (!s || width < 2) return;
  const { g, ratio } = s;
  const w = Math.round(width * ratio);
  const row = Math.max(1, Math.round(layout.rowHeight * ratio));
  const body = row >= 4 ? row - Math.max(1, Math.round(row / 8)) : row;
  const thin = row >= 4 ? Math.max(1, Math.round(body / 2)) : body;
  const line = new PixelRow(w, palette(-1, null));
  const scale = w / (t1 - t0);
  const image = new ImageData(w, body);
  const pixels = new Uint32Array(image.data.buffer);
  layout.lanes.forEach((lane, i) => {
    line.clear(1);
    fill(line, lane, lane.style, firstBar(lane, t0), lane.start.length, t0, scale, ratio);
    line.finish();
    for (let dy = 0; dy < body; dy++) {
      const isMiddle = dy >= (body - thin) >> 1 && dy < ((body - thin) >> 1) + thin;
      pixels.set(row < 4 || isMiddle ? line.middle : line.full, dy * w);
    }
    g.fillStyle = css("--line-faint");
    g.fillRect(0, layout.y[i] + layout.rowHeight - 1, width, 1);
    g.putImageData(image, 0, Math.round(layout.y[i] * ratio));
  });
  drawTicks(g, width, t0, t1, 16, 2);
  if (selected) {
    const [a, b] = selected.map((t) => ((t - t0) / (t1 - t0)) * width);
    g.fillStyle = css("--brush-shade");
    g.fillRect(Math.min(a, b), AXIS, Math.abs(b - a), layout.height - AXIS);
  }
}

function firstBar(lane: LiveLane, t0: number): number {
  let lo = 0;
  let hi = lane.start.length;
  while (lo < hi) {
    const mid = (lo + hi) >>> 1;
    if (lane.start[mid] < t0 - lane.longest) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/** Draw the names of the workers beside their lanes. */
export function drawLiveNames(
  canvas: HTMLCanvasElement,
  width: number,
  layout: LiveLayout,
  nameOf: (worker: string) => string,
): void {
  const s = surface(canvas, width, layout.height);
  if (!s) return;
  const { g } = s;
  g.font = font(11);
  g.textBaseline = "middle";
  let free = -99;
  layout.lanes.forEach((lane, i) => {
    if (i > 0 && layout.lanes[i - 1].worker === lane.worker) return;
    const threads = layout.lanes.filter((other) => other.worker === lane.worker).length;
    const middle = layout.y[i] + (threads * layout.rowHeight) / 2;
    if (middle - free < 13) return;
    free = middle;
    g.fillStyle = css("--text-2");
    g.fillText(truncate(g, nameOf(lane.worker), width - 16), 12, middle);
  });
}
