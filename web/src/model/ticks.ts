/** Return round numbers from 0 up to a maximum, about five of them. */
export function axisTicks(max: number): number[] {
  if (!(max > 0) || !Number.isFinite(max)) return [0];
  const size = 10 ** Math.floor(Math.log10(max / 4));
  const step = [1, 2, 5, 10].map((n) => n * size).find((n) => max / n <= 5) ?? 10 * size;
  return Array.from({ length: Math.floor(max / step) + 1 }, (_, i) => i * step);
}
