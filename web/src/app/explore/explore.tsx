import { useEffect, useMemo, useState } from "preact/hooks";
import { ApiError } from "../../api/server";
import type { SqlAnswer, SqlTables } from "../../api/server.gen";
import { useParam } from "../../model/page/hooks";
import { quantity } from "../../model/text/format";
import { EXAMPLES, readText, type SqlRow, sqlBars, sqlColumns } from "../../model/text/sql";
import { BarRows } from "../../widgets/bars/bar-rows";
import { Empty, Failed, Loading, Panel, ViewHead } from "../../widgets/basics";
import { Pick } from "../../widgets/controls/inputs";
import { DataTable } from "../../widgets/table/table";
import { useTeam } from "../shell/context";
import { Loaded } from "../shell/loaded";
import { useResource } from "../shell/resources";
import { SavedQueries } from "./saved-queries";

const PERIODS = [
  ["1", "of the last day"],
  ["7", "of the last 7 days"],
  ["30", "of the last 30 days"],
  ["365", "of the last year"],
] as const;

interface Answered {
  answer: SqlAnswer | null;
  problem: string;
  busy: boolean;
}

/** Ask questions about all recorded tables in SQL. The URL has the query. */
export function Explore() {
  const { api } = useTeam();
  const [asked, setAsked] = useParam("q");
  const [days, setDays] = useParam("days");
  const [text, setText] = useState(asked || EXAMPLES[0][1]);
  const [{ answer, problem, busy }, set] = useState<Answered>({ answer: null, problem: "", busy: false });
  useEffect(() => {
    if (!asked) return;
    let current = true;
    setText(asked);
    set((now) => ({ ...now, busy: true }));
    api.send<SqlAnswer>("POST", "sql", { query: asked, days: Number(days) || 0 }).then(
      (found) => current && set({ answer: found, problem: "", busy: false }),
      (error: unknown) =>
        current &&
        set({ answer: null, problem: error instanceof ApiError ? error.message : String(error), busy: false }),
    );
    return () => {
      current = false;
    };
  }, [asked, days]);
  const run = () => {
    // The same query again: rows may have arrived meanwhile.
    if (text === asked) setAsked("");
    setAsked(text);
  };
  return (
    <main class="wide" data-testid="page-explore">
      <ViewHead title="Explore" note="SQL over all recorded tables of this account">
        <Pick label="Clusters" options={PERIODS} value={days} all="of all time" onChange={setDays} />
      </ViewHead>
      <div class="cols">
        <div class="c8">
          <Panel
            foot={
              <>
                <SavedQueries query={text} onPick={setText} />
                <button
                  type="button"
                  class="btn primary push"
                  disabled={busy || !text.trim()}
                  onClick={run}
                  data-testid="run-sql"
                >
                  {busy ? "Running" : "Run"} <kbd>Ctrl Enter</kbd>
                </button>
              </>
            }
          >
            <textarea
              class="sql"
              aria-label="SQL query"
              spellcheck={false}
              rows={Math.min(20, Math.max(5, text.split("\n").length + 1))}
              value={text}
              data-testid="sql"
              onInput={(e) => setText(e.currentTarget.value)}
              onKeyDown={(e) => {
                if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
                  e.preventDefault();
                  run();
                }
              }}
            />
          </Panel>
          {problem && <Failed message={problem} />}
          {busy && !answer && <Loading />}
          {answer && <ExploreResult answer={answer} />}
          {!asked && !problem && <Examples onPick={setAsked} />}
        </div>
        <div class="c4">
          <ExploreTables />
        </div>
      </div>
    </main>
  );
}

/** Questions to begin with. */
function Examples({ onPick }: { onPick: (query: string) => void }) {
  return (
    <Panel title="Examples" note="run one, then change it" class="mt" testid="sql-examples">
      <ul class="sqlexamples">
        {EXAMPLES.map(([name, query]) => (
          <li key={name}>
            <button type="button" class="link" onClick={() => onPick(query)}>
              {name}
            </button>
            <code class="cut" title={query}>
              {query}
            </code>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** The tables that a query can read, with their columns. */
function ExploreTables() {
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

/** The rows of a query, as a chart where that makes sense, and as a table. */
function ExploreResult({ answer }: { answer: SqlAnswer }) {
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
