import { useState } from "preact/hooks";
import type { Page } from "../../api/server";
import type { Computation } from "../../api/server.gen";
import { counted } from "../../model/text/format";
import { Empty, Panel } from "../../widgets/basics";
import { StatePill } from "../../widgets/icon";
import { CardTable } from "../../widgets/table/card-table";
import { ActionButton } from "../parts/action-button";
import { ScrollRegion } from "../parts/scroll-region";
import { Ago, minute, seconds } from "../parts/time-text";
import { callText } from "../run/cluster-text";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";
import { Loaded } from "../shell/loaded";
import { usePages, useResource } from "../shell/resources";
import { type Chosen, chooseSide, problemOf, runList, runsOf, type Side } from "./compare-runs";

const PAGE_SIZE = 50;
const SIDES: readonly (readonly [Side, string])[] = [
  ["before", "Before"],
  ["after", "After"],
];
const keyOf = (run: Computation) => runList([run]);

/** Recent computations of the account. The reader chooses some for both sides of a comparison. */
export function ComparePicker() {
  const { api, account, router } = useTeam();
  const [chosen, choose] = useState<Chosen>(new Map());
  const first = useResource<Page<Computation>>(() => api.get("computations", { limit: PAGE_SIZE }), [account]);
  const { items, more, load } = usePages<Computation, Page<Computation>>(
    first,
    (cursor) => api.get("computations", { limit: PAGE_SIZE, cursor }),
    keyOf,
    [account],
  );
  const problem = problemOf(chosen);
  const sides = { before: runsOf(chosen, "before"), after: runsOf(chosen, "after") };
  return (
    <>
      <div class="viewhead">
        <h1>Compare</h1>
        <span class="note">recent computations</span>
        <div class="right">
          <span class="note" data-testid="compare-sides">
            {problem || `${counted(sides.before.length, "run")} before, ${sides.after.length} after`}
          </span>
          <button
            type="button"
            class="btn primary"
            disabled={problem !== ""}
            data-testid="compare-runs"
            onClick={() =>
              router.go(
                router.href([account, "compare"], { before: sides.before.join(","), after: sides.after.join(",") }),
              )
            }
          >
            Compare
          </button>
        </div>
      </div>
      <Panel
        foot={
          <>
            <span>Five repeats on each side can prove a difference.</span>
            {more && (
              <ActionButton class="sm push" run={load} testid="load-more">
                Load {PAGE_SIZE} more
              </ActionButton>
            )}
          </>
        }
      >
        <Loaded from={first} lines={8}>
          {() =>
            items.length === 0 ? (
              <Empty title="No computations yet">Recorded computations appear here.</Empty>
            ) : (
              <ScrollRegion label="Recent computations">
                <CardTable>
                  <thead>
                    <tr>
                      <th>Name</th>
                      <th>Cluster</th>
                      <th>State</th>
                      <th class="num">Started</th>
                      <th class="num">Duration</th>
                      {SIDES.map(([side, head]) => (
                        <th key={side} class="num">
                          {head}
                        </th>
                      ))}
                    </tr>
                  </thead>
                  <tbody>
                    {items.map((run) => (
                      <tr key={keyOf(run)} data-testid="compare-row">
                        <td>
                          <Link
                            class="name mono cut"
                            to={[account, "clusters", run.cluster_id, "computations", run.id]}
                            title={run.code}
                          >
                            {callText(run)}
                          </Link>
                        </td>
                        <td>
                          <span class="cut">{run.cluster_name || run.cluster_id}</span>
                        </td>
                        <td>
                          <StatePill state={run.state} />
                        </td>
                        <td class="num">
                          <Ago at={run.start} />
                        </td>
                        <td class="num">{seconds(run.duration)}</td>
                        {SIDES.map(([side, head]) => (
                          <td key={side} class="num">
                            <label class="choose">
                              <input
                                type="checkbox"
                                aria-label={`${head}: ${callText(run)}, ${minute(run.start) || run.id}`}
                                checked={chosen.get(keyOf(run)) === side}
                                onChange={() => choose((now) => chooseSide(now, keyOf(run), side))}
                              />
                            </label>
                          </td>
                        ))}
                      </tr>
                    ))}
                  </tbody>
                </CardTable>
              </ScrollRegion>
            )
          }
        </Loaded>
      </Panel>
    </>
  );
}
