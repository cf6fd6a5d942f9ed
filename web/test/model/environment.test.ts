import { expect, test } from "vitest";
import type { Block, Report, ReportTable } from "../../src/api/schema.gen";
import type { Columns } from "../../src/api/source";
import { differs, loadEnvironment, mergeVersions } from "../../src/model/environment";

test("versions are merged by package, and packages that are not installed left out", () => {
  const merged = mergeVersions({ dask: "1", lz4: null }, [
    { dask: "1", numpy: "2" },
    { dask: "3", numpy: "2", lz4: null },
  ]);
  expect(merged).toEqual([
    { name: "dask", scheduler: "1", workers: ["1", "3"] },
    { name: "numpy", scheduler: "", workers: ["2"] },
  ]);
  expect(merged.map(differs)).toEqual([true, false]);
});

const table = (name: string, ...columns: string[]) =>
  ({ name, columns: columns.map((c) => ({ name: c })), data: { block: name } as Block }) as ReportTable;

function load(tables: ReportTable[], cells: Record<string, unknown[][]>) {
  const columns = {
    lines: (block: Block) => Promise.resolve(cells[block.block].map((column) => JSON.stringify(column))),
  } as unknown as Columns;
  return loadEnvironment({ report: { tables } as Report, columns });
}

test("the environment comes from the tables of the recording", async () => {
  const tables = [table("clusters", "cluster", "versions", "config"), table("workers", "versions")];
  const cells = {
    clusters: [["c"], ['{"dask":"1"}'], ['{"b.c":0.6,"a":null,"d":"5 s"}']],
    workers: [['{"dask":"1"}', '{"dask":']],
  };
  expect(await load(tables, cells)).toEqual({
    versions: [{ name: "dask", scheduler: "1", workers: ["1"] }],
    config: [
      { name: "a", value: "null" },
      { name: "b.c", value: "0.6" },
      { name: "d", value: "5 s" },
    ],
  });
});

test("reports without tables have no environment", async () => {
  expect(await load([], {})).toEqual({ versions: [], config: [] });
});
