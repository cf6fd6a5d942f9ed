import type { Cluster, ClusterList } from "../../api/server.gen";
import { RUN_STATES } from "../../api/states.gen";
import { capital } from "../../model/activity";
import { useParam } from "../../model/page/hooks";
import { count } from "../../model/text/format";
import { Empty } from "../../widgets/basics";
import { Pick, Search } from "../../widgets/controls/inputs";
import { ColumnMenu } from "../../widgets/controls/popover";
import { Icon } from "../../widgets/icon";
import { ActionButton } from "../parts/action-button";
import { connectSnippet } from "../parts/connect-snippet";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";
import { LoadError, Loaded } from "../shell/loaded";
import { useLive, usePages } from "../shell/resources";
import { useDebouncedText } from "../shell/use-time";
import { COLUMNS } from "./cluster-columns";
import { ClusterRows } from "./cluster-rows";

const PERIODS = [
  ["1 day", "last 24 hours"],
  ["7 days", "last 7 days"],
  ["30 days", "last 30 days"],
  ["90 days", "last 90 days"],
  ["all", "all time"],
] as const;

const PAGE_SIZE = 100;

/** Clusters with filters. Filters are part of the URL; the server applies them and returns pages. */
export function ClusterTable({ name }: { name: string }) {
  const { api, account } = useTeam();
  const [search, setSearch] = useParam("q");
  const [state, setState] = useParam("state");
  const [period, setPeriod] = useParam("since", "7 days");
  const [user, setUser] = useParam("user");
  const [tag, setTag] = useParam("tag");
  const [hide, setHide] = useParam("hide", "time,started,software");
  const [sort, setSort] = useParam("sort", "-started");
  const settled = useDebouncedText(search);
  const query = {
    search: settled,
    state,
    since: period,
    user,
    tag,
    limit: PAGE_SIZE,
    busy: true,
    sort: sort.replace(/^-/, ""),
    up: !sort.startsWith("-"),
  };
  const key = [account, settled, state, period, user, tag, sort];
  const first = useLive<ClusterList>(null, () => api.get("clusters", query), key, 3000);
  const { items, pages, more, load } = usePages<Cluster, ClusterList>(
    first,
    (cursor) => api.get("clusters", { ...query, cursor }),
    (c) => c.id,
    key,
  );
  const busy: ClusterList["busy"] = Object.assign({}, ...pages.map((page) => page.busy).reverse());
  const hidden = new Set(hide.split(",").filter(Boolean));
  const shown = COLUMNS.filter((c) => !hidden.has(c.id));
  const filtered = Boolean(settled || state || user || tag);
  return (
    <section class="panel" aria-label="Clusters" data-testid={`clusters-${name}`}>
      <div class="filters">
        <Search label="Name, user, host" value={search} onInput={setSearch} testid="cluster-search" />
        <StateFilter states={first.value?.states ?? {}} state={state} onChange={setState} />
        <Pick label="Period" options={PERIODS} value={period} onChange={setPeriod} testid="period" />
        {user && (
          <button type="button" class="chip" onClick={() => setUser("")}>
            Owner: {user} <Icon name="x" />
          </button>
        )}
        {tag && (
          <button type="button" class="chip" onClick={() => setTag("")}>
            Tag: {tag} <Icon name="x" />
          </button>
        )}
        <div class="right">
          <span class="faint hide-n">
            {count(items.length)}
            {more ? "+" : ""} shown
          </span>
          <ColumnMenu columns={COLUMNS} hidden={hidden} onChange={(ids) => setHide([...ids].join(","))} />
        </div>
      </div>
      {first.error && <LoadError error={first.error} at={first.value ? first.at : 0} retry={first.reload} />}
      <Loaded from={{ ...first, error: null }}>
        {() =>
          items.length === 0 ? (
            <NoClusters
              filtered={filtered}
              period={period}
              clear={() => {
                setSearch("");
                setState("");
                setUser("");
                setTag("");
                setPeriod("all");
              }}
            />
          ) : (
            <ClusterRows
              clusters={items}
              columns={shown}
              busy={busy}
              sort={sort}
              onSort={setSort}
              onTag={setTag}
              onUser={setUser}
            />
          )
        }
      </Loaded>
      <div class="pfoot">
        <span>Costs are estimates based on your prices.</span>
        {more && (
          <ActionButton class="sm push" run={load} testid="load-more">
            Load {PAGE_SIZE} more
          </ActionButton>
        )}
      </div>
    </section>
  );
}

function NoClusters({ filtered, period, clear }: { filtered: boolean; period: string; clear: () => void }) {
  if (filtered || period !== "all") {
    return (
      <Empty title={filtered ? "No clusters match" : "No clusters in this period"}>
        {filtered ? "Change or clear the filters." : "Choose a longer period."}{" "}
        <button type="button" class="link" onClick={clear}>
          Show all
        </button>
      </Empty>
    );
  }
  return (
    <Empty title="No clusters recorded yet" snippet={connectSnippet()}>
      Run this in a notebook or script that has a Dask client:
    </Empty>
  );
}

interface Props {
  /** Number of clusters by state. */
  states: Readonly<Record<string, number>>;
  state: string;
  onChange: (state: string) => void;
}

/** Buttons that filter clusters by state, for states that any cluster is in. */
function StateFilter({ states, state, onChange }: Props) {
  const total = Object.values(states).reduce((a, b) => a + b, 0);
  return (
    <div class="seg" role="group" aria-label="State">
      <button type="button" aria-pressed={state === ""} onClick={() => onChange("")}>
        All<em>{count(total)}</em>
      </button>
      {RUN_STATES.filter((id) => states[id] || id === state).map((id) => (
        <button
          type="button"
          key={id}
          aria-pressed={state === id}
          onClick={() => onChange(id)}
          data-testid={`state-${id}`}
        >
          {capital(id)}
          <em>{count(states[id] ?? 0)}</em>
        </button>
      ))}
    </div>
  );
}

export function Clusters() {
  const { account } = useTeam();
  return (
    <main class="wide" data-testid="page-clusters">
      <div class="viewhead">
        <h1>Clusters</h1>
        <div class="right">
          <Link to={[account, "compare"]} class="btn sm" testid="compare-link">
            Compare runs
          </Link>
        </div>
      </div>
      <ClusterTable name="all" />
    </main>
  );
}
