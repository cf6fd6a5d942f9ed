/** Sorting, filtering and export of tables, independent of rendering. */

export type Cell = string | number;

export interface Column<R> {
  id: string;
  head: string;
  /** The value used to sort, filter and export. */
  value: (row: R) => Cell;
  num?: boolean;
  hint?: string;
}

export interface Sort {
  id: string;
  down: boolean;
}

/** Sort rows by a column. Rows with equal values keep their order; NaN comes last in both directions. */
export function sortRows<R>(rows: readonly R[], columns: readonly Column<R>[], sort: Sort | null): R[] {
  const column = columns.find((c) => c.id === sort?.id);
  if (!column || !sort) return [...rows];
  const sign = sort.down ? -1 : 1;
  const keyed = rows.map((row, i) => ({ row, i, key: column.value(row) }));
  keyed.sort((a, b) => {
    if (Number.isNaN(a.key) || Number.isNaN(b.key))
      return Number(Number.isNaN(a.key)) - Number(Number.isNaN(b.key)) || a.i - b.i;
    const order =
      typeof a.key === "number" && typeof b.key === "number"
        ? a.key - b.key || 0
        : String(a.key).localeCompare(String(b.key), "en", { numeric: true });
    return order ? sign * order : a.i - b.i;
  });
  return keyed.map((k) => k.row);
}

/** Return the rows in which a cell contains the text. */
export function filterRows<R>(rows: readonly R[], columns: readonly Column<R>[], text: string): R[] {
  const want = text.trim().toLowerCase();
  if (!want) return [...rows];
  return rows.filter((row) => columns.some((c) => String(c.value(row)).toLowerCase().includes(want)));
}

/** Format a CSV cell. A quote in front keeps spreadsheets from running it as a formula. */
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
  return JSON.stringify(
    rows.map((row) => Object.fromEntries(columns.map((c) => [c.id, c.value(row)]))),
    null,
    1,
  );
}
