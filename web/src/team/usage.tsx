import type { Usage } from "../api/server.gen";
import { capital } from "../model/activity";
import { count, money, shares } from "../model/format";
import { useParam } from "../model/hooks";
import { Panel } from "../widgets/basics";
import { Pick, Seg } from "../widgets/inputs";
import { useTeam } from "./context";
import { Loaded } from "./loaded";
import { useResource } from "./resources";
import { seconds } from "./time-text";
import { UsageChart } from "./usage-chart";
import { BY, type By, UsageTable } from "./usage-table";

const PERIODS = [
  ["7 days", "7 days"],
  ["30 days", "30 days"],
  ["90 days", "90 days"],
  ["365 days", "year"],
] as const;

/** Usage and cost by day, user, cluster or task prefix. */
export function UsagePage() {
  const { api, account } = useTeam();
  const [by, setBy] = useParam("by", "day");
  const [since, setSince] = useParam("since", "30 days");
  const used = useResource<Usage>(() => api.get("usage", { by, since }), [account, by, since]);
  return (
    <main class="wide" data-testid="page-usage">
      <div class="viewhead">
        <h1>Usage and cost</h1>
        <div class="right">
          <Pick label="Period" options={PERIODS} value={since} onChange={setSince} />
          <Seg label="By" options={BY} value={by as By} onChange={setBy} testid="usage-by" />
        </div>
      </div>
      <Loaded from={used}>
        {(u) => (
          <>
            <CostSentence used={u} period={PERIODS.find(([id]) => id === since)?.[1] ?? since} />
            <dl class="panel metrics eq">
              {[
                ["Clusters", count(u.clusters), ""],
                ["Thread time", seconds(u.total.thread_seconds), "worker threads × their uptime"],
                ["Est. cost", money(u.total.cost), "based on your prices"],
                ["Busy", money(u.total.cost_busy), u.total.cost > 0 ? `${split(u)[0]} of it` : ""],
                ["Idle", money(u.total.cost_idle), u.total.cost > 0 ? `${split(u)[1]} of it` : ""],
              ].map(([label, value, note]) => (
                <div class="metric" key={label}>
                  <dt>{label}</dt>
                  <dd class="v">{value}</dd>
                  <dd class="s">{note}</dd>
                </div>
              ))}
            </dl>
            <UsageChart used={u} />
            <Panel class="mt">
              <UsageTable used={u} />
            </Panel>
          </>
        )}
      </Loaded>
    </main>
  );
}

/** Busy and idle shares of the cost. They add up to 100 %. */
export function split({ total }: Usage): string[] {
  return shares([total.cost_busy, total.cost_idle]);
}

/** The cost in a sentence. */
function CostSentence({ used: u, period }: { used: Usage; period: string }) {
  const when = `the last ${period}`;
  return (
    <p class="answer lead" data-testid="answer">
      {u.total.cost > 0 ? (
        <>
          <b>
            {capital(money(u.total.cost))} in {when} (estimate).{" "}
          </b>{" "}
          <span>{split(u)[1]} of it for idle threads.</span>
        </>
      ) : (
        <b>No cost in {when}.</b>
      )}
    </p>
  );
}
