import { useState } from "preact/hooks";
import type { Computation, OneComputation } from "../../api/server.gen";
import { count } from "../../model/text/format";
import { StatePill } from "../../widgets/icon";
import { CardTable } from "../../widgets/table/card-table";
import { compared, runList } from "../compare/compare-runs";
import { ScrollRegion } from "../parts/scroll-region";
import { Ago, minute, seconds } from "../parts/time-text";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";

const keyOf = (run: Computation) => runList([run]);

/** Return the text of the button that compares a computation with chosen runs. */
export function compareText(chosen: number): string {
  if (chosen === 0) return "Compare";
  return chosen === 1 ? "Compare with this run" : `Compare with these ${count(chosen)} runs`;
}

/** Earlier runs of a computation's code. The reader chooses some, and compares the computation with them. */
export function EarlierRuns({ of }: { of: OneComputation }) {
  const { router, account } = useTeam();
  const [chosen, choose] = useState<ReadonlySet<string>>(new Set());
  const runs = of.earlier.filter((run) => chosen.has(keyOf(run)));
  const hasAll = runs.length === of.earlier.length;
  const toggle = (key: string) =>
    choose((now) => new Set(now.has(key) ? [...now].filter((k) => k !== key) : [...now, key]));
  return (
    <>
      <ScrollRegion label="Earlier runs">
        <CardTable class="compact">
          <thead>
            <tr>
              <th>
                <label class="choose">
                  <input
                    type="checkbox"
                    aria-label="Choose all earlier runs"
                    checked={hasAll}
                    indeterminate={runs.length > 0 && !hasAll}
                    onChange={() => choose(new Set(hasAll ? [] : of.earlier.map(keyOf)))}
                  />
                  Started
                </label>
              </th>
              <th>State</th>
              <th class="num">Duration</th>
              <th class="num">Tasks</th>
              <th>Cluster</th>
            </tr>
          </thead>
          <tbody>
            {of.earlier.map((run) => (
              <tr key={keyOf(run)} data-testid="earlier-run">
                <td>
                  <span class="choose">
                    <input
                      type="checkbox"
                      aria-label={`Choose the run of ${minute(run.start) || run.id}`}
                      checked={chosen.has(keyOf(run))}
                      onChange={() => toggle(keyOf(run))}
                    />
                    <Link to={[account, "clusters", run.cluster_id, "computations", run.id]}>
                      <Ago at={run.start} />
                    </Link>
                  </span>
                </td>
                <td>
                  <StatePill state={run.state} />
                </td>
                <td class="num">{seconds(run.duration)}</td>
                <td class="num">{count(run.n_tasks)}</td>
                <td>
                  <Link to={[account, "clusters", run.cluster_id]}>
                    <span class="cut">{run.cluster_name || run.cluster_id}</span>
                  </Link>
                </td>
              </tr>
            ))}
          </tbody>
        </CardTable>
      </ScrollRegion>
      <p class="callout">
        <button
          type="button"
          class="btn sm"
          disabled={runs.length === 0}
          data-testid="compare-chosen"
          onClick={() => router.go(router.href([account, "compare"], compared(runs, of)))}
        >
          {compareText(runs.length)}
        </button>{" "}
        {runs.length === 0 && "Choose the earlier runs to compare this one with."}
      </p>
    </>
  );
}
