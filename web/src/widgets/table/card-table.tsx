import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** As in styles/cards.css. */
const PHONE = "(max-width: 480px)";

/** Copy the heads to the cells of their columns: a card shows them as labels. */
export function labelCells(table: HTMLTableElement): void {
  const labels = Array.from(table.tHead?.rows[0]?.cells ?? [], (cell) =>
    // Heads that only screen readers see name no value.
    cell.querySelector(".sr") ? "" : (cell.textContent ?? "").trim(),
  );
  for (const body of table.tBodies)
    for (const row of body.rows)
      for (const [i, cell] of Array.from(row.cells).entries()) cell.dataset.label = labels[i] ?? "";
}

interface Props {
  children: ComponentChildren;
  class?: string;
  rowCount?: number;
}

/** A table that stays a table on phones. */
export function PlainTable({ children, ...rest }: Props) {
  return (
    <table class={`data ${rest.class ?? ""}`} aria-rowcount={rest.rowCount}>
      {children}
    </table>
  );
}

/** A table that becomes a list of cards on phones: each row is a card, each cell a label and a value. */
export function CardTable({ children, ...rest }: Props) {
  const ref = useRef<HTMLTableElement>(null);
  useLayoutEffect(() => {
    const phone = matchMedia(PHONE);
    const label = () => {
      if (ref.current && phone.matches) labelCells(ref.current);
    };
    label();
    phone.addEventListener("change", label);
    return () => phone.removeEventListener("change", label);
  });
  return (
    <table class={`data cards ${rest.class ?? ""}`} ref={ref} aria-rowcount={rest.rowCount}>
      {children}
    </table>
  );
}

/** A column of a short table: its head, the content of a cell, and the classes of its cells. */
export type ShortColumn<R> = readonly [
  head: ComponentChildren,
  cell: (row: R) => ComponentChildren,
  kind?: "num" | "num wide" | "num mono" | "mono" | "wrap" | "acts",
];

interface ShortTableProps<R> {
  rows: readonly R[];
  columns: readonly ShortColumn<R>[];
  keyOf: (row: R) => string | number;
  class?: string;
  /** The name of the region that scrolls if the table is wider than the window. */
  label?: string;
  /** Of each row. */
  testid?: string;
}

/** A table of a few rows, in the order in which they come. */
export function ShortTable<R>({ rows, columns, keyOf, class: kind, label, testid }: ShortTableProps<R>) {
  const table = (
    <CardTable class={kind}>
      <thead>
        <tr>
          {columns.map(([head, , cells], i) => (
            <th key={i} class={cells?.startsWith("num") ? "num" : undefined}>
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)} data-testid={testid}>
            {columns.map(([, cell, cells], i) => (
              <td key={i} class={cells}>
                {cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </CardTable>
  );
  if (!label) return table;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      {table}
    </div>
  );
}
