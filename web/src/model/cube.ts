import type { Numbers } from "../api/decode";
import { CATEGORIES, type Category, type Cube, type Prefix } from "../api/schema.gen";
import type { Columns } from "../api/source";

/** A cube with its columns in memory. */
export interface CubeData {
  rows: number;
  /** Number of bins merged into one; rows have the index of the first. */
  step: number;
  keys: Record<string, string[]>;
  codes: Record<string, Numbers>;
  bin: Numbers;
  measures: Record<string, Numbers>;
}

/** Bins [b0, b1). */
export interface BinRange {
  b0: number;
  b1: number;
}

/** Filter: required code per key. */
export type Where = Record<string, number>;

export async function loadCube(cube: Cube, columns: Columns): Promise<CubeData> {
  const names = Object.keys(cube.columns);
  const loaded = await Promise.all(names.map((name) => columns.numbers(cube.columns[name])));
  const codes: Record<string, Numbers> = {};
  const measures: Record<string, Numbers> = {};
  let bin: Numbers = new Uint8Array(0);
  names.forEach((name, i) => {
    if (name === "bin") bin = loaded[i];
    else if (cube.measures.includes(name)) measures[name] = loaded[i];
    else codes[name] = loaded[i];
  });
  return { rows: cube.rows, step: cube.step, keys: cube.keys, codes, bin, measures };
}

/** Return a function that tests whether a row is in the range and has the required codes. */
function matcher(cube: CubeData, range: BinRange | null, where: Where): (row: number) => boolean {
  const wanted = Object.entries(where).filter(([key]) => cube.codes[key]);
  const { bin, step } = cube;
  const first = range ? range.b0 - (range.b0 % step) : 0;
  return (row) => {
    if (range && (bin[row] < first || bin[row] >= range.b1)) return false;
    for (const [key, code] of wanted) if (cube.codes[key][row] !== code) return false;
    return true;
  };
}

/** Sum a measure by the codes of a key; ``weights`` multiplies each row by the weight of its code of another key. */
export function sumBy(
  cube: CubeData,
  key: string,
  measure: string,
  range: BinRange | null,
  where: Where = {},
  size = cube.keys[key]?.length ?? 0,
  weights?: { key: string; byCode: readonly number[] },
): Float64Array {
  const out = new Float64Array(size);
  const codes = cube.codes[key];
  const values = cube.measures[measure];
  if (!codes || !values) return out;
  const ok = matcher(cube, range, where);
  const of = weights && cube.codes[weights.key];
  for (let row = 0; row < cube.rows; row++)
    if (ok(row)) out[codes[row]] += of ? values[row] * (weights.byCode[of[row]] ?? 0) : values[row];
  return out;
}

/** Sum a measure by two keys: `out[code of first][code of second]`. */
export function sumByTwo(
  cube: CubeData,
  first: string,
  second: string,
  measure: string,
  range: BinRange | null,
  where: Where = {},
): Float64Array[] {
  const width = cube.keys[second]?.length ?? 0;
  const out = (cube.keys[first] ?? []).map(() => new Float64Array(width));
  const a = cube.codes[first];
  const b = cube.codes[second];
  const values = cube.measures[measure];
  if (!a || !b || !values) return out;
  const ok = matcher(cube, range, where);
  for (let row = 0; row < cube.rows; row++) if (ok(row)) out[a[row]][b[row]] += values[row];
  return out;
}

export function total(cube: CubeData, measure: string, range: BinRange | null, where: Where = {}): number {
  const values = cube.measures[measure];
  const ok = matcher(cube, range, where);
  let sum = 0;
  if (values) for (let row = 0; row < cube.rows; row++) if (ok(row)) sum += values[row];
  return sum;
}

/** Return a measure over all bins, one series per code of the key. */
export function overTime(
  cube: CubeData,
  key: string,
  measure: string,
  bins: number,
  where: Where = {},
): Float64Array[] {
  const out = (cube.keys[key] ?? []).map(() => new Float64Array(bins));
  const codes = cube.codes[key];
  const values = cube.measures[measure];
  if (!codes || !values) return out;
  const ok = matcher(cube, null, where);
  for (let row = 0; row < cube.rows; row++)
    if (ok(row) && cube.bin[row] < bins) out[codes[row]][cube.bin[row]] += values[row];
  return out;
}

/** Return the thread time of each prefix by category, in the order of `CATEGORIES`. Idle threads have no prefix, so that it only counts if it is asked for. */
export function prefixTimes(
  cube: CubeData,
  prefixes: readonly Prefix[],
  range: BinRange | null,
  activity: Category | null = null,
): Float64Array[] {
  const sums = sumByTwo(cube, "prefix", "category", "us", range);
  const at = new Map(cube.keys.prefix.map((name, i) => [name, i]));
  const isWanted = CATEGORIES.map((c) => (activity ? c === activity : c !== "idle"));
  const order = CATEGORIES.map((c) => cube.keys.category.indexOf(c));
  return prefixes.map(({ prefix }) => {
    const row = sums[at.get(prefix) ?? -1];
    return Float64Array.from(order, (o, i) => (isWanted[i] ? (row?.[o] ?? 0) : 0));
  });
}
