import type { Lane } from "../../api/schema.gen";
import { BAR_STYLE, type StreamData } from "../../model/stream";
import { fill } from "./fill";

/** Lanes in time bins, with the style that covers most of each bin and the covered share. Used for zoomed-out views of many bars. */
export interface Mip {
  bins: number;
  width: number;
  style: Uint8Array;
  cover: Uint8Array;
}

/** Collects styles and covered shares instead of colours. */
class BinRow {
  private readonly sums = new Float32Array(BAR_STYLE.count);
  private used = 0;
  private at = -1;

  constructor(
    readonly width: number,
    private readonly style: Uint8Array,
    private readonly cover: Uint8Array,
    private readonly base: number,
  ) {}

  add(x: number, style: number, weight: number): void {
    if (x !== this.at) {
      this.flush();
      this.at = x;
    }
    this.sums[style] += weight;
    this.used |= 1 << style;
  }

  flush(): void {
    if (this.at < 0) return;
    let best = 0;
    let most = 0;
    let all = 0;
    for (let bits = this.used; bits; bits &= bits - 1) {
      const style = 31 - Math.clz32(bits & -bits);
      const w = this.sums[style];
      this.sums[style] = 0;
      all += w;
      if (w > most) {
        most = w;
        best = style;
      }
    }
    this.style[this.base + this.at] = best;
    this.cover[this.base + this.at] = Math.min(255, Math.ceil(all * 255));
    this.used = 0;
    this.at = -1;
  }

  run(from: number, to: number, style: number): void {
    this.flush();
    for (let i = this.base + from, end = this.base + to; i < end; i++) {
      this.style[i] = style;
      this.cover[i] = 255;
    }
  }
}

/** Build the bins, 32 lanes per step. The last step returns them. */
export function* buildMip(
  data: StreamData,
  lanes: readonly Lane[],
  styles: Uint8Array,
  bins: number,
): Generator<undefined, Mip> {
  const width = Math.max(data.end, 1) / bins;
  const style = new Uint8Array(lanes.length * bins);
  const cover = new Uint8Array(lanes.length * bins);
  for (const [i, lane] of lanes.entries()) {
    const line = new BinRow(bins, style, cover, i * bins);
    fill(line, data, styles, lane.first, lane.first + lane.count, 0, 1 / width, 0);
    if (i % 32 === 31) yield undefined;
  }
  return { bins, width, style, cover };
}

/** Merge pairs of bins: the style of the fuller bin, and the mean of the covered shares. */
export function halve(mip: Mip): Mip {
  const bins = mip.bins >> 1;
  const n = mip.style.length >> 1;
  const style = new Uint8Array(n);
  const cover = new Uint8Array(n);
  for (let i = 0, j = 0; i < n; i++, j += 2) {
    const a = mip.cover[j];
    const b = mip.cover[j + 1];
    style[i] = a >= b ? mip.style[j] : mip.style[j + 1];
    cover[i] = (a + b + 1) >> 1;
  }
  return { bins, width: mip.width * 2, style, cover };
}
