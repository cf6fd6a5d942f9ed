import { LOOK } from "../../model/stream";

const LEAST = 0.3;

/** One row of pixels: for each column the look that took most of it, paler where little of the column was taken. */
export class Line {
  /** Everything, for the middle of the row. */
  readonly middle: Uint32Array;
  /** Without what is drawn at half height. */
  readonly full: Uint32Array;
  private readonly sums = new Float32Array(LOOK.count);
  private used = 0;
  private at = -1;
  private several = 1;
  /** Only where lanes share a row. */
  private readonly weight: Float32Array;
  private readonly cover: Float32Array;
  private readonly look: Uint8Array;

  constructor(
    readonly width: number,
    private readonly palette: Uint32Array,
  ) {
    this.middle = new Uint32Array(width);
    this.full = new Uint32Array(width);
    this.weight = new Float32Array(width);
    this.cover = new Float32Array(width);
    this.look = new Uint8Array(width);
  }

  clear(several: number): void {
    this.several = several;
    this.middle.fill(0);
    this.full.fill(0);
    if (several > 1) {
      this.weight.fill(0);
      this.cover.fill(0);
    }
  }

  /** Part of a column. Columns come in order, so that only one column's sums are kept at a time. */
  add(x: number, look: number, weight: number): void {
    if (x !== this.at) {
      if (this.at >= 0) this.flush();
      this.at = x;
    }
    this.sums[look] += weight;
    this.used |= 1 << look;
  }

  flush(): void {
    const x = this.at;
    if (x < 0) return;
    this.at = -1;
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
    this.used = 0;
    this.put(x, best, all);
  }

  /** A whole column at once. */
  put(x: number, look: number, cover: number): void {
    if (this.several > 1) {
      this.cover[x] += cover;
      if (cover > this.weight[x]) {
        this.weight[x] = cover;
        this.look[x] = look;
      }
      return;
    }
    const pixel = pale(this.palette[look], cover);
    this.middle[x] = pixel;
    if (look < LOOK.transfer) this.full[x] = pixel;
  }

  /** Columns that one bar fills. */
  run(from: number, to: number, look: number): void {
    if (this.at >= 0) this.flush();
    if (this.several > 1) {
      for (let x = from; x < to; x++) this.put(x, look, 1);
      return;
    }
    const colour = this.palette[look];
    const { middle, full } = this;
    if (look < LOOK.transfer) for (let x = from; x < to; x++) middle[x] = full[x] = colour;
    else for (let x = from; x < to; x++) middle[x] = colour;
  }

  /** Turns what lanes share into pixels. */
  finish(): void {
    if (this.several === 1) return;
    for (let x = 0; x < this.width; x++) {
      const cover = this.cover[x];
      if (cover > 0) this.middle[x] = this.full[x] = pale(this.palette[this.look[x]], cover / this.several);
    }
  }
}

function pale(colour: number, cover: number): number {
  if (cover >= 0.98) return colour;
  const alpha = (colour >>> 24) * (cover < LEAST ? LEAST : cover);
  return ((colour & 0xffffff) | (alpha << 24)) >>> 0;
}
