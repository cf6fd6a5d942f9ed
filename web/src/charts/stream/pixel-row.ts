import { BAR_STYLE } from "../../model/stream";

/** Opacity of the thinnest bars, so that they stay visible. */
const MIN_ALPHA = 0.3;

/** One row of pixels. A pixel gets the colour of the style that covers most of it, and is paler if bars cover little of it. */
export class PixelRow {
  /** All bars, for the middle of the row. */
  readonly middle: Uint32Array;
  /** Without the bars that are drawn at half height. */
  readonly full: Uint32Array;
  private readonly sums = new Float32Array(BAR_STYLE.count);
  private used = 0;
  private at = -1;
  private lanes = 1;
  /** Used only if lanes share the row. */
  private readonly weight: Float32Array;
  private readonly cover: Float32Array;
  private readonly style: Uint8Array;

  constructor(
    readonly width: number,
    private readonly palette: Uint32Array,
  ) {
    this.middle = new Uint32Array(width);
    this.full = new Uint32Array(width);
    this.weight = new Float32Array(width);
    this.cover = new Float32Array(width);
    this.style = new Uint8Array(width);
  }

  clear(lanes: number): void {
    this.lanes = lanes;
    this.middle.fill(0);
    this.full.fill(0);
    if (lanes > 1) {
      this.weight.fill(0);
      this.cover.fill(0);
    }
  }

  /** Add a bar that covers part of a pixel. Pixels come in order, so that the sums of one pixel are enough. */
  add(x: number, style: number, weight: number): void {
    if (x !== this.at) {
      if (this.at >= 0) this.flush();
      this.at = x;
    }
    this.sums[style] += weight;
    this.used |= 1 << style;
  }

  flush(): void {
    const x = this.at;
    if (x < 0) return;
    this.at = -1;
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
    this.used = 0;
    this.put(x, best, all);
  }

  /** Set a pixel. */
  put(x: number, style: number, cover: number): void {
    if (this.lanes > 1) {
      this.cover[x] += cover;
      if (cover > this.weight[x]) {
        this.weight[x] = cover;
        this.style[x] = style;
      }
      return;
    }
    const pixel = pale(this.palette[style], cover);
    this.middle[x] = pixel;
    if (style < BAR_STYLE.transfer) this.full[x] = pixel;
  }

  /** Set the pixels that one bar covers completely. */
  run(from: number, to: number, style: number): void {
    if (this.at >= 0) this.flush();
    if (this.lanes > 1) {
      for (let x = from; x < to; x++) this.put(x, style, 1);
      return;
    }
    const colour = this.palette[style];
    const { middle, full } = this;
    if (style < BAR_STYLE.transfer) for (let x = from; x < to; x++) middle[x] = full[x] = colour;
    else for (let x = from; x < to; x++) middle[x] = colour;
  }

  /** Convert the sums of lanes that share the row to pixels. */
  finish(): void {
    if (this.lanes === 1) return;
    for (let x = 0; x < this.width; x++) {
      const cover = this.cover[x];
      if (cover > 0) this.middle[x] = this.full[x] = pale(this.palette[this.style[x]], cover / this.lanes);
    }
  }
}

function pale(colour: number, cover: number): number {
  if (cover >= 0.98) return colour;
  const alpha = (colour >>> 24) * Math.max(MIN_ALPHA, cover);
  return ((colour & 0xffffff) | (alpha << 24)) >>> 0;
}
