import { describe, expect, it } from "vitest";
import type { SqlAnswer } from "../../src/api/server.gen";
import { toCsv } from "../../src/model/rows";
import { MAX_BARS, parseSaved, readText, sqlBars, sqlCell, sqlColumns, withSaved } from "../../src/model/text/sql";

function answer(columns: [string, string][], rows: unknown[][]): SqlAnswer {
  const named = columns.map(([name, type]) => ({ name, type }));
  const read = { clusters: 1, all_clusters: 1, skipped: [], skipped_clusters: 0, seconds: 0.1 };
  return { columns: named, rows, is_cut: false, ...read };
}

describe("what a query read", () => {
  const one = answer([], []);

  it("is the clusters and the time", () => {
    expect(readText(one)).toBe("from 1 cluster in 0.10 s");
    expect(readText({ ...one, clusters: 2, all_clusters: 3 })).toBe("from the newest 2 of 3 clusters in 0.10 s");
  });

  it("names clusters that were skipped", () => {
    const skipped = { ...one, clusters: 3, all_clusters: 3, skipped: ["a", "b"], skipped_clusters: 3 };
    expect(readText(skipped)).toBe(
      "from 3 clusters in 0.10 s, without 3 whose files are missing or damaged (a, b and others)",
    );
  });
});

describe("a result as a table", () => {
  it("sorts and exports cells by their value, also with the same name twice", () => {
    const found = answer(
      [
        ["n", "BIGINT"],
        ["n", "VARCHAR"],
        ["list", "BIGINT[]"],
      ],
      [
        [1, "=a", [1, 2]],
        [null, "b", null],
      ],
    );
    const columns = sqlColumns(found);
    expect(columns.map(({ id, head, num }) => [id, head, num])).toEqual([
      ["0", "n", true],
      ["1", "n", false],
      ["2", "list", false],
    ]);
    expect(toCsv(found.rows, columns)).toBe('n,n,list\r\n1,\'=a,"[1,2]"\r\n,b,\r\n');
  });

  it("shows no value as nothing", () => {
    expect([null, undefined, true, "x", 3].map(sqlCell)).toEqual(["", "", "true", "x", 3]);
  });
});

describe("a result as bars", () => {
  const names: [string, string][] = [
    ["prefix", "VARCHAR"],
    ["note", "VARCHAR"],
    ["seconds", "DOUBLE"],
  ];

  it("uses the first column of numbers", () => {
    const found = answer(names, [
      ["inc", "", 2.5],
      ["sum", "", 1],
    ]);
    expect(sqlBars(found)).toEqual({
      head: "seconds",
      bars: [
        { name: "inc", value: 2.5 },
        { name: "sum", value: 1 },
      ],
    });
  });

  it("shows a limited number of them", () => {
    const rows = Array.from({ length: MAX_BARS + 5 }, (_, i) => [`p${i}`, "", i]);
    expect(sqlBars(answer(names, rows))?.bars).toHaveLength(MAX_BARS);
  });

  it.each([
    ["of one row", names, [["inc", "", 1]]],
    [
      "with negative numbers",
      names,
      [
        ["inc", "", -1],
        ["sum", "", 1],
      ],
    ],
    ["without numbers", [["a", "VARCHAR"]] as [string, string][], [["x"], ["y"]]],
    [
      "that begins with a number",
      [
        ["a", "BIGINT"],
        ["b", "BIGINT"],
      ] as [string, string][],
      [
        [1, 2],
        [3, 4],
      ],
    ],
  ])("has none for a result %s", (_, columns, rows) => {
    expect(sqlBars(answer(columns, rows))).toBeNull();
  });
});

describe("saved queries", () => {
  it("are sorted by name, and replaced by name", () => {
    const saved = withSaved(withSaved([], { name: "b", query: "1" }), { name: "a", query: "2" });
    expect(withSaved(saved, { name: "b", query: "3" })).toEqual([
      { name: "a", query: "2" },
      { name: "b", query: "3" },
    ]);
  });

  it.each([null, "", "{", "5", "null", '{"a": 1}', '[1, null, {"name": 5}]'])("ignore %s", (text) => {
    expect(parseSaved(text)).toEqual([]);
  });
});
