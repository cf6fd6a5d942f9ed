import { useMemo } from "preact/hooks";
import { count, dollars, nbytes, percent } from "../model/format";
import { useParam } from "../model/hooks";
import { Empty, Panel, Pick, Seg } from "../widgets/basics";
import { DataTable, type ViewColumn } from "../widgets/table";
import { useResource, useTeam } from "./context";
import { Link, Loaded, seconds } from "./parts";

type By = "day" | "user" | "cluster" | "prefix";

interface Line {
  day?: number;
  user?: string;
  cluster?: string;
  prefix?: string;
  tasks: number;
  errors: number;
  compute_seconds: number;
  transfer_seconds: number;
  nbytes: number;
  cost?: number;
  cost_busy?: number;
  cost_idle?: number;
  thread_seconds?: number;
}

interface Used {
  by: By;
  items: Line[];
  total: { cost: number; cost_busy: number; cost_idle: number; thread_seconds: number; clusters: number };
}

const BY: readonly (readonly [By, string])[] = [["day", "By day"], ["user", "By user"], ["cluster", "By cluster"], ["prefix", "By prefix"]];
const PERIODS = [["7 days", "7 days"], ["30 days", "30 days"], ["90 days", "90 days"], ["365 days", "a year"]] as const;

const nameOf = (line: Line, by: By): string => (by === "day" ? new Date((line.day ?? 0) * 86_400_000).toISOString().slice(0, 10) : String(line[by] ?? ""));

/** What was used and what it cost, by day, user, cluster or prefix. */
export function Usage() {
  const { api, account } = useTeam();
  const [by, setBy] = useParam("by", "day");
  const [since, setSince] = useParam("since", "30 days");
  const used = useResource<Used>(() => api.get("usage", { by, since }), [account, by, since]);
  return (
    <main class="wide" data-testid="page-usage">
      <div class="viewhead">
        <h1>Usage and cost</h1>
        <div class="right"><Pick label="Period" options={PERIODS} value={since} onChange={setSince} /><Seg label="By" options={BY} value={by as By} onChange={setBy} testid="usage-by" /></div>
      </div>
      <Loaded from={used}>
        {(u) => (
          <>
            <dl class="panel metrics eq">
              {[
                ["Clusters", count(u.total.clusters), ""],
                ["Cluster time", seconds(u.total.thread_seconds), "threads × time they were there"],
                ["Est. cost", dollars(u.total.cost), "from the price book"],
                ["Busy", dollars(u.total.cost_busy), u.total.cost > 0 ? `${percent(u.total.cost_busy / u.total.cost)} of it` : ""],
                ["Idle", dollars(u.total.cost_idle), u.total.cost > 0 ? `${percent(u.total.cost_idle / u.total.cost)} of it` : ""],
              ].map(([label, value, note]) => <div class="metric" key={label}><dt>{label}</dt><dd class="v">{value}</dd><dd class="s">{note}</dd></div>)}
            </dl>
            <Panel class="mt"><Lines used={u} /></Panel>
          </>
        )}
      </Loaded>
    </main>
  );
}

function Lines({ used: { items, by } }: { used: Used }) {
  const { account } = useTeam();
  const most = Math.max(...items.map((l) => l.compute_seconds), 1e-9);
  const columns = useMemo<ViewColumn<Line>[]>(() => [
    { id: "name", head: { day: "Day", user: "User", cluster: "Cluster", prefix: "Prefix" }[by], value: (l) => nameOf(l, by), cell: (l) => (by === "cluster" ? <Link class="mono cut" to={[account, "clusters", l.cluster ?? ""]}>{l.cluster}</Link> : <span class={by === "prefix" ? "mono cut" : "cut"}>{nameOf(l, by)}</span>) },
    { id: "tasks", head: "Tasks", num: true, value: (l) => l.tasks, cell: (l) => count(l.tasks) },
    { id: "errors", head: "Errors", num: true, value: (l) => l.errors, cell: (l) => <span class={l.errors ? "bad" : "zero"}>{count(l.errors)}</span> },
    { id: "compute", head: "Compute", num: true, value: (l) => l.compute_seconds, cell: (l) => seconds(l.compute_seconds) },
    { id: "bar", head: "", value: (l) => l.compute_seconds, cell: (l) => <span class="ibar" style="width:140px"><i style={{ width: `${(100 * l.compute_seconds) / most}%`, background: "var(--act-cpu)" }} /></span> },
    { id: "transfer", head: "Transfer", num: true, value: (l) => l.transfer_seconds, cell: (l) => seconds(l.transfer_seconds) },
    { id: "nbytes", head: "Results", num: true, value: (l) => l.nbytes, cell: (l) => nbytes(l.nbytes) },
    ...(by === "user" || by === "cluster" ? [
      { id: "thread", head: "Cluster time", num: true, value: (l: Line) => l.thread_seconds ?? 0, cell: (l: Line) => seconds(l.thread_seconds ?? 0) },
      { id: "cost", head: "Est. cost", num: true, value: (l: Line) => l.cost ?? 0, cell: (l: Line) => dollars(l.cost ?? 0) },
      { id: "idle", head: "Idle", num: true, value: (l: Line) => l.cost_idle ?? 0, cell: (l: Line) => dollars(l.cost_idle ?? 0) },
    ] : []),
  ], [items, by]);
  return <DataTable label="Usage" name="usage" title="Usage" rows={items} columns={columns} rowKey={(l) => nameOf(l, by)} sort={{ id: by === "day" ? "name" : "compute", down: true }} empty={<Empty title="Nothing was computed in this period" />} />;
}
