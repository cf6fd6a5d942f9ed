import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Cube } from "../src/api/schema.gen";
import { Columns, type Source } from "../src/api/source";
import { loadCube, sumBy } from "../src/model/cube";
import { ago, count, dollars, duration, frequency, moment, nbytes, percent, quantity } from "../src/model/text/format";

/** Expected values, also checked against Python by tests/contract/test_cubes.py. */
interface Golden {
  cubes: Record<string, Cube>;
  blocks: Record<string, string>;
  sums: {
    cube: string;
    key: string;
    measure: string;
    where: Record<string, string>;
    bins: [number, number] | null;
    sums: number[];
  }[];
  texts: Record<"duration" | "nbytes" | "percent" | "count" | "moment", [number, string][]> & {
    quantity: [number, string, string][];
  };
}

const golden = JSON.parse(readFileSync(new URL("../../tests/data/cubes.json", import.meta.url), "utf-8")) as Golden;
const source: Source = {
  report: () => Promise.reject(new Error("not used")),
  raw: (block) => Promise.resolve(golden.blocks[block.block]),
};

describe("sums agree with Python", () => {
  test.each(golden.sums)(
    "$cube by $key: $measure $where in $bins",
    async ({ cube: name, key, measure, where, bins, sums }) => {
      const cube = await loadCube(golden.cubes[name], new Columns(source));
      const codes = Object.fromEntries(Object.entries(where).map(([k, text]) => [k, cube.keys[k].indexOf(text)]));
      const mine = Array.from(sumBy(cube, key, measure, bins && { b0: bins[0], b1: bins[1] }, codes));
      expect(mine).toHaveLength(sums.length);
      for (const [i, value] of mine.entries()) expect(value).toBeCloseTo(sums[i], 6);
    },
  );
});

describe("texts agree with Python", () => {
  test.each(Object.entries({ duration, nbytes, percent, frequency, count, moment, dollars, ago }))(
    "%s",
    (name, format) => {
      const held = golden.texts[name as keyof typeof golden.texts] as [number, string][];
      expect(held.map(([value]) => [value, format(value)])).toEqual(held);
    },
  );
  test("quantity", () =>
    expect(golden.texts.quantity.map(([value, unit]) => [value, unit, quantity(value, unit)])).toEqual(
      golden.texts.quantity,
    ));
});
