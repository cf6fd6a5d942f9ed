import type { Lane } from "../../api/schema.gen";
import { lowerBound, type StreamData, type StreamView } from "../../model/stream";
import { fill } from "./fill";
import type { Mip } from "./mip";
import { PixelRow } from "./pixel-row";

/** Draw a lane from bins. Each pixel gets the style of its fullest bin. */
function fillFromMip(line: PixelRow, mip: Mip, lane: number, t0: number, scale: number): void {
  const base = lane * mip.bins;
  const perPixel = 1 / (scale * mip.width);
  const first = t0 / mip.width;
  const { style, cover, bins } = mip;
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
        best = style[base + b];
      }
    }
    if (all > 0) line.put(x, best, all / (255 * n));
  }
}

/** Draw the view into the pixels, row by row. */
export function paint(
  data: StreamData,
  lanes: readonly Lane[],
  styles: Uint8Array,
  longest: Float64Array,
  mips: readonly Mip[],
  view: StreamView,
  pixels: Uint32Array,
): void {
  const { width, height, rows, rowHeight, palette, t0, t1 } = view;
  pixels.fill(0);
  if (width < 1 || t1 <= t0) return;
  const scale = width / (t1 - t0);
  const mip = mips.find((m) => m.width * scale <= 1.001);
  const line = new PixelRow(width, palette);
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
        fill(line, data, styles, from, lane.first + lane.count, t0, scale, view.gap);
      }
    }
    line.finish();
    for (let dy = 0; dy < body; dy++) {
      if (y + dy < 0 || y + dy >= height) continue;
      pixels.set(rowHeight < 4 || (dy >= thinFrom && dy < thinFrom + thin) ? line.middle : line.full, (y + dy) * width);
    }
  }
}
