import type { Lane } from "../../api/schema.gen";
import { lowerBound, type StreamData } from "../../model/stream";
import { Line } from "./line";
import type { Mip } from "./mip";

/** What to draw. A row shows one lane or, where there are more lanes than pixels, several. */
export interface StreamView {
  t0: number;
  t1: number;
  width: number;
  height: number;
  /** Triples: y, first lane, lanes. */
  rows: Int32Array;
  rowHeight: number;
  /** A colour for each look, as the pixel's 32 bits. */
  palette: Uint32Array;
  /** Pixels left free after wide bars, so that neighbours can be told apart. */
  gap: number;
}

/** Takes columns in order: parts of them, or runs that one bar fills. */
export interface Target {
  readonly width: number;
  add(x: number, look: number, weight: number): void;
  run(from: number, to: number, look: number): void;
  flush(): void;
}

/** The bars of [from, to) on a line of pixels. */
export function fill(line: Target, data: StreamData, looks: Uint8Array, from: number, to: number, t0: number, scale: number, gap: number): void {
  const { start, length } = data;
  const width = line.width;
  for (let i = from; i < to; i++) {
    let x0 = (start[i] - t0) * scale;
    if (x0 >= width) break;
    let x1 = x0 + length[i] * scale;
    if (x1 <= 0) continue;
    if (gap > 0 && x1 - x0 >= 3 * gap) x1 -= gap;
    if (x0 < 0) x0 = 0;
    if (x1 > width) x1 = width;
    const p0 = x0 | 0;
    const p1 = x1 | 0;
    const look = looks[i];
    if (p0 === p1) {
      if (p0 < width) line.add(p0, look, x1 - x0 > 1e-4 ? x1 - x0 : 1e-4);
      continue;
    }
    const first = x0 === p0 ? p0 : p0 + 1;
    if (first !== p0) line.add(p0, look, first - x0);
    if (p1 > first) line.run(first, p1, look);
    if (x1 > p1) line.add(p1, look, x1 - p1);
  }
  line.flush();
}

/** From bins: each pixel takes the fullest of the few bins under it. */
function fillFromMip(line: Line, mip: Mip, lane: number, t0: number, scale: number): void {
  const base = lane * mip.bins;
  const perPixel = 1 / (scale * mip.width);
  const first = t0 / mip.width;
  const { look, cover, bins } = mip;
  for (let x = 0; x < line.width; x++) {
    let b = (first + x * perPixel) | 0;
    if (b < 0) continue;
    let end = (first + (x + 1) * perPixel) | 0;
    if (end <= b) end = b + 1;
    if (b >= bins) break;
    if (end > bins) end = bins;
    let most = 0;
    let all = 0;
    let best = 0;
    const n = end - b;
    for (; b < end; b++) {
      const c = cover[base + b];
      all += c;
      if (c > most) {
        most = c;
        best = look[base + b];
      }
    }
    if (all > 0) line.put(x, best, all / (255 * n));
  }
}

/** Draws the view into the pixels, row by row. */
export function paint(data: StreamData, lanes: readonly Lane[], looks: Uint8Array, longest: Float64Array, mips: readonly Mip[], view: StreamView, pixels: Uint32Array): void {
  const { width, height, rows, rowHeight, palette, t0, t1 } = view;
  pixels.fill(0);
  if (width < 1 || t1 <= t0) return;
  const scale = width / (t1 - t0);
  const mip = mips.find((m) => m.width * scale <= 1.001);
  const line = new Line(width, palette);
  const body = rowHeight >= 4 ? rowHeight - Math.max(1, Math.round(rowHeight / 8)) : rowHeight;
  const thin = rowHeight >= 4 ? Math.max(1, Math.round(body / 2)) : body;
  const thinFrom = (body - thin) >> 1;
  const whole = data.end > 0 ? Math.min(1, (t1 - t0) / data.end) : 1;
  for (let r = 0; r < rows.length; r += 3) {
    const y = rows[r];
    if (y >= height || y + rowHeight <= 0) continue;
    const last = rows[r + 1] + rows[r + 2];
    line.clear(rows[r + 2]);
    for (let l = rows[r + 1]; l < last; l++) {
      const lane = lanes[l];
      if (mip && lane.count * whole > width * 0.4) {
        fillFromMip(line, mip, l, t0, scale);
      } else {
        const from = lowerBound(data.start, lane.first, lane.first + lane.count, t0 - longest[l]);
        fill(line, data, looks, from, lane.first + lane.count, t0, scale, view.gap);
      }
    }
    line.finish();
    for (let dy = 0; dy < body; dy++) {
      if (y + dy < 0 || y + dy >= height) continue;
      pixels.set(rowHeight < 4 || (dy >= thinFrom && dy < thinFrom + thin) ? line.middle : line.full, (y + dy) * width);
    }
  }
}
