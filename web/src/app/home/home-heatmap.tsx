import { useMemo } from "preact/hooks";
import type { WeekCell } from "../../api/server.gen";
import { useParam } from "../../model/page/hooks";
import { count } from "../../model/text/format";
import { Panel } from "../../widgets/basics";
import { seconds } from "../parts/time-text";

/** Compute time by member and week. A cell filters the cluster list below by that member. */
export function WeekHeatmap({ weeks }: { weeks: readonly WeekCell[] }) {
  const [user, setUser] = useParam("user");
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
  if (users.length === 0) return null;
  const shown = users.slice(0, 12);
  return (
    <Panel
      title="Compute time by member and week"
      note={shown.length < users.length ? `${count(shown.length)} of ${count(users.length)} members` : undefined}
      right={
        user && (
          <button type="button" class="btn sm" onClick={() => setUser("")}>
            Show all members
          </button>
        )
      }
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
              <tr key={name} class={name === user ? "sel" : ""}>
                <th scope="row">
                  <button
                    type="button"
                    class="link"
                    aria-pressed={name === user}
                    onClick={() => setUser(name === user ? "" : name)}
                  >
                    {name || "unknown"}
                  </button>
                </th>
                {columns.map((week) => {
                  const value = at.get(`${name}\0${week}`) ?? 0;
                  return (
                    <td key={week} title={`${name}, week of ${week}: ${seconds(value)}`}>
                      <button
                        type="button"
                        class="cell"
                        style={{ "--share": String(Math.sqrt(value / most)) }}
                        aria-label={`${name}, week of ${week}: ${seconds(value)}`}
                        onClick={() => setUser(name === user ? "" : name)}
                      >
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
