import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../api/server";
import type { SqlAnswer } from "../api/server.gen";
import { useParam } from "../model/hooks";
import { EXAMPLES } from "../model/sql";
import { Failed, Loading, Panel, ViewHead } from "../widgets/basics";
import { Pick } from "../widgets/inputs";
import { useTeam } from "./context";
import { ExploreResult } from "./explore-result";
import { ExploreTables } from "./explore-tables";
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
        </div>
        <div class="c4">
          <ExploreTables />
        </div>
      </div>
    </main>
  );
}
