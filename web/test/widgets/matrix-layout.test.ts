import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { cutTo, matrixLayout, strength } from "../../src/widgets/graphs/matrix-layout";

describe("the matrix", () => {
  test("fits into the room", () => {
    for (const room of [300, 330, 640])
      for (const n of [1, 3, 8]) {
        const names = Array.from({ length: n }, (_, i) => `${i} (restarted)`);
        const { left, width } = matrixLayout(room, names);
        expect(left + n * width).toBeLessThanOrEqual(room);
      }
  });
  test("has values in wide cells only", () => {
    expect(matrixLayout(330, ["0", "1", "2"]).isNamed).toBe(true);
    expect(matrixLayout(330, Array(10).fill("0")).isNamed).toBe(false);
  });
  test("scrolls with very many workers", () => expect(matrixLayout(330, Array(60).fill("0")).width).toBe(10));
  test("cuts long names", () => {
    expect(cutTo("2", 50)).toBe("2");
    expect(cutTo("2 (restarted)", 50)).toBe("2 (rest…");
  });
});

const TOKENS = readFileSync(new URL("../../src/styles/tokens.css", import.meta.url).pathname, "utf-8");

/** Return the red, green and blue of a colour in a theme. */
function rgb(name: string, theme: 0 | 1): number[] {
  const value = new RegExp(`${name}:\\s*(?:light-dark\\(([^,]+), (.+)\\)|(#\\w+));`).exec(TOKENS);
  const found = value?.[3] ?? value?.[theme + 1] ?? "";
  if (found.startsWith("var(")) return rgb(found.slice(4, -1), theme);
  return [1, 3, 5].map((i) => Number.parseInt(found.slice(i, i + 2), 16));
}

const luminance = (colour: number[]) =>
  colour
    .map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);

function contrast(a: number[], b: number[]): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (light + 0.05) / (dark + 0.05);
}

test.each([0, 1] as const)("text is readable on every cell of theme %i", (theme) => {
  const [fill, ground, ink] = ["--act-transfer", "--bg-sunken", "--text"].map((name) => rgb(name, theme));
  for (let share = 0; share <= 1; share += 0.1) {
    const opacity = strength(share, true);
    const cell = fill.map((c, i) => opacity * c + (1 - opacity) * ground[i]);
    expect(contrast(cell, ink)).toBeGreaterThanOrEqual(4.5);
  }
});
