import type { Overview, RunList } from "../../api/server.gen";
import { count, counted, money } from "../../model/text/format";
import { Empty, Panel } from "../../widgets/basics";
import { connectSnippet } from "../parts/connect-snippet";
import { Ago } from "../parts/time-text";
import { RunRows } from "../runs/run-rows";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";
import { Loaded } from "../shell/loaded";
import { useLive } from "../shell/resources";
import { WeekHeatmap } from "./home-heatmap";
import { FailedPanel, IdlePanel, RunningPanel } from "./home-now";
import { Totals } from "./home-totals";

/** Midnight in the time zone of the browser. */
function midnight(): string {
  const now = new Date();
  now.setHours(0, 0, 0, 0);
  return now.toISOString();
}

/** What runs now, what failed today, idle clusters that cost money, and totals. */
export function Home() {
  const { api, account } = useTeam();
  const overview = useLive<Overview>(
    null,
    () => api.get("overview", { failed_since: midnight(), days: 14 }),
    [account],
    5000,
  );
  return (
    <main class="wide" data-testid="page-home">
      <Loaded from={overview} lines={8}>
        {(o) => (Object.values(o.states).reduce((a, b) => a + b, 0) === 0 ? <FirstSteps /> : <Dashboard o={o} />)}
      </Loaded>
    </main>
  );
}

function FirstSteps() {
  const { me } = useTeam();
  return (
    <Panel>
      <Empty title="No clusters recorded yet" snippet={connectSnippet()}>
        Run this in a notebook or script that has a Dask client.
        {me.kind === "session" && " Sign in first with daskscope login."}
      </Empty>
    </Panel>
  );
}

/** Rows on this page, chosen from so many names. */
const MAX_ROWS = 8;
const CANDIDATES = 24;
const QUERY = { since: "7 days" };

/** The runs of the last days by name: the ones that run or failed first. */
function RecentRuns() {
  const { api, account } = useTeam();
  const runs = useLive<RunList>(null, () => api.get("runs", { ...QUERY, limit: CANDIDATES }), [account], 5000);
  const isUrgent = (state: string) => state === "running" || state === "failed";
  return (
    <Panel title="Runs" note="last 7 days" right={<Link to={[account, "runs"]}>All runs</Link>} testid="home-runs">
      <Loaded from={runs} lines={8}>
        {({ items }) => {
          const urgent = items.filter((group) => isUrgent(group.newest.state));
          const others = items.filter((group) => !isUrgent(group.newest.state));
          const shown = [...urgent, ...others].slice(0, MAX_ROWS);
          if (shown.length === 0) return <p class="callout">No runs in the last 7 days.</p>;
          return <RunRows groups={shown} query={QUERY} />;
        }}
      </Loaded>
    </Panel>
  );
}

function Dashboard({ o }: { o: Overview }) {
  const { account } = useTeam();
  const live = (o.states.running ?? 0) + (o.states.idle ?? 0);
  const idle = o.states.idle ?? 0;
  const up = live === 0 ? "No clusters are up" : live === 1 ? "1 cluster is up" : `${count(live)} clusters are up`;
  const costly = idle > 0 && (
    <>
      ;{" "}
      <Link to={[account, "runs"]} params={{ state: "idle", since: "all" }}>
        {idle === 1 ? "1 is idle and costs" : `${count(idle)} are idle and cost`} {money(o.idle_per_hour)} per hour
      </Link>
    </>
  );
  return (
    <>
      <p class="answer" style="margin:0" data-testid="answer">
        <b>
          {o.n_failed > 0 ? (
            <Link to={[account, "errors"]}>{counted(o.n_failed, "computation")} failed since midnight.</Link>
          ) : (
            `${up}.`
          )}
        </b>{" "}
        <span>
          {o.n_failed > 0 ? up : "No failures since midnight"}
          {costly}.
        </span>
      </p>
      <div class="stack">
        <div class="cols">
          <RunningPanel o={o} />
          <FailedPanel o={o} />
          <IdlePanel o={o} />
        </div>
        <Totals days={o.days} />
        <WeekHeatmap weeks={o.weeks} />
        <RecentRuns />
        {o.reports.length > 0 && (
          <Panel title="Recent reports" right={<Link to={[o.reports[0].account, "reports"]}>All reports</Link>}>
            <ul class="plain">
              {o.reports.map((r) => (
                <li key={r.id}>
                  <Link to={[r.account, "reports", String(r.id)]}>{r.title || r.filename}</Link>{" "}
                  <span class="faint">
                    {r.user} · <Ago at={r.created} /> · {r.private ? "members only" : "shared by link"}
                  </span>
                </li>
              ))}
            </ul>
          </Panel>
        )}
      </div>
    </>
  );
}
