import type { RunGroup, RunList, RunState } from "../../api/server.gen";
import { RUN_STATES } from "../../api/states.gen";
import { useParam } from "../../model/page/hooks";
import { chipQuery, chipText, MAIN_CHIPS, runsAnswer, WORKER_LOST } from "../../model/run-groups";
import { count, counted } from "../../model/text/format";
import { Empty, Panel } from "../../widgets/basics";
import { Pick, Search } from "../../widgets/controls/inputs";
import { Glyph, Icon, type PillState, STATE_PILLS } from "../../widgets/icon";
import { ActionButton } from "../parts/action-button";
import { connectSnippet } from "../parts/connect-snippet";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";
import { Loaded } from "../shell/loaded";
import { useLive, usePages } from "../shell/resources";
import { useDebouncedText } from "../shell/use-time";
import { groupKey, RunRows } from "./run-rows";

const PERIODS = [
  ["1 day", "last 24 hours"],
  ["7 days", "last 7 days"],
  ["30 days", "last 30 days"],
  ["90 days", "last 90 days"],
  ["all", "all time"],
] as const;

const PAGE_SIZE = 50;

/** The runs of the account by name, with filters. Filters are part of the URL; the server applies them and returns pages. */
export function Runs() {
  const { api, account } = useTeam();
  const [search, setSearch] = useParam("q");
  const [state, setState] = useParam("state");
  const [period, setPeriod] = useParam("since", "7 days");
  const [user, setUser] = useParam("user");
  const [tag, setTag] = useParam("tag");
  const settled = useDebouncedText(search);
  const query = { ...chipQuery(state), search: settled, since: period, user, tag };
  const key = [account, settled, state, period, user, tag];
  const first = useLive<RunList>(null, () => api.get("runs", { ...query, limit: PAGE_SIZE }), key, 3000);
  const { items, more, load } = usePages<RunGroup, RunList>(
    first,
    (cursor) => api.get("runs", { ...query, limit: PAGE_SIZE, cursor }),
    groupKey,
    key,
  );
  const periodText = PERIODS.find(([id]) => id === period)?.[1] ?? period;
  const filters = [
    settled && `text “${settled}”`,
    state && `state ${chipText(state)}`,
    user && `user ${user}`,
    tag && `tag ${tag}`,
  ].filter((text) => typeof text === "string" && text !== "");
  const clear = () => {
    for (const set of [setSearch, setState, setUser, setTag]) set("");
    setPeriod("all");
  };
  return (
    <main class="wide" data-testid="page-runs">
      <div class="viewhead">
        <h1>Runs</h1>
        <span class="note">{periodText}</span>
        <div class="right">
          <Link to={[account, "compare"]} class="btn sm" testid="compare-link">
            Compare runs
          </Link>
        </div>
      </div>
      {first.value && filters.length === 0 && <Answer groups={items} list={first.value} />}
      <div class="runbar">
        <Chips list={first.value} state={state} onChange={setState} />
        <div class="right">
          {user && (
            <button type="button" class="chip" onClick={() => setUser("")}>
              User: {user} <Icon name="x" />
            </button>
          )}
          {tag && (
            <button type="button" class="chip" onClick={() => setTag("")}>
              Tag: {tag} <Icon name="x" />
            </button>
          )}
          <Search label="Name, user, host" value={search} onInput={setSearch} testid="run-search" />
          <Pick label="Period" options={PERIODS} value={period} onChange={setPeriod} testid="period" />
        </div>
      </div>
      <Panel>
        <Loaded from={first} lines={8}>
          {(list) =>
            items.length === 0 ? (
              <NoRuns filters={filters} period={period === "all" ? "" : periodText} clear={clear} />
            ) : (
              <>
                <RunRows groups={items} query={query} onTag={setTag} onUser={setUser} />
                <div class="pfoot">
                  <span>
                    {more ? `${count(items.length)} names shown` : counted(items.length, "name")},{" "}
                    {counted(selectedRuns(list, state), "run")}
                  </span>
                  <span class="hide-n">
                    Dot: one run, higher is slower. Band: middle half of finished runs. Cross: failed, below the scale.
                    Ring: a worker was lost.
                  </span>
                  {more && (
                    <ActionButton class="sm push" run={load} testid="load-more">
                      Load {PAGE_SIZE} more
                    </ActionButton>
                  )}
                </div>
              </>
            )
          }
        </Loaded>
      </Panel>
    </main>
  );
}

