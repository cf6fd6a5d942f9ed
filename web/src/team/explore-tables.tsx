import type { SqlTables } from "../api/server.gen";
import { Panel } from "../widgets/basics";
import { useTeam } from "./context";
import { Loaded } from "./loaded";
import { useResource } from "./resources";

/** The tables that a query can read, with their columns. */
export function ExploreTables() {
  const { api, account } = useTeam();
  const tables = useResource<SqlTables>(() => api.get("sql/tables"), [account]);
  return (
    <Panel title="Tables" note="one row of each table is …" testid="sql-tables">
      <Loaded from={tables}>
        {(found) => (
          <div class="sqltables">
            {found.tables.map((table) => (
              <details key={table.name}>
                <summary>
                  <code>{table.name}</code> <span class="faint">{table.row}</span>
                </summary>
                <dl>
                  {table.columns.map((column) => (
                    <div key={column.name}>
                      <dt>
                        <code>{column.name}</code> <span class="faint">{column.kind}</span>
                      </dt>
                      <dd>{column.meaning}</dd>
                    </div>
                  ))}
                </dl>
              </details>
            ))}
          </div>
        )}
      </Loaded>
    </Panel>
  );
}
