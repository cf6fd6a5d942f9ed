import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

const CSS = readFileSync(new URL("../src/styles/palette.css", import.meta.url).pathname, "utf-8");

type Rgb = readonly [number, number, number];

/** The colours of the ranks, in linear RGB. */
function ranks(theme: 0 | 1): Rgb[] {
  const found = [...CSS.matchAll(/--cat-\d+: light-dark\((#\w{6}), (#\w{6})\)/g)].map((m) => m[theme + 1]);
  return found.map(
    (hex) => [1, 3, 5].map((i) => linear(Number.parseInt(hex.slice(i, i + 2), 16) / 255)) as unknown as Rgb,
  );
}

const linear = (c: number) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);

/** How people see a colour who lack the cones for red or green (Machado, Oliveira and Fernandes 2009, full strength). */
const VISION: Record<string, readonly Rgb[]> = {
  "all cones": [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
};

const seen = (c: Rgb, matrix: readonly Rgb[]) =>
  matrix.map((row) => Math.min(1, Math.max(0, row[0] * c[0] + row[1] * c[1] + row[2] * c[2]))) as unknown as Rgb;

/** Lightness and two hues (CIE L*a*b*, D65). */
function lab([r, g, b]: Rgb): Rgb {
  const f = (t: number) => (t > (6 / 29) ** 3 ? Math.cbrt(t) : t / (3 * (6 / 29) ** 2) + 4 / 29);
  const x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505);
  const y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
  const z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

const distance = (a: Rgb, b: Rgb) => Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);

describe.each([0, 1] as const)("the palette of theme %i", (theme) => {
  const colours = ranks(theme);

  test("has twelve ranks whose neighbours differ by 20 in lightness", () => {
    expect(colours).toHaveLength(12);
    const lightness = colours.map((c) => lab(c)[0]);
    for (let i = 1; i < 12; i++) expect(Math.abs(lightness[i] - lightness[i - 1])).toBeGreaterThanOrEqual(20);
  });

  test.each(Object.keys(VISION))("tells the first eight ranks apart with %s", (vision) => {
    const first = colours.slice(0, 8).map((c) => lab(seen(c, VISION[vision])));
    for (let i = 0; i < 8; i++) for (let j = 0; j < i; j++) expect(distance(first[i], first[j])).toBeGreaterThan(10);
  });

  test("tells the first eight ranks apart in gray", () => {
    const lightness = colours.slice(0, 8).map((c) => lab(c)[0]);
    for (let i = 0; i < 8; i++)
      for (let j = 0; j < i; j++) expect(Math.abs(lightness[i] - lightness[j])).toBeGreaterThanOrEqual(4.9);
  });
});
