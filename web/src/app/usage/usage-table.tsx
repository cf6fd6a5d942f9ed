import { useMemo } from "preact/hooks";
import type { Usage, UsageLine } from "../../api/server.gen";
import { count, dollarParts, dollars, nbytes, percent } from "../../model/text/format";
import { Empty } from "../../widgets/basics";
import { DataTable } from "../../widgets/table/table";
import type { ViewColumn } from "../../widgets/table/table-rows";
import { seconds } from "../parts/time-text";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";

export type By = Usage["by"];

export const BY: readonly (readonly [By, string])[] = [
  ["day", "By day"],
  ["user", "By user"],
  ["cluster", "By cluster"],
  ["prefix", "By prefix"],
];

export function UsageTable({ used: { items: all, by } }: { used: Usage }) {
  // Days on which nothing happened are only in the chart.
  const items = useMemo(() => all.filter((l) => by !== "day" || l.thread_seconds > 0 || l.tasks > 0), [all, by]);
  const max = Math.max(...items.map((l) => l.cost), 1e-9);
  const columns = useMemo<ViewColumn<UsageLine>[]>(
    () => [
      {
        id: "name",
        head: { day: "Day", user: "User", cluster: "Cluster", prefix: "Prefix" }[by],
        value: (l) => (l.label === l.name ? l.name : `${l.label} ${l.name}`),
        cell: (l) => <UsageName line={l} by={by} />,
      },
      { id: "cost", head: "Est. cost", num: true, value: (l) => l.cost, text: dollars },
      { id: "split", head: "", value: (l) => l.cost, cell: (l) => <CostBar line={l} max={max} /> },
      ...(by === "prefix"
        ? []
        : [
            {
              id: "busy",
              head: "Busy",
              num: true,
              value: (l: UsageLine) => l.cost_busy,
              cell: (l: UsageLine) => dollarParts([l.cost_busy, l.cost_idle])[0],
            },
            {
              id: "idle",
              head: "Idle",
              num: true,
              value: (l: UsageLine) => l.cost_idle,
              cell: (l: UsageLine) => dollarParts([l.cost_busy, l.cost_idle])[1],
            },
            { id: "thread", head: "Thread time", num: true, value: (l: UsageLine) => l.thread_seconds, text: seconds },
          ]),
      { id: "compute", head: "Compute", num: true, value: (l) => l.compute_seconds, text: seconds },
      { id: "transfer", head: "Transfer", num: true, value: (l) => l.transfer_seconds, text: seconds },
      { id: "tasks", head: "Tasks", num: true, value: (l) => l.tasks, text: count },
      {
        id: "errors",
        head: "Errors",
        num: true,
        value: (l) => l.errors,
        cell: (l) => <span class={l.errors ? "bad" : "zero"}>{count(l.errors)}</span>,
      },
      { id: "nbytes", head: "Results", num: true, value: (l) => l.nbytes, text: nbytes },
    ],
    [items, by],
  );
  const note =
    by === "prefix"
      ? "prefixes. Cost of busy threads."
      : `${by}s${by === "day" ? " with usage" : ""}. Blue: busy. Hatched: idle.`;
  return (
    <DataTable
      label="Usage"
      name={`usage-by-${by}`}
      title={BY.find(([id]) => id === by)?.[1] ?? ""}
      note={note}
      rows={items}
      of={all.length}
      columns={columns}
      rowKey={(l) => l.name}
      sort={{ id: by === "day" ? "name" : "cost", down: true }}
      empty={<Empty title="No usage in this period" />}
    />
  );
}

function UsageName({ line, by }: { line: UsageLine; by: By }) {
  const { account } = useTeam();
  if (by === "cluster")
    return (
      <Link
        class={line.label === line.name ? "mono cut" : "cut"}
        to={[account, "clusters", line.name]}
        title={line.name}
      >
        {line.label}
      </Link>
    );
  if (by === "user")
    return (
      <Link class="cut" to={[account, "runs"]} params={{ user: line.name, since: "all" }}>
        {line.name}
      </Link>
    );
  return <span class={by === "prefix" ? "mono cut" : "cut"}>{line.name}</span>;
}

/** Busy and idle cost as a bar, relative to the largest line. */
function CostBar({ line, max }: { line: UsageLine; max: number }) {
  return (
    <span
      class="ibar"
      style="width:140px"
      role="img"
      aria-label={line.cost > 0 ? `${percent(line.cost_busy / line.cost)} busy` : "no cost"}
    >
      {line.cost_busy > 0 && <i style={{ width: `${(100 * line.cost_busy) / max}%`, background: "var(--act-cpu)" }} />}
      {line.cost_idle > 0 && <i class="a-idle" style={{ width: `${(100 * line.cost_idle) / max}%` }} />}
    </span>
  );
}
