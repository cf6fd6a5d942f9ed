import type { Lane } from "../../api/schema.gen";
import { LOOK, type StreamData } from "../../model/stream";
import { fill } from "./paint";

/** Lanes in bins of time, with the look that fills most of each bin and how much of it: for far views of many bars. */
export interface Mip {
  bins: number;
  width: number;
  look: Uint8Array;
  cover: Uint8Array;
}

/** Keeps looks and shares instead of colours. */
class Collector {
  private readonly sums = new Float32Array(LOOK.count);
  private used = 0;
  private at = -1;

  constructor(
    readonly width: number,
    private readonly look: Uint8Array,
    private readonly cover: Uint8Array,
    private readonly base: number,
  ) {}

  add(x: number, look: number, weight: number): void {
    if (x !== this.at) {
      this.flush();
      this.at = x;
    }
    this.sums[look] += weight;
    this.used |= 1 << look;
  }

  flush(): void {
    if (this.at < 0) return;
    let best = 0;
    let most = 0;
    let all = 0;
    for (let bits = this.used; bits; bits &= bits - 1) {
      const look = 31 - Math.clz32(bits & -bits);
      const w = this.sums[look];
      this.sums[look] = 0;
      all += w;
      if (w > most) {
        most = w;
        best = look;
      }
    }
    this.look[this.base + this.at] = best;
    this.cover[this.base + this.at] = Math.min(255, Math.ceil(all * 255));
    this.used = 0;
    this.at = -1;
  }

  run(from: number, to: number, look: number): void {
    this.flush();
    for (let i = this.base + from, end = this.base + to; i < end; i++) {
      this.look[i] = look;
      this.cover[i] = 255;
    }
  }
}

/** Builds the bins a few lanes at a time; the value comes with the last step. */
export function* buildMip(data: StreamData, lanes: readonly Lane[], looks: Uint8Array, bins: number): Generator<undefined, Mip> {
  const width = Math.max(data.end, 1) / bins;
  const look = new Uint8Array(lanes.length * bins);
  const cover = new Uint8Array(lanes.length * bins);
  for (const [i, lane] of lanes.entries()) {
    const line = new Collector(bins, look, cover, i * bins);
    fill(line, data, looks, lane.first, lane.first + lane.count, 0, 1 / width, 0);
    if (i % 32 === 31) yield undefined;
  }
  return { bins, width, look, cover };
}

/** Half as many bins: the fuller look of each two, and the mean of how full they are. */
export function halve(mip: Mip): Mip {
  const bins = mip.bins >> 1;
  const n = mip.look.length >> 1;
  const look = new Uint8Array(n);
  const cover = new Uint8Array(n);
  for (let i = 0, j = 0; i < n; i++, j += 2) {
    const a = mip.cover[j];
    const b = mip.cover[j + 1];
    look[i] = a >= b ? mip.look[j] : mip.look[j + 1];
    cover[i] = (a + b + 1) >> 1;
  }
  return { bins, width: mip.width * 2, look, cover };
}
