import { useMemo } from "preact/hooks";
import type { WeekCell } from "../../api/server.gen";
import { count } from "../../model/text/format";
import { Panel } from "../../widgets/basics";
import { seconds } from "../parts/time-text";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";

/** With fewer members or weeks, a sentence says as much. */
const MIN_MEMBERS = 3;
const MIN_WEEKS = 4;

/** Compute time by member and week. A member leads to their runs. */
export function WeekHeatmap({ weeks }: { weeks: readonly WeekCell[] }) {
  const { account } = useTeam();
  const { users, columns, most, at } = useMemo(() => {
    const byUser = new Map<string, number>();
    for (const w of weeks) byUser.set(w.user, (byUser.get(w.user) ?? 0) + w.compute_seconds);
    const columns = [...new Set(weeks.map((w) => w.week))].sort();
    const at = new Map(weeks.map((w) => [`${w.user}\0${w.week}`, w.compute_seconds]));
    return {
      users: [...byUser].sort((a, b) => b[1] - a[1]).map(([name]) => name),
      columns,
      most: Math.max(...weeks.map((w) => w.compute_seconds), 1e-9),
      at,
    };
  }, [weeks]);
  if (users.length < MIN_MEMBERS || columns.length < MIN_WEEKS) return null;
  const shown = users.slice(0, 12);
  return (
    <Panel
      title="Compute time by member and week"
      note={shown.length < users.length ? `${count(shown.length)} of ${count(users.length)} members` : undefined}
      testid="heat"
    >
      <div class="scroll" tabIndex={0} role="region" aria-label="Compute time by member and week">
        <table class="heat">
          <thead>
            <tr>
              <th>Member</th>
              {columns.map((week) => (
                <th key={week} class="num">
                  {week.slice(5)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((name) => (
              <tr key={name}>
                <th scope="row">
                  <Link to={[account, "runs"]} params={{ user: name, since: "all" }}>
                    {name || "unknown"}
                  </Link>
                </th>
                {columns.map((week) => {
                  const value = at.get(`${name}\0${week}`) ?? 0;
                  return (
                    <td
                      key={week}
                      title={`${name}, week of ${week}: ${seconds(value)}`}
                      style={{ "--share": String(Math.sqrt(value / most)) }}
                    >
                      {value > 0 ? seconds(value).split(" ").slice(0, 2).join(" ") : ""}
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
