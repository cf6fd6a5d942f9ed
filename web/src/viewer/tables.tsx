import { useMemo } from "preact/hooks";
import type { ReportColumn, ReportTable } from "../api/schema.gen";
import type { Model } from "../model/model";
import { useAsync, useModel, useParam } from "../model/page/hooks";
import type { Cell } from "../model/rows";
import { clock, count, duration, moment, nbytes } from "../model/text/format";
import { Empty, Failed, Loading, Panel, ViewHead } from "../widgets/basics";
import { Pick } from "../widgets/controls/inputs";
import { DataTable } from "../widgets/table/table";
import type { ViewColumn } from "../widgets/table/table-rows";

export function Tables() {
  const { report } = useModel();
  const [name, setName] = useParam("table", report.tables[0]?.name ?? "");
  const table = report.tables.find((t) => t.name === name);
  if (report.tables.length === 0)
    return (
      <>
        <ViewHead title="Tables" />
        <Panel>
          <Empty title="No tables in this report">Small reports leave them out.</Empty>
        </Panel>
      </>
    );
  return (
    <>
      <ViewHead title="Tables" note="Raw recording">
        <Pick
          label="Table"
          options={report.tables.map((t) => [t.name, `${t.name} (${count(t.of)})`])}
          value={name}
          onChange={setName}
          testid="table-pick"
        />
      </ViewHead>
      {table ? (
        <RawTable key={name} table={table} />
      ) : (
        <Panel>
          <Empty title={`No table “${name}”`} />
        </Panel>
      )}
    </>
  );
}

/** Format a cell. Sorting and export use the number. */
function text(column: ReportColumn, value: Cell, start: number): string {
  if (typeof value !== "number") return String(value);
  if (column.kind === "time") return value === 0 ? "" : clock(value - start, 1000);
  if (column.name.endsWith("_us")) return duration(value);
  if (/nbytes|memory|managed|spilled/.test(column.name)) return nbytes(value);
  return column.kind === "int" ? count(value) : value.toLocaleString("en-US", { maximumSignificantDigits: 6 });
}

/** Load the columns of a table; each is one line of JSON. */
async function load(model: Model, table: ReportTable): Promise<(Cell | null)[][]> {
  const lines = await model.columns.lines(table.data);
  return lines.map((line) => JSON.parse(line) as (Cell | null)[]);
}

function RawTable({ table }: { table: ReportTable }) {
  const model = useModel();
  const { report } = model;
  const data = useAsync(() => load(model, table), [table]);
  const columns = useMemo(
    () =>
      table.columns.map((c, at): ViewColumn<number> => {
        const num = c.kind === "int" || c.kind === "float" || c.kind === "time";
        const value = (row: number): Cell => data.value?.[at]?.[row] ?? "";
        return {
          id: c.name,
          head: c.name,
          hint: c.meaning,
          num,
          value,
          cell: (row) => (
            <span title={c.kind === "time" ? moment(Number(value(row))) : String(value(row))}>
              {text(c, value(row), report.start_us)}
            </span>
          ),
        };
      }),
    [table, data.value],
  );
  const rows = useMemo(() => Array.from({ length: table.rows }, (_, i) => i), [table]);
  if (data.error)
    return (
      <Panel>
        <Failed message={data.error} />
      </Panel>
    );
  if (!data.value)
    return (
      <Panel>
        <Loading />
      </Panel>
    );
  return (
    <section class="panel" aria-label={table.name}>
      <DataTable
        title={table.name}
        label={`${table.name}: one row per ${table.row.replace(/^(an?|one) /, "")}`}
        note={`rows; each is ${table.row}`}
        name={table.name}
        rows={rows}
        of={table.of}
        columns={columns}
        rowKey={String}
        rowTestid="table-row"
        compact
      />
      {table.rows < table.of && (
        <div class="pfoot warn">
          {count(table.of - table.rows)} rows are not in this report. Open the recording to see them.
        </div>
      )}
      {table.dropped > 0 && <div class="pfoot warn">{count(table.dropped)} rows were dropped while recording.</div>}
    </section>
  );
}
