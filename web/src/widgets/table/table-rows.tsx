import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Column, Sort } from "../../model/rows";
import { count } from "../../model/text/format";
import { Icon } from "../icon";
import { CardTable, PlainTable } from "./card-table";

export interface ViewColumn<R> extends Column<R> {
  cell?: (row: R) => ComponentChildren;
  /** Shows the number of a cell, if it has nothing else. */
  text?: (value: number) => string;
  width?: string;
  /** Names the quantity in a cell: one that is shown in several places must have one value. */
  quantity?: (row: R) => string | undefined;
}

export interface TableProps<R> {
  label: string;
  rows: readonly R[];
  /** Total number of rows, if not all are loaded. */
  of?: number;
  columns: readonly ViewColumn<R>[];
  sort?: Sort;
  name: string;
  rowKey: (row: R) => string;
  rowTestid?: string;
  selected?: (row: R) => boolean;
  onRow?: (row: R) => void;
  title?: string;
  note?: ComponentChildren;
  compact?: boolean;
  tools?: ComponentChildren;
  bare?: boolean;
  empty?: ComponentChildren;
}

const ROW = 32;

const COMPACT = 24;

/** Tables with more rows render only the visible ones. */
const VIRTUAL_FROM = 200;

/** Rows that a phone shows as cards at first, as in cards.css: a card is five times as high as a row. */
const FIRST_CARDS = 6;

/** Tables with more rows scroll in a box. */
const SCROLL_FROM = 40;

interface TableRowsProps<R> extends TableProps<R> {
  found: R[];
  shown: readonly ViewColumn<R>[];
  sortBy: (c: Column<R>) => void;
}

export function TableRows<R>({
  found,
  shown,
  sort,
  sortBy,
  label,
  rowKey,
  rowTestid,
  selected,
  onRow,
  compact,
}: Omit<TableRowsProps<R>, "sort"> & { sort: Sort | null }) {
  const [top, setTop] = useState(0);
  const [all, setAll] = useState(false);
  const height = compact ? COMPACT : ROW;
  const virtual = found.length > VIRTUAL_FROM;
  const long = found.length > SCROLL_FROM;
  const first = virtual ? Math.max(0, Math.min(found.length - 1, Math.floor(top / height)) - 10) : 0;
  // Cards have no fixed height, so that a part of them cannot stand for all.
  const Table = virtual ? PlainTable : CardTable;
  const last = virtual ? Math.min(found.length, first + 70) : found.length;
  const few = !virtual && !all && found.length > FIRST_CARDS;
  return (
    <div
      class={long ? "tablebox long scroll" : "tablebox scroll"}
      tabIndex={0}
      role="region"
      aria-label={label}
      onScroll={virtual ? (e) => setTop(e.currentTarget.scrollTop) : undefined}
    >
      <Table class={`${compact ? "compact" : ""} ${few ? "few" : ""}`} rowCount={found.length}>
        <thead>
          <tr>
            {shown.map((c) => (
              <th
                key={c.id}
                class={c.num ? "num" : ""}
                title={c.hint}
                style={{ width: c.width }}
                aria-sort={sort?.id === c.id ? (sort.down ? "descending" : "ascending") : undefined}
              >
                {c.head === "" ? (
                  <span class="sr">Bar</span>
                ) : (
                  <button type="button" onClick={() => sortBy(c)}>
                    {c.head}
                    {sort?.id === c.id && <Icon name={sort.down ? "chev" : "up"} />}
                  </button>
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {first > 0 && (
            <tr aria-hidden="true">
              <td colSpan={shown.length} style={{ height: `${first * height}px`, padding: "0" }} />
            </tr>
          )}
          {found.slice(first, last).map((row) => (
            <tr
              key={rowKey(row)}
              data-testid={rowTestid}
              class={`${selected?.(row) ? "sel" : ""} ${onRow ? "click" : ""}`}
              tabIndex={onRow ? 0 : undefined}
              onClick={onRow && (() => onRow(row))}
              onKeyDown={
                onRow &&
                ((e) => {
                  if (e.key === "Enter" && e.target === e.currentTarget) onRow(row);
                })
              }
            >
              {shown.map((c) => (
                <td
                  key={c.id}
                  class={c.num ? (c.value(row) === 0 ? "num zero" : "num") : ""}
                  title={c.cell || c.text ? undefined : String(c.value(row))}
                  data-quantity={c.quantity?.(row)}
                >
                  {c.cell ? c.cell(row) : c.text ? c.text(Number(c.value(row))) : c.value(row)}
                </td>
              ))}
            </tr>
          ))}
          {last < found.length && (
            <tr aria-hidden="true">
              <td colSpan={shown.length} style={{ height: `${(found.length - last) * height}px`, padding: "0" }} />
            </tr>
          )}
        </tbody>
      </Table>
      {few && (
        <button type="button" class="link allcards" onClick={() => setAll(true)}>
          Show all {count(found.length)}
        </button>
      )}
    </div>
  );
}