const allRuns = (list: RunList) => Object.values(list.states).reduce((a, b) => a + b, 0);

/** Return the number of runs that a chip selects. */
function selectedRuns(list: RunList, chip: string): number {
  if (chip === WORKER_LOST) return list.lost_workers;
  return chip ? (list.states[chip] ?? 0) : allRuns(list);
}

interface NoRunsProps {
  filters: readonly string[];
  /** Empty for all time. */
  period: string;
  clear: () => void;
}

function NoRuns({ filters, period, clear }: NoRunsProps) {
  if (filters.length > 0)
    return (
      <Empty title="No runs match">
        Filters: {[...filters, period].filter(Boolean).join(", ")}.{" "}
        <button type="button" class="link" onClick={clear} data-testid="clear-filters">
          Clear filters
        </button>
      </Empty>
    );
  return (
    <Empty title={period ? `No runs in the ${period}` : "No runs recorded yet"} snippet={connectSnippet()}>
      {period && (
        <>
          <button type="button" class="link" onClick={clear} data-testid="clear-filters">
            Show all time
          </button>
          .{" "}
        </>
      )}
      To record a cluster, run this in a notebook or script that has a Dask client:
    </Empty>
  );
}

/** What is most worth knowing, in a sentence. */
function Answer({ groups, list }: { groups: readonly RunGroup[]; list: RunList }) {
  const { name, fact, slower } = runsAnswer(groups);
  const active = (list.states.running ?? 0) + (list.states.idle ?? 0);
  const failed = list.states.failed ?? 0;
  if (groups.length === 0) return null;
  const rest = [
    !fact && (failed > 0 ? `${count(failed)} failed` : "None failed"),
    active > 0 && (active === 1 ? "1 run is active" : `${count(active)} runs are active`),
  ].filter(Boolean);
  return (
    <p class="answer lead" data-testid="answer">
      <b>
        {fact ? (
          <>
            <code>{name}</code> {fact}
          </>
        ) : (
          `${counted(allRuns(list), "run")}.`
        )}
      </b>{" "}
      <span>
        {rest.join("; ")}
        {slower.length > 0 && (
          <>
            {rest.length > 0 && "; "}
            <code>{slower[0].name}</code> took {slower[0].share} longer than usual
          </>
        )}
        {(rest.length > 0 || slower.length > 0) && "."}
      </span>
    </p>
  );
}

interface ChipsProps {
  /** Null while it is not known: then chips have no numbers. */
  list: RunList | null;
  state: string;
  onChange: (state: string) => void;
}

/** Buttons that select runs by state, with their numbers. Rare states have one only if a run is in them. */
function Chips({ list, state, onChange }: ChipsProps) {
  const { account } = useTeam();
  const rare = RUN_STATES.filter((id) => !MAIN_CHIPS.includes(id) && (list?.states[id] || id === state));
  return (
    <div class="chiprow" role="group" aria-label="State">
      {["", ...MAIN_CHIPS, ...rare, WORKER_LOST].map((id) => {
        const glyph: PillState | null = id === WORKER_LOST ? "lost" : id ? STATE_PILLS[id as RunState] : null;
        return (
          <button
            type="button"
            key={id}
            class={`chip ${glyph ?? ""}`}
            aria-pressed={state === id}
            title={id === WORKER_LOST ? "Runs of any state. They also count there." : undefined}
            onClick={() => onChange(id)}
            data-testid={`state-${id || "all"}`}
          >
            {glyph && <Glyph state={glyph} />}
            {chipText(id)}
            {list && <em>{count(selectedRuns(list, id))}</em>}
          </button>
        );
      })}
      <Link class="chip" to={[account, "reports"]} testid="nav-reports">
        <Icon name="report" /> Reports
      </Link>
    </div>
  );
}
