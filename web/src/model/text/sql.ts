/** Results of SQL queries as tables and charts, and queries that the user saved in this browser. */

import type { SqlAnswer } from "../../api/server.gen";
import type { Cell, Column } from "../rows";
import { count } from "./format";

export type SqlRow = readonly unknown[];

const NUMBERS =
  /^(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT|UTINYINT|USMALLINT|UINTEGER|UBIGINT|FLOAT|DOUBLE|DECIMAL.*)$/;

/** Bars of a chart: more do not fit on a screen. */
export const MAX_BARS = 50;

export const EXAMPLES = [
  [
    "Time by task prefix",
    "select prefix, sum(stop_us - start_us) / 1e6 as seconds, count(*) as tasks\nfrom tasks group by 1 order by 2 desc",
  ],
  [
    "Peak memory of workers",
    "select cluster, worker, max(memory) / 1e9 as gigabytes\nfrom samples group by 1, 2 order by 3 desc limit 50",
  ],
  [
    "Slowest transfers",
    "select source, destination, nbytes / 1e6 as megabytes, (stop_us - start_us) / 1e6 as seconds\nfrom transfers order by 4 desc limit 50",
  ],
  ["Workers by verdict", "select verdict, count(*) as workers\nfrom workers group by 1 order by 2 desc"],
] as const;

/** What a query read, and what it could not read. */
export function readText({ clusters, all_clusters, skipped, skipped_clusters, seconds }: SqlAnswer): string {
  const of = clusters < all_clusters ? `the newest ${count(clusters)} of ${count(all_clusters)}` : count(clusters);
  const read = `from ${of} ${all_clusters === 1 ? "cluster" : "clusters"} in ${seconds.toFixed(2)} s`;
  const others = skipped_clusters > skipped.length ? " and others" : "";
  const names = `${skipped.join(", ")}${others}`;
  return skipped_clusters
    ? `${read}, without ${count(skipped_clusters)} whose files are missing or damaged (${names})`
    : read;
}

/** A cell as text or number, to sort and export. */
export function sqlCell(value: unknown): Cell {
  if (typeof value === "number" || typeof value === "string") return value;
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** The columns of a result. Names may repeat, so each has its place as ID. */
export function sqlColumns(answer: SqlAnswer): Column<SqlRow>[] {
  return answer.columns.map((column, place) => ({
    id: String(place),
    head: column.name,
    hint: column.type,
    num: NUMBERS.test(column.type),
    value: (row) => sqlCell(row[place]),
  }));
}

export interface SqlBar {
  name: string;
  value: number;
}

/** Bars of a result whose first column has names and which has a column of numbers that are not negative; else null. */
export function sqlBars(answer: SqlAnswer): { head: string; bars: SqlBar[] } | null {
  const place = answer.columns.findIndex((column, i) => i > 0 && NUMBERS.test(column.type));
  const [first] = answer.columns;
  if (place < 0 || !first || NUMBERS.test(first.type) || answer.rows.length < 2) return null;
  const bars = answer.rows
    .slice(0, MAX_BARS)
    .map((row) => ({ name: String(sqlCell(row[0])), value: Number(row[place]) }));
  if (bars.some((bar) => !(bar.value >= 0))) return null;
  return { head: answer.columns[place]?.name ?? "", bars };
}

export interface SavedQuery {
  name: string;
  query: string;
}

/** Read saved queries from their JSON; anything else is no query. */
export function parseSaved(text: string | null): SavedQuery[] {
  let found: unknown;
  try {
    found = JSON.parse(text ?? "[]");
  } catch {
    return [];
  }
  if (!Array.isArray(found)) return [];
  return found.filter((one): one is SavedQuery => typeof one?.name === "string" && typeof one?.query === "string");
}

/** Save a query under a name; it replaces one with the same name. */
export function withSaved(saved: readonly SavedQuery[], added: SavedQuery): SavedQuery[] {
  const others = saved.filter((one) => one.name !== added.name);
  return [...others, added].sort((a, b) => a.name.localeCompare(b.name));
}
