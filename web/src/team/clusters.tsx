import type { Cluster, ClusterList, ClusterState } from "../api/server.gen";
import { count, dollars, nbytes, nbytesOf } from "../model/format";
import { useParam } from "../model/hooks";
import { Empty, Pick, Search } from "../widgets/basics";
import { ColumnMenu } from "../widgets/column-menu";
import { Icon } from "../widgets/icon";
import { useLive, usePages, useSettledText, useTeam } from "./context";
import { connectSnippet } from "./home";
import { Act, Ago, ClusterPill, isLive, Link, Loaded, Person, seconds, Spark, Trouble } from "./parts";

const PERIODS = [["1 day", "last day"], ["7 days", "last 7 days"], ["30 days", "last 30 days"], ["90 days", "last 90 days"], ["all", "all time"]] as const;
const STATES: readonly (readonly [ClusterState, string])[] = [["running", "Running"], ["idle", "Idle"], ["finished", "Finished"], ["lost", "Lost"]];
const STEP = 100;

export function Clusters() {
  return (
    <main class="wide" data-testid="page-clusters">
      <div class="viewhead"><h1>Clusters</h1></div>
      <ClusterTable name="all" />
    </main>
  );
}

interface Col {
  id: string;
  head: string;
  num?: boolean;
  /** The server's word for it, where it can sort by it. */
  sort?: string;
  cell: (c: Cluster, busy: readonly number[]) => preact.ComponentChildren;
}

const COLUMNS: readonly Col[] = [
  { id: "state", head: "State", cell: (c) => <ClusterPill cluster={c} /> },
  { id: "user", head: "Owner", cell: (c) => <Person name={c.user} /> },
  { id: "workers", head: "Workers", num: true, sort: "workers", cell: (c) => <Had live={isLive(c)} now={c.workers} most={c.peak_workers} /> },
  { id: "threads", head: "Threads", num: true, sort: "threads", cell: (c) => <Had live={isLive(c)} now={c.threads} most={c.peak_threads} /> },
  { id: "memory", head: "Memory", cell: (c) => <MemoryCell cluster={c} /> },
  { id: "tasks", head: "Tasks", num: true, sort: "tasks", cell: (c) => <span class={c.n_tasks ? "" : "zero"}>{count(c.n_tasks)}</span> },
  { id: "exceptions", head: "Exceptions", num: true, sort: "exceptions", cell: (c) => <span class={c.n_exceptions ? "bad" : "zero"}>{count(c.n_exceptions)}</span> },
  { id: "busy", head: "Busy threads", cell: (c, busy) => <Busy cluster={c} shares={busy} /> },
  { id: "now", head: "Cost now", num: true, cell: (c) => (c.cost.per_hour > 0 ? `${dollars(c.cost.per_hour)}/h` : "") },
  { id: "cost", head: "Est. cost", num: true, cell: (c) => <span title={c.cost.formula}>{dollars(c.cost.total)}</span> },
  { id: "age", head: "Age", num: true, cell: (c) => seconds(c.duration) },
  { id: "time", head: "Cluster time", num: true, sort: "cluster_time", cell: (c) => <span title="threads × time they were there">{seconds(c.thread_seconds)}</span> },
  { id: "started", head: "Started", num: true, sort: "started", cell: (c) => <Ago at={c.start} /> },
  { id: "seen", head: "Last seen", num: true, sort: "last_seen", cell: (c) => <Ago at={c.last_seen} /> },
  { id: "software", head: "Software", cell: (c) => <span class="faint">{c.versions.distributed ? `distributed ${c.versions.distributed}` : ""}</span> },
];

/** The share of threads that was busy in the last hour of its life; one scale for the whole column. */
function Busy({ cluster: c, shares }: { cluster: Cluster; shares: readonly number[] }) {
  if (shares.length < 2 || c.thread_seconds <= 0) return null;
  const tone = { running: "var(--st-running)", idle: "var(--text-3)", finished: "var(--text-3)", lost: "var(--st-lost)" }[c.state];
  const mean = shares.reduce((a, b) => a + b, 0) / shares.length;
  return <Spark values={shares} most={1} tone={tone} label={`${Math.round(mean * 100)} percent of its threads busy`} />;
}

/** What a cluster has, or, once it is over, the most it had. */
function Had({ live, now, most }: { live: boolean; now: number; most: number }) {
  if (live) return <>{count(now)}</>;
  return <span class="faint" title="the most it had">{most > 0 ? count(most) : ""}</span>;
}

function MemoryCell({ cluster: c }: { cluster: Cluster }) {
  if (c.memory_limit <= 0) return <span class="faint">{c.memory ? nbytes(c.memory) : ""}</span>;
  if (!isLive(c)) return <span class="faint" title="the most its workers could use">{nbytes(c.memory_limit)}</span>;
  const share = Math.min(1, c.memory / c.memory_limit);
  const [used, limit] = nbytesOf(c.memory, c.memory_limit);
  return (
    <>
      <span class="mbar" role="img" aria-label={`${Math.round(share * 100)} percent`}><i class={share > 0.9 ? "hi" : ""} style={{ width: `${share * 100}%` }} /></span>
      <span class="sub">{used} of {limit}</span>
    </>
  );
}

