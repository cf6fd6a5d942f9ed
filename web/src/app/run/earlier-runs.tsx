import { useState } from "preact/hooks";
import type { Computation, OneComputation } from "../../api/server.gen";
import { count } from "../../model/text/format";
import { StatePill } from "../../widgets/icon";
import { ShortTable } from "../../widgets/table/card-table";
import { compared, runList } from "../compare/compare-runs";
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
      <ShortTable
        label="Earlier runs"
        class="compact"
        rows={of.earlier}
        keyOf={keyOf}
        testid="earlier-run"
        columns={[
          [
            <label class="choose">
              <input
                type="checkbox"
                aria-label="Choose all earlier runs"
                checked={hasAll}
                indeterminate={runs.length > 0 && !hasAll}
                onChange={() => choose(new Set(hasAll ? [] : of.earlier.map(keyOf)))}
              />
              Started
            </label>,
            (run) => (
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
            ),
          ],
          ["State", (run) => <StatePill state={run.state} />],
          ["Duration", (run) => seconds(run.duration), "num"],
          ["Tasks", (run) => count(run.n_tasks), "num"],
          [
            "Cluster",
            (run) => (
              <Link to={[account, "clusters", run.cluster_id]}>
                <span class="cut">{run.cluster_name || run.cluster_id}</span>
              </Link>
            ),
          ],
        ]}
      />
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
