import { useMemo } from "preact/hooks";
import type { Usage, UsageLine } from "../api/server.gen";
import { count, dollars, nbytes, percent, shares } from "../model/format";
import { useParam } from "../model/hooks";
import { Empty, Panel, Pick, Seg } from "../widgets/basics";
import { DataTable, type ViewColumn } from "../widgets/table";
import { useResource, useTeam } from "./context";
import { Link, Loaded, seconds } from "./parts";

type By = Usage["by"];

const BY: readonly (readonly [By, string])[] = [["day", "By day"], ["user", "By user"], ["cluster", "By cluster"], ["prefix", "By prefix"]];
const PERIODS = [["7 days", "7 days"], ["30 days", "30 days"], ["90 days", "90 days"], ["365 days", "a year"]] as const;

/** What was used and what it cost, by day, user, cluster or prefix. */
export function UsagePage() {
  const { api, account } = useTeam();
  const [by, setBy] = useParam("by", "day");
  const [since, setSince] = useParam("since", "30 days");
  const used = useResource<Usage>(() => api.get("usage", { by, since }), [account, by, since]);
  return (
    <main class="wide" data-testid="page-usage">
      <div class="viewhead">
        <h1>Usage and cost</h1>
        <div class="right"><Pick label="Period" options={PERIODS} value={since} onChange={setSince} /><Seg label="By" options={BY} value={by as By} onChange={setBy} testid="usage-by" /></div>
      </div>
      <Loaded from={used}>
        {(u) => (
          <>
            <Answer used={u} period={PERIODS.find(([id]) => id === since)?.[1] ?? since} />
            <dl class="panel metrics eq">
              {[
                ["Clusters", count(u.clusters), ""],
                ["Cluster time", seconds(u.total.thread_seconds), "threads × time they were there"],
                ["Est. cost", dollars(u.total.cost), "from the price book"],
                ["Busy", dollars(u.total.cost_busy), u.total.cost > 0 ? `${split(u)[0]} of it` : ""],
                ["Idle", dollars(u.total.cost_idle), u.total.cost > 0 ? `${split(u)[1]} of it` : ""],
              ].map(([label, value, note]) => <div class="metric" key={label}><dt>{label}</dt><dd class="v">{value}</dd><dd class="s">{note}</dd></div>)}
            </dl>
            <Panel class="mt"><Lines used={u} /></Panel>
          </>
        )}
      </Loaded>
    </main>
  );
}

/** Busy and idle as shares of what was paid for; they add up. */
function split({ total }: Usage): string[] {
  return shares([total.cost_busy, total.cost_idle]);
}

/** What it cost, in a sentence. */
function Answer({ used: u, period }: { used: Usage; period: string }) {
  const when = period === "a year" ? "the last year" : `the last ${period}`;
  return (
    <p class="answer lead" data-testid="answer">
      {u.total.cost > 0 ? <><b>About {dollars(u.total.cost)} in {when}.</b> <span>{split(u)[1]} of it was paid for threads that stood idle.</span></> : <b>Nothing was paid for in {when}.</b>}
    </p>
  );
}

function Lines({ used: { items, by } }: { used: Usage }) {
  const most = Math.max(...items.map((l) => l.cost), 1e-9);
  const columns = useMemo<ViewColumn<UsageLine>[]>(() => [
    { id: "name", head: { day: "Day", user: "User", cluster: "Cluster", prefix: "Prefix" }[by], value: (l) => (l.label === l.name ? l.name : `${l.label} ${l.name}`), cell: (l) => <Name line={l} by={by} /> },
    { id: "cost", head: "Est. cost", num: true, value: (l) => l.cost, cell: (l) => dollars(l.cost) },
    { id: "split", head: "", value: (l) => l.cost, cell: (l) => <Split line={l} most={most} /> },
    ...(by === "prefix" ? [] : [
      { id: "busy", head: "Busy", num: true, value: (l: UsageLine) => l.cost_busy, cell: (l: UsageLine) => dollars(l.cost_busy) },
      { id: "idle", head: "Idle", num: true, value: (l: UsageLine) => l.cost_idle, cell: (l: UsageLine) => dollars(l.cost_idle) },
      { id: "thread", head: "Cluster time", num: true, value: (l: UsageLine) => l.thread_seconds, cell: (l: UsageLine) => seconds(l.thread_seconds) },
    ]),
    { id: "compute", head: "Compute", num: true, value: (l) => l.compute_seconds, cell: (l) => seconds(l.compute_seconds) },
    { id: "transfer", head: "Transfer", num: true, value: (l) => l.transfer_seconds, cell: (l) => seconds(l.transfer_seconds) },
    { id: "tasks", head: "Tasks", num: true, value: (l) => l.tasks, cell: (l) => count(l.tasks) },
    { id: "errors", head: "Errors", num: true, value: (l) => l.errors, cell: (l) => <span class={l.errors ? "bad" : "zero"}>{count(l.errors)}</span> },
    { id: "nbytes", head: "Results", num: true, value: (l) => l.nbytes, cell: (l) => nbytes(l.nbytes) },
  ], [items, by]);
  const note = by === "prefix" ? "prefixes; each has its share of what busy threads cost" : `${by}s; busy in blue, idle hatched`;
  return <DataTable label="Usage" name={`usage-by-${by}`} title={BY.find(([id]) => id === by)?.[1] ?? ""} note={note} rows={items} columns={columns} rowKey={(l) => l.name} sort={{ id: by === "day" ? "name" : "cost", down: true }} empty={<Empty title="Nothing was used in this period" />} />;
}

function Name({ line, by }: { line: UsageLine; by: By }) {
  const { account } = useTeam();
  if (by === "cluster") return <Link class={line.label === line.name ? "mono cut" : "cut"} to={[account, "clusters", line.name]} title={line.name}>{line.label}</Link>;
  if (by === "user") return <Link class="cut" to={[account, "clusters"]} params={{ user: line.name, since: "all" }}>{line.name}</Link>;
  return <span class={by === "prefix" ? "mono cut" : "cut"}>{line.name}</span>;
}

/** What was paid for, busy and idle, on the scale of the largest line. */
function Split({ line, most }: { line: UsageLine; most: number }) {
  return (
    <span class="ibar" style="width:140px" role="img" aria-label={line.cost > 0 ? `${percent(line.cost_busy / line.cost)} busy` : "nothing paid for"}>
      {line.cost_busy > 0 && <i style={{ width: `${(100 * line.cost_busy) / most}%`, background: "var(--act-cpu)" }} />}
      {line.cost_idle > 0 && <i class="a-idle" style={{ width: `${(100 * line.cost_idle) / most}%` }} />}
    </span>
  );
}