function Head({ col, sort, onSort }: { col: Col; sort: string; onSort: (sort: string) => void }) {
  const by = col.sort;
  if (!by) return <th class={col.num ? "num" : ""}>{col.head}</th>;
  const now = sort === `-${by}` ? "descending" : sort === by ? "ascending" : undefined;
  return (
    <th class={col.num ? "num" : ""} aria-sort={now}>
      <button type="button" onClick={() => onSort(now === "descending" ? by : `-${by}`)} data-testid={`sort-${col.id}`}>{col.head}{now && <Icon name={now === "descending" ? "chev" : "up"} />}</button>
    </th>
  );
}

/** Clusters with filters that live in the address; filtered by the server, then cut into pages. */
export function ClusterTable({ name }: { name: string }) {
  const { api, account } = useTeam();
  const [search, setSearch] = useParam("q");
  const [state, setState] = useParam("state");
  const [period, setPeriod] = useParam("since", "7 days");
  const [user, setUser] = useParam("user");
  const [tag, setTag] = useParam("tag");
  const [hide, setHide] = useParam("hide", "time,started,software");
  const [sort, setSort] = useParam("sort", "-started");
  const settled = useSettledText(search);
  const query = { search: settled, state, since: period, user, tag, limit: STEP, busy: true, sort: sort.replace(/^-/, ""), up: !sort.startsWith("-") };
  const key = [account, settled, state, period, user, tag, sort];
  const first = useLive<ClusterList>(null, () => api.get("clusters", query), key, 3000);
  const { items, pages, more, load } = usePages<Cluster, ClusterList>(first, (cursor) => api.get("clusters", { ...query, cursor }), (c) => c.id, key);
  const busy: ClusterList["busy"] = Object.assign({}, ...pages.map((page) => page.busy).reverse());
  const hidden = new Set(hide.split(",").filter(Boolean));
  const shown = COLUMNS.filter((c) => !hidden.has(c.id));
  const total = first.value ? Object.values(first.value.states).reduce((a, b) => a + b, 0) : 0;
  const filtered = Boolean(settled || state || user || tag);
  return (
    <section class="panel" aria-label="Clusters" data-testid={`clusters-${name}`}>
      <div class="filters">
        <Search label="Name, user, host" value={search} onInput={setSearch} testid="cluster-search" />
        <div class="seg" role="group" aria-label="State">
          <button type="button" aria-pressed={state === ""} onClick={() => setState("")}>All<em>{count(total)}</em></button>
          {STATES.map(([id, word]) => (
            <button type="button" key={id} aria-pressed={state === id} onClick={() => setState(id)} data-testid={`state-${id}`}>{word}<em>{count(first.value?.states[id] ?? 0)}</em></button>
          ))}
        </div>
        <Pick label="Period" options={PERIODS} value={period} onChange={setPeriod} testid="period" />
        {user && <button type="button" class="chip" onClick={() => setUser("")}>user: {user} <Icon name="x" /></button>}
        {tag && <button type="button" class="chip" onClick={() => setTag("")}>tag: {tag} <Icon name="x" /></button>}
        <div class="right">
          <span class="faint hide-n">{count(items.length)}{more ? " and more" : ""} shown</span>
          <ColumnMenu columns={COLUMNS} hidden={hidden} onChange={(ids) => setHide([...ids].join(","))} />
        </div>
      </div>
      {first.error && <Trouble error={first.error} at={first.value ? first.at : 0} retry={first.reload} />}
      <Loaded from={{ ...first, error: null }}>
        {() => (items.length === 0 ? <NoClusters filtered={filtered} period={period} clear={() => { setSearch(""); setState(""); setUser(""); setTag(""); setPeriod("all"); }} /> : (
          <div class="tablebox scroll" tabIndex={0} role="region" aria-label="Clusters">
            <table class="data">
              <thead>
                <tr>
                  <th>Cluster</th>
                  {shown.map((c) => <Head key={c.id} col={c} sort={sort} onSort={setSort} />)}
                </tr>
              </thead>
              <tbody>
                {items.map((c) => (
                  <tr key={c.id} data-testid="cluster-row">
                    <td>
                      <Link class="name" to={[account, "clusters", c.id]} title={c.id}>{c.name || c.id}</Link>
                      {c.tags.map((t) => <button type="button" class="sub tagbtn" key={t} onClick={() => setTag(t)}>{t}</button>)}
                    </td>
                    {shown.map((col) => <td key={col.id} class={col.num ? "num" : ""}>{col.id === "user" ? <button type="button" class="plainbtn" title={`Only ${c.user}`} onClick={() => setUser(c.user)}>{col.cell(c, [])}</button> : col.cell(c, busy[c.id] ?? [])}</td>)}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        ))}
      </Loaded>
      <div class="pfoot">
        <span>Costs are estimates from the price book</span>
        {more && <Act class="sm push" run={load} testid="load-more">Load {STEP} more</Act>}
      </div>
    </section>
  );
}

function NoClusters({ filtered, period, clear }: { filtered: boolean; period: string; clear: () => void }) {
  if (filtered || period !== "all") {
    return (
      <Empty title={filtered ? "No cluster matches" : "No cluster in this period"}>
        {filtered ? "The filters leave nothing over." : "Nothing was heard of any cluster in it."} <button type="button" class="link" onClick={clear}>Show all</button>
      </Empty>
    );
  }
  return <Empty title="No cluster has been recorded yet" snippet={connectSnippet()}>In a notebook or script that has a Dask client:</Empty>;
}
