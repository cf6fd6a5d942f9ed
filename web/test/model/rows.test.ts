import { describe, expect, test } from "vitest";
import { type Column, filterRows, sortRows, toCsv, toJson } from "../../src/model/rows";

interface Row {
  n: number;
  s: string;
}

const columns: Column<Row>[] = [
  { id: "n", head: "N", num: true, value: (r) => r.n },
  { id: "s", head: "S", value: (r) => r.s },
];
const rows: Row[] = [
  { n: 2, s: "w-10" },
  { n: 1, s: "w-9" },
  { n: 3, s: "Zebra" },
];
const ns = (sorted: Row[]) => sorted.map((r) => r.n);

describe("sorting", () => {
  test("numbers sort in both directions", () => {
    expect(ns(sortRows(rows, columns, { id: "n", down: false }))).toEqual([1, 2, 3]);
    expect(ns(sortRows(rows, columns, { id: "n", down: true }))).toEqual([3, 2, 1]);
  });

  test("numbers within texts sort by value", () => {
    expect(sortRows(rows, columns, { id: "s", down: false }).map((r) => r.s)).toEqual(["w-9", "w-10", "Zebra"]);
  });

  test("rows with equal values keep their order in both directions", () => {
    const equal = [1, 2, 3].map((n) => ({ n, s: "same" }));
    expect(ns(sortRows(equal, columns, { id: "s", down: false }))).toEqual([1, 2, 3]);
    expect(ns(sortRows(equal, columns, { id: "s", down: true }))).toEqual([1, 2, 3]);
  });

  test("NaN comes last in both directions", () => {
    const gaps = [3, Number.NaN, 1, Number.NaN, 2].map((n) => ({ n, s: "" }));
    expect(ns(sortRows(gaps, columns, { id: "n", down: false }))).toEqual([1, 2, 3, Number.NaN, Number.NaN]);
    expect(ns(sortRows(gaps, columns, { id: "n", down: true }))).toEqual([3, 2, 1, Number.NaN, Number.NaN]);
  });

  test("infinite numbers sort to the ends", () => {
    const infinite = [1, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY].map((n) => ({ n, s: "" }));
    expect(ns(sortRows(infinite, columns, { id: "n", down: false }))).toEqual([
      Number.NEGATIVE_INFINITY,
      1,
      Number.POSITIVE_INFINITY,
    ]);
  });

  test("without a sort or with an unknown column the order stays", () => {
    expect(ns(sortRows(rows, columns, null))).toEqual([2, 1, 3]);
    expect(ns(sortRows(rows, columns, { id: "nonsense", down: true }))).toEqual([2, 1, 3]);
  });

  test("the input is not changed", () => {
    const before = [...rows];
    sortRows(rows, columns, { id: "n", down: false });
    expect(rows).toEqual(before);
  });

  test("no rows stay no rows", () => expect(sortRows([], columns, { id: "n", down: true })).toEqual([]));
});

describe("filtering", () => {
  test("a row matches if any cell contains the text, in any case", () => {
    expect(ns(filterRows(rows, columns, "W-9"))).toEqual([1]);
    expect(ns(filterRows(rows, columns, "zEb"))).toEqual([3]);
    expect(ns(filterRows(rows, columns, "1"))).toEqual([2, 1]);
  });

  test("spaces around the text are ignored", () => expect(ns(filterRows(rows, columns, "  w-9 "))).toEqual([1]));

  test("an empty text matches all rows", () => {
    expect(filterRows(rows, columns, "   ")).toEqual(rows);
    expect(filterRows([], columns, "")).toEqual([]);
  });

  test("characters of regular expressions have no meaning", () => {
    expect(filterRows(rows, columns, ".*")).toEqual([]);
  });

  test("nothing matches without columns", () => expect(filterRows(rows, [], "w")).toEqual([]));
});

describe("CSV export", () => {
  const csv = (s: string, n = 1) => toCsv([{ n, s }], columns).split("\r\n")[1];

  test("there is a header and a line per row", () => {
    expect(toCsv(rows.slice(0, 2), columns)).toBe("N,S\r\n2,w-10\r\n1,w-9\r\n");
  });

  test("without rows there is only the header", () => expect(toCsv([], columns)).toBe("N,S\r\n"));

  test.each([
    ["a,b", '1,"a,b"'],
    ['say "hi"', '1,"say ""hi"""'],
    ["two\nlines", '1,"two\nlines"'],
    ["", "1,"],
  ])("%j is quoted if needed", (s, line) => expect(csv(s)).toBe(line));

  test.each(["=1+1", "+1", "-1", "@SUM(A1)", "\tx"])("%j cannot run as a formula", (s) => {
    expect(csv(s)).toBe(`1,'${s}`);
  });

  test("a formula with quotes is neutralized and quoted", () => {
    expect(csv('=cmd("x")')).toBe(`1,"'=cmd(""x"")"`);
  });

  test("negative numbers stay numbers", () => expect(csv("x", -5)).toBe("-5,x"));

  test("values that are not finite are empty", () => {
    expect(csv("x", Number.NaN)).toBe(",x");
    expect(csv("x", Number.POSITIVE_INFINITY)).toBe(",x");
  });
});

describe("JSON export", () => {
  test("rows are objects by column ID", () => {
    expect(JSON.parse(toJson(rows.slice(0, 1), columns))).toEqual([{ n: 2, s: "w-10" }]);
  });

  test("values that are not finite are null", () => {
    expect(JSON.parse(toJson([{ n: Number.NaN, s: "" }], columns))).toEqual([{ n: null, s: "" }]);
  });

  test("only the given columns are exported", () => {
    expect(JSON.parse(toJson(rows, columns.slice(1)))).toEqual(rows.map(({ s }) => ({ s })));
  });

  test("no rows are an empty list", () => expect(toJson([], columns)).toBe("[]"));
});
