import type { Day } from "../../api/server.gen";
import { count, money, percent } from "../../model/text/format";
import { seconds } from "../parts/time-text";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";

/** Totals of the last 7 days, compared with the 7 days before. */
export function Totals({ days }: { days: readonly Day[] }) {
  const { account } = useTeam();
  const half = Math.floor(days.length / 2);
  const sum = (part: readonly Day[], pick: (day: Day) => number) => part.reduce((total, day) => total + pick(day), 0);
  const line = (
    id: string,
    label: string,
    pick: (day: Day) => number,
    text: (n: number) => string,
    note: (now: number) => string,
  ) => {
    const now = sum(days.slice(half), pick);
    return { id, label, value: text(now), note: note(now), values: days.map(pick) };
  };
  const change = (pick: (day: Day) => number) => {
    const [before, now] = [sum(days.slice(0, half), pick), sum(days.slice(half), pick)];
    return before > 0
      ? `${now >= before ? "+" : "−"}${percent(Math.abs(now / before - 1))} vs. week before`
      : "none the week before";
  };
  const threads = sum(days.slice(half), (d) => d.thread_seconds);
  const cost = sum(days.slice(half), (d) => d.cost);
  const lines = [
    line(
      "thread",
      "Thread time, 7 days",
      (d) => d.thread_seconds,
      seconds,
      () => change((d) => d.thread_seconds),
    ),
    line(
      "compute",
      "Compute time, 7 days",
      (d) => d.compute_seconds,
      seconds,
      (now) => (threads > 0 ? `${percent(now / threads)} of thread time` : "no threads"),
    ),
    line(
      "tasks",
      "Tasks, 7 days",
      (d) => d.tasks,
      count,
      () => change((d) => d.tasks),
    ),
    line(
      "cost",
      "Est. cost, 7 days",
      (d) => d.cost,
      money,
      () => change((d) => d.cost),
    ),
    line(
      "idle",
      "Est. idle cost, 7 days",
      (d) => d.cost_idle,
      money,
      (now) => (cost > 0 ? `${percent(now / cost)} of cost` : "no cost"),
    ),
  ];
  return (
    <dl class="panel metrics eq" data-testid="totals">
      {lines.map((l) => (
        <div class="metric" key={l.id}>
          <dt>{l.label}</dt>
          <dd class="v" data-testid={`total-${l.id}`}>
            <Link to={[account, "usage"]} params={{ since: "7 days" }}>
              {l.value}
            </Link>
          </dd>
          <dd class="s" title={l.note}>
            {l.note}
          </dd>
          <dd class="trend">
            <Sparkline values={l.values} label={`${l.label}, last ${days.length} days`} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

const WIDTH = 74;
const HEIGHT = 26;

/** A small line chart without axes. */
function Sparkline({ values, label }: { values: readonly number[]; label: string }) {
  if (values.length < 2) return null;
  const max = Math.max(...values, 1e-12);
  const points = values
    .map(
      (v, i) =>
        `${((i / (values.length - 1)) * WIDTH).toFixed(1)},${(HEIGHT - 1 - (Math.max(v, 0) / max) * (HEIGHT - 3)).toFixed(1)}`,
    )
    .join(" ");
  return (
    <svg class="spark" width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      <polygon points={`0,${HEIGHT} ${points} ${WIDTH},${HEIGHT}`} fill="var(--bar-soft)" />
      <polyline points={points} fill="none" stroke="var(--text-3)" stroke-width="1.4" />
    </svg>
  );
}
