import { useMemo } from "preact/hooks";
import type { Cluster, Day, Overview, WeekCell } from "../api/server.gen";
import { count, counted, dollars, percent } from "../model/format";
import { useParam } from "../model/hooks";
import { Empty, Panel } from "../widgets/basics";
import { Icon } from "../widgets/icon";
import { ClusterTable } from "./clusters";
import { useLive, useTeam } from "./context";
import { Ago, Link, Loaded, seconds, Spark } from "./parts";

/** Midnight where the viewer is. */
function midnight(): string {
  const now = new Date();
  now.setHours(0, 0, 0, 0);
  return now.toISOString();
}

/** What runs now, what failed today, what burns money; then how much there was of everything. */
export function Home() {
  const { api, account } = useTeam();
  const overview = useLive<Overview>(null, () => api.get("overview", { failed_since: midnight(), days: 14 }), [account], 5000);
  return (
    <main class="wide" data-testid="page-home">
      <Loaded from={overview} lines={8}>
        {(o) => (Object.values(o.states).reduce((a, b) => a + b, 0) === 0 ? <Nothing /> : <Page o={o} />)}
      </Loaded>
    </main>
  );
}

export function connectSnippet(): string {
  return `import dask, daskscope.analytics\ndask.config.set({"daskscope.server": "${location.origin}${document.querySelector('meta[name="daskscope-root"]')?.getAttribute("content") ?? ""}"})\ndaskscope.analytics.register()`;
}

/** Nothing runs or could: all that is left asks for what no worker has. */
function stuck(c: Cluster): boolean {
  return c.tasks_unrunnable > 0 && c.tasks_processing === 0 && c.tasks_queued === 0;
}

function Nothing() {
  const { me } = useTeam();
  return (
    <Panel>
      <Empty title="No cluster has been recorded yet" snippet={connectSnippet()}>
        In a notebook or script that has a Dask client:{me.kind === "session" && " log in first with daskscope login."}
      </Empty>
    </Panel>
  );
}

function Page({ o }: { o: Overview }) {
  const { account } = useTeam();
  const live = (o.states.running ?? 0) + (o.states.idle ?? 0);
  const idle = o.states.idle ?? 0;
  const failed = o.n_failed === 0 ? "Nothing failed since midnight" : <Link to={[account, "errors"]}>{counted(o.n_failed, "computation")} failed since midnight</Link>;
  const costly = idle > 0 && <>; <Link to={[account, "clusters"]} params={{ state: "idle", since: "all" }}>{idle === 1 ? "1 is idle and costs" : `${count(idle)} are idle and cost`} {dollars(o.idle_per_hour)} an hour</Link></>;
  return (
    <>
      <p class="answer" style="margin:0" data-testid="answer">
        <b>{live === 0 ? "No cluster is up." : live === 1 ? "1 cluster is up." : `${count(live)} clusters are up.`}</b> <span>{failed}{costly}.</span>
      </p>
      <div class="stack">
        <div class="cols">
          <Now title="Running now" icon="stream" tone="--st-running" note={`${count(o.states.running ?? 0)} computing, ${count(o.states.idle ?? 0)} idle`} empty="Nothing is being computed." testid="running">
            {o.running.map(({ cluster: c, done, total }) => (
              <li key={c.id}>
                <b><ClusterLink cluster={c} /></b>
                <span class={stuck(c) ? "bad" : ""}>{stuck(c) ? "stuck" : total > 0 ? percent(done / total) : ""}</span>
                <small title={c.reason}>{c.user} · {total > 0 && !stuck(c) ? `${count(done)} of ${counted(total, "task")}` : c.reason}</small>
                <small>{total > 0 && <span class="mbar" style="width:120px" role="img" aria-label={`${percent(done / total)} done`}><i style={{ width: `${(100 * done) / total}%`, background: "var(--accent-fill)" }} /></span>}</small>
              </li>
            ))}
          </Now>
          <Now title="Failed since midnight" icon="errors" tone="--st-erred" note={`${count(o.n_failed)} of ${counted(o.n_finished, "computation")}`} empty="Nothing failed." testid="failed">
            {o.failed.map((c) => (
              <li key={`${c.cluster_id} ${c.id}`}>
                <b><Link to={[account, "clusters", c.cluster_id, "computations", c.id]}>{c.cluster_name || c.cluster_id}</Link></b>
                <span class="muted"><Ago at={c.stop ?? c.start} /></span>
                <small>{c.state === "lost" ? "lost with its cluster" : `${count(c.n_errors)} of ${counted(c.n_tasks, "task")} failed`}</small>
                <small>{c.user}</small>
              </li>
            ))}
          </Now>
          <Now title="Idle and billed" icon="coin" tone="--st-warn" note={`${dollars(o.idle_per_hour)} an hour, est.`} empty="No cluster stands idle." testid="idle">
            {o.idle.map((c) => (
              <li key={c.id}>
                <b><ClusterLink cluster={c} /></b>
                <span>{dollars(c.cost.per_hour)} <span class="faint">an hour</span></span>
                <small>{c.user} · idle {seconds(c.idle_seconds)}</small>
                <small>{dollars(c.cost.total)} so far</small>
              </li>
            ))}
          </Now>
        </div>
        <Totals days={o.days} />
        <Heat weeks={o.weeks} />
        <ClusterTable name="home" />
        {o.reports.length > 0 && (
          <Panel title="Recent reports" right={<Link to={[o.reports[0].account, "reports"]}>All reports</Link>}>
            <ul class="plain">
              {o.reports.map((r) => (
                <li key={r.id}>
                  <Link to={[r.account, "reports", String(r.id)]}>{r.title || r.filename}</Link> <span class="faint">{r.user} · <Ago at={r.created} /> · {r.private ? "members" : "link"}</span>
                </li>
              ))}
            </ul>
          </Panel>
        )}
      </div>
    </>
  );
}

