/** Sorting, filtering and exporting of tables; nothing here knows how a table looks. */

export type Cell = string | number;

export interface Column<R> {
  id: string;
  head: string;
  /** What sorts, filters and is exported. */
  value: (row: R) => Cell;
  num?: boolean;
  hint?: string;
}

export interface Sort {
  id: string;
  down: boolean;
}

export function sortRows<R>(rows: readonly R[], columns: readonly Column<R>[], sort: Sort | null): R[] {
  const column = columns.find((c) => c.id === sort?.id);
  if (!column || !sort) return [...rows];
  const sign = sort.down ? -1 : 1;
  const keyed = rows.map((row, i) => ({ row, i, key: column.value(row) }));
  keyed.sort((a, b) => {
    const order = typeof a.key === "number" && typeof b.key === "number" ? a.key - b.key || 0 : String(a.key).localeCompare(String(b.key), "en", { numeric: true });
    return order ? sign * order : a.i - b.i;
  });
  return keyed.map((k) => k.row);
}

/** Rows in which some cell contains the text. */
export function filterRows<R>(rows: readonly R[], columns: readonly Column<R>[], text: string): R[] {
  const want = text.trim().toLowerCase();
  if (!want) return [...rows];
  return rows.filter((row) => columns.some((c) => String(c.value(row)).toLowerCase().includes(want)));
}

/** A cell that a spreadsheet would take for a formula gets a quote in front. */
function csvCell(value: Cell): string {
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function toCsv<R>(rows: readonly R[], columns: readonly Column<R>[]): string {
  const lines = [columns.map((c) => csvCell(c.head)), ...rows.map((row) => columns.map((c) => csvCell(c.value(row))))];
  return `${lines.map((cells) => cells.join(",")).join("\r\n")}\r\n`;
}

export function toJson<R>(rows: readonly R[], columns: readonly Column<R>[]): string {
  return JSON.stringify(rows.map((row) => Object.fromEntries(columns.map((c) => [c.id, c.value(row)]))), null, 1);
}
