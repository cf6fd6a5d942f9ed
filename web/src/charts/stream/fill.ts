/** Bars in order of their start. */
export interface Bars {
  start: ArrayLike<number>;
  length: ArrayLike<number>;
}

/** Receives covered pixels in order: parts of a pixel, or runs that one bar covers. */
export interface Target {
  readonly width: number;
  add(x: number, style: number, weight: number): void;
  run(from: number, to: number, style: number): void;
  flush(): void;
}

/** Project the bars [from, to) onto a row of pixels. */
export function fill(
  line: Target,
  data: Bars,
  styles: ArrayLike<number>,
  from: number,
  to: number,
  t0: number,
  scale: number,
  gap: number,
): void {
  const { start, length } = data;
  const width = line.width;
  for (let i = from; i < to; i++) {
    const left = (start[i] - t0) * scale;
    if (left >= width) break;
    const right = left + length[i] * scale;
    if (right <= 0) continue;
    const x0 = Math.max(0, left);
    const x1 = Math.min(width, gap > 0 && right - left >= 3 * gap ? right - gap : right);
    const p0 = x0 | 0;
    const p1 = x1 | 0;
    const style = styles[i];
    if (p0 === p1) {
      if (p0 < width) line.add(p0, style, Math.max(1e-4, x1 - x0));
      continue;
    }
    const first = x0 === p0 ? p0 : p0 + 1;
    if (first !== p0) line.add(p0, style, first - x0);
    if (p1 > first) line.run(first, p1, style);
    if (x1 > p1) line.add(p1, style, x1 - p1);
  }
  line.flush();
}
