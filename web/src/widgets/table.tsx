import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { count } from "../model/format";
import { useParam } from "../model/hooks";
import { type Column, filterRows, type Sort, sortRows, toCsv, toJson } from "../model/rows";
import { copy, download, Search } from "./basics";
import { ColumnMenu } from "./column-menu";
import { Icon } from "./icon";

export interface ViewColumn<R> extends Column<R> {
  cell?: (row: R) => ComponentChildren;
  width?: string;
}

interface Props<R> {
  label: string;
  rows: readonly R[];
  /** How many there are, where not all are here. */
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
const MANY = 200;
const LONG = 40;

/** A sort in the address: the column, with a minus in front from the largest down. */
const sortText = (sort: Sort) => `${sort.down ? "-" : ""}${sort.id}`;
const parseSort = (text: string): Sort | null => (text ? { id: text.replace(/^-/, ""), down: text.startsWith("-") } : null);

/** Sortable, filterable, with a choice of columns and export of what is shown. Only visible rows are in the page. */
export function DataTable<R>(props: Props<R>) {
  const { rows, columns, label } = props;
  const [order, setOrder] = useParam(`sort.${props.name}`, props.sort ? sortText(props.sort) : "");
  const [filter, setFilter] = useParam(`find.${props.name}`);
  const [without, setWithout] = useParam(`hide.${props.name}`);
  const sort = useMemo(() => parseSort(order), [order]);
  const hidden = useMemo(() => new Set(without.split(",")), [without]);
  const setHidden = (next: ReadonlySet<string>) => setWithout([...next].filter(Boolean).join(","));
  const shown = columns.filter((c) => !hidden.has(c.id));
  const found = useMemo(() => sortRows(filterRows(rows, columns, filter), columns, sort), [rows, columns, filter, sort]);
  const turn = (c: Column<R>) => setOrder(sortText(sort?.id === c.id ? { id: c.id, down: !sort.down } : { id: c.id, down: c.num === true }));
  const all = props.of ?? rows.length;
  return (
    <>
      {!props.bare && (
        <div class="phead">
          {props.title && <h2>{props.title}</h2>}
          <span class="note">
            {count(found.length)} of {count(all)}
            {props.note && <> {props.note}</>}
          </span>
          <div class="right">
            {props.tools}
            <Search label="Filter" value={filter} onInput={setFilter} testid={`filter-${props.name}`} />
            <span class="hide-n" style="display:flex;gap:8px">
              <ColumnMenu columns={columns.slice(1)} hidden={hidden} onChange={setHidden} />
              <button type="button" class="btn sm" onClick={() => copy(toCsv(found, shown).replaceAll("\r\n", "\n"), `${count(found.length)} rows copied`)}>
                Copy
              </button>
              <button type="button" class="btn sm" onClick={() => download(`${props.name}.csv`, toCsv(found, shown), "text/csv")}>
                <Icon name="down" />
                CSV
              </button>
              <button type="button" class="btn sm" onClick={() => download(`${props.name}.json`, toJson(found, shown), "application/json")}>
                JSON
              </button>
            </span>
          </div>
        </div>
      )}
      <Rows {...props} found={found} shown={shown} sort={sort} turn={turn} />
      {found.length === 0 && (
        <div class="callout">
          {rows.length === 0 ? (props.empty ?? "Nothing was recorded here") : <>Nothing matches “{filter}”. <button type="button" class="link" onClick={() => setFilter("")}>Clear the filter</button></>}
        </div>
      )}
      <span class="sr">{label}</span>
    </>
  );
}

interface RowsProps<R> extends Props<R> {
  found: R[];
  shown: readonly ViewColumn<R>[];
  turn: (c: Column<R>) => void;
}

function Rows<R>({ found, shown, sort, turn, label, rowKey, rowTestid, selected, onRow, compact }: Omit<RowsProps<R>, "sort"> & { sort: Sort | null }) {
  const [top, setTop] = useState(0);
  const height = compact ? COMPACT : ROW;
  const virtual = found.length > MANY;
  const long = found.length > LONG;
  const first = virtual ? Math.max(0, Math.min(found.length - 1, Math.floor(top / height)) - 10) : 0;
  const last = virtual ? Math.min(found.length, first + 70) : found.length;
  return (
    <div class={long ? "tablebox long scroll" : "tablebox scroll"} tabIndex={0} role="region" aria-label={label} onScroll={virtual ? (e) => setTop(e.currentTarget.scrollTop) : undefined}>
      <table class={compact ? "data compact" : "data"} aria-rowcount={found.length}>
        <thead>
          <tr>
            {shown.map((c) => (
              <th key={c.id} class={c.num ? "num" : ""} title={c.hint} style={{ width: c.width }} aria-sort={sort?.id === c.id ? (sort.down ? "descending" : "ascending") : undefined}>
                {c.head === "" ? (
                  <span class="sr">Bar</span>
                ) : (
                  <button type="button" onClick={() => turn(c)}>
                    {c.head}
                    {sort?.id === c.id && <Icon name={sort.down ? "chev" : "up"} />}
                  </button>
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {first > 0 && <tr aria-hidden="true"><td colSpan={shown.length} style={{ height: `${first * height}px`, padding: "0" }} /></tr>}
          {found.slice(first, last).map((row) => (
            <tr key={rowKey(row)} data-testid={rowTestid} class={`${selected?.(row) ? "sel" : ""} ${onRow ? "click" : ""}`} tabIndex={onRow ? 0 : undefined} onClick={onRow && (() => onRow(row))} onKeyDown={onRow && ((e) => { if (e.key === "Enter" && e.target === e.currentTarget) onRow(row); })}>
              {shown.map((c) => (
                <td key={c.id} class={c.num ? (c.value(row) === 0 ? "num zero" : "num") : ""} title={c.cell ? undefined : String(c.value(row))}>
                  {c.cell ? c.cell(row) : c.value(row)}
                </td>
              ))}
            </tr>
          ))}
          {last < found.length && <tr aria-hidden="true"><td colSpan={shown.length} style={{ height: `${(found.length - last) * height}px`, padding: "0" }} /></tr>}
        </tbody>
      </table>
    </div>
  );
}