function ClusterLink({ cluster: c }: { cluster: Cluster }) {
  return <Link to={[c.account, "clusters", c.id]}>{c.name || c.id}</Link>;
}

function Now({ title, icon, tone, note, empty, children, testid }: { title: string; icon: "stream" | "errors" | "coin"; tone: string; note: string; empty: string; children: preact.ComponentChildren[]; testid: string }) {
  return (
    <section class="panel now c4" aria-label={title} data-testid={`now-${testid}`}>
      <div class="phead">
        <h2><span style={{ color: `var(${tone})` }}><Icon name={icon} /></span> {title}</h2>
        <span class="count">{note}</span>
      </div>
      {children.length > 0 ? <ul>{children}</ul> : <p class="callout">{empty}</p>}
    </section>
  );
}

/** The last seven days, and how they compare to the seven before. */
function Totals({ days }: { days: readonly Day[] }) {
  const { account } = useTeam();
  const half = Math.floor(days.length / 2);
  const sum = (part: readonly Day[], pick: (day: Day) => number) => part.reduce((total, day) => total + pick(day), 0);
  const line = (id: string, label: string, pick: (day: Day) => number, text: (n: number) => string, note: (now: number) => string) => {
    const now = sum(days.slice(half), pick);
    return { id, label, value: text(now), note: note(now), values: days.map(pick) };
  };
  const change = (pick: (day: Day) => number) => {
    const [before, now] = [sum(days.slice(0, half), pick), sum(days.slice(half), pick)];
    return before > 0 ? `${now >= before ? "+" : "−"}${percent(Math.abs(now / before - 1))} on the 7 before` : "none in the 7 before";
  };
  const threads = sum(days.slice(half), (d) => d.thread_seconds);
  const cost = sum(days.slice(half), (d) => d.cost);
  const lines = [
    line("thread", "Cluster time, 7 days", (d) => d.thread_seconds, seconds, () => change((d) => d.thread_seconds)),
    line("compute", "Compute time, 7 days", (d) => d.compute_seconds, seconds, (now) => (threads > 0 ? `${percent(now / threads)} of thread time` : "no threads")),
    line("tasks", "Tasks, 7 days", (d) => d.tasks, count, () => change((d) => d.tasks)),
    line("cost", "Est. cost, 7 days", (d) => d.cost, dollars, () => change((d) => d.cost)),
    line("idle", "Est. idle cost, 7 days", (d) => d.cost_idle, dollars, (now) => (cost > 0 ? `${percent(now / cost)} of all cost` : "nothing was paid for")),
  ];
  return (
    <dl class="panel metrics eq" data-testid="totals">
      {lines.map((l) => (
        <div class="metric" key={l.id}>
          <dt>{l.label}</dt>
          <dd class="v" data-testid={`total-${l.id}`}><Link to={[account, "usage"]} params={{ since: "7 days" }}>{l.value}</Link></dd>
          <dd class="s" title={l.note}>{l.note}</dd>
          <dd class="trend"><Spark values={l.values} label={`${l.label}, last ${days.length} days`} width={74} height={26} /></dd>
        </div>
      ))}
    </dl>
  );
}

/** Compute time by member and week; a cell chooses whose clusters are listed below. */
function Heat({ weeks }: { weeks: readonly WeekCell[] }) {
  const [user, setUser] = useParam("user");
  const { users, columns, most, at } = useMemo(() => {
    const byUser = new Map<string, number>();
    for (const w of weeks) byUser.set(w.user, (byUser.get(w.user) ?? 0) + w.compute_seconds);
    const columns = [...new Set(weeks.map((w) => w.week))].sort();
    const at = new Map(weeks.map((w) => [`${w.user}\0${w.week}`, w.compute_seconds]));
    return { users: [...byUser].sort((a, b) => b[1] - a[1]).map(([name]) => name), columns, most: Math.max(...weeks.map((w) => w.compute_seconds), 1e-9), at };
  }, [weeks]);
  if (users.length === 0) return null;
  const shown = users.slice(0, 12);
  return (
    <Panel title="Compute time by member and week" note={shown.length < users.length ? `${count(shown.length)} of ${count(users.length)} members` : undefined} right={user && <button type="button" class="btn sm" onClick={() => setUser("")}>Everybody</button>} testid="heat">
      <div class="scroll" tabIndex={0} role="region" aria-label="Compute time by member and week">
        <table class="heat">
          <thead>
            <tr>
              <th>Member</th>
              {columns.map((week) => <th key={week} class="num">{week.slice(5)}</th>)}
            </tr>
          </thead>
          <tbody>
            {shown.map((name) => (
              <tr key={name} class={name === user ? "sel" : ""}>
                <th scope="row"><button type="button" class="link" aria-pressed={name === user} onClick={() => setUser(name === user ? "" : name)}>{name || "unknown"}</button></th>
                {columns.map((week) => {
                  const value = at.get(`${name}\0${week}`) ?? 0;
                  return (
                    <td key={week} title={`${name}, week of ${week}: ${seconds(value)}`}>
                      <button type="button" class="cell" style={{ "--share": String(Math.sqrt(value / most)) }} aria-label={`${name}, week of ${week}: ${seconds(value)}`} onClick={() => setUser(name === user ? "" : name)}>
                        {value > 0 ? seconds(value).split(" ").slice(0, 2).join(" ") : ""}
                      </button>
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

