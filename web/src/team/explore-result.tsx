import { useMemo } from "preact/hooks";
import type { SqlAnswer } from "../api/server.gen";
import { quantity } from "../model/format";
import { readText, type SqlRow, sqlBars, sqlColumns } from "../model/sql";
import { BarRows } from "../widgets/bar-rows";
import { Empty, Panel } from "../widgets/basics";
import { DataTable } from "../widgets/table";

/** The rows of a query, as a chart where that makes sense, and as a table. */
export function ExploreResult({ answer }: { answer: SqlAnswer }) {
  const columns = useMemo(() => sqlColumns(answer), [answer]);
  const chart = useMemo(() => sqlBars(answer), [answer]);
  const places = useMemo(() => new Map(answer.rows.map((row, place) => [row as SqlRow, place])), [answer]);
  if (answer.rows.length === 0)
    return (
      <Panel class="mt" testid="sql-result">
        <Empty title="No rows">{readText(answer)}</Empty>
      </Panel>
    );
  return (
    <>
      {chart && (
        <Panel class="mt" title={chart.head} testid="sql-chart">
          <BarRows
            max={Math.max(...chart.bars.map((bar) => bar.value))}
            rows={chart.bars.map((bar, place) => ({
              key: String(place),
              name: <span title={bar.name}>{bar.name || "empty"}</span>,
              text: quantity(bar.value, ""),
              parts: [
                { key: "value", value: bar.value, class: "a-cpu", title: `${bar.name}: ${quantity(bar.value, "")}` },
              ],
            }))}
          />
        </Panel>
      )}
      <Panel class="mt" testid="sql-result">
        <DataTable<SqlRow>
          name="sql"
          label="Rows of the query"
          title="Rows"
          note={
            <>
              {answer.is_cut && "(there are more) "}
              {readText(answer)}
            </>
          }
          rows={answer.rows}
          columns={columns}
          rowKey={(row) => String(places.get(row))}
          rowTestid="sql-row"
        />
      </Panel>
    </>
  );
}
