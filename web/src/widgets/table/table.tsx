import { useMemo } from "preact/hooks";
import { useParam } from "../../model/page/hooks";
import { type Column, filterRows, type Sort, sortRows, toCsv, toJson } from "../../model/rows";
import { count } from "../../model/text/format";
import { copy, download } from "../clipboard";
import { Search } from "../controls/inputs";
import { TableMenu } from "../controls/popover";
import { type TableProps, TableRows } from "./table-rows";

/** Sort order in the URL: the column ID, with a minus for descending. */
const sortText = (sort: Sort) => `${sort.down ? "-" : ""}${sort.id}`;

const parseSort = (text: string): Sort | null =>
  text ? { id: text.replace(/^-/, ""), down: text.startsWith("-") } : null;

/** A table that can be sorted, filtered and exported. Long tables render only the visible rows. */
export function DataTable<R>(props: TableProps<R>) {
  const { rows, columns, label } = props;
  const [order, setOrder] = useParam(`sort.${props.name}`, props.sort ? sortText(props.sort) : "");
  const [filter, setFilter] = useParam(`find.${props.name}`);
  const [without, setWithout] = useParam(`hide.${props.name}`);
  const sort = useMemo(() => parseSort(order), [order]);
  const hidden = useMemo(() => new Set(without.split(",")), [without]);
  const setHidden = (next: ReadonlySet<string>) => setWithout([...next].filter(Boolean).join(","));
  const shown = columns.filter((c) => !hidden.has(c.id));
  const found = useMemo(
    () => sortRows(filterRows(rows, columns, filter), columns, sort),
    [rows, columns, filter, sort],
  );
  const sortBy = (c: Column<R>) =>
    setOrder(sortText(sort?.id === c.id ? { id: c.id, down: !sort.down } : { id: c.id, down: c.num === true }));
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
            <span class="hide-n">
              <TableMenu columns={columns.slice(1)} hidden={hidden} onChange={setHidden}>
                <button
                  type="button"
                  class="link"
                  onClick={() =>
                    copy(toCsv(found, shown).replaceAll("\r\n", "\n"), `${count(found.length)} rows copied`)
                  }
                >
                  Copy
                </button>
                <button
                  type="button"
                  class="link"
                  onClick={() => download(`${props.name}.csv`, toCsv(found, shown), "text/csv")}
                >
                  Download CSV
                </button>
                <button
                  type="button"
                  class="link"
                  onClick={() => download(`${props.name}.json`, toJson(found, shown), "application/json")}
                >
                  Download JSON
                </button>
              </TableMenu>
            </span>
          </div>
        </div>
      )}
      <TableRows {...props} found={found} shown={shown} sort={sort} sortBy={sortBy} />
      {found.length === 0 && (
        <div class="callout">
          {rows.length === 0 ? (
            (props.empty ?? "Nothing recorded")
          ) : (
            <>
              No rows match “{filter}”.{" "}
              <button type="button" class="link" onClick={() => setFilter("")}>
                Clear filter
              </button>
            </>
          )}
        </div>
      )}
      <span class="sr">{label}</span>
    </>
  );
}
