import { useState } from "preact/hooks";
import type { ClusterList, ListedCluster, RecentRun, RunGroup } from "../../api/server.gen";
import { durationChange, outcomeText, signedPercent } from "../../model/run-groups";
import { count, counted, dollars } from "../../model/text/format";
import { Icon, OutcomePill } from "../../widgets/icon";
import { RunStrip } from "../../widgets/plots/run-strip";
import { PlainTable } from "../../widgets/table/card-table";
import { ActionButton } from "../parts/action-button";
import { ClusterPill, isLive } from "../parts/pills";
import { Ago, minute, seconds } from "../parts/time-text";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";
import { Loaded } from "../shell/loaded";
import { useLive, usePages } from "../shell/resources";

/** Parameters of a request that select runs. */
export type RunQuery = Record<string, string | number | boolean | undefined>;

/** Return the identity of a group, which stays the same while new runs of its name arrive. */
export const groupKey = (group: RunGroup) => (group.name ? `name ${group.name}` : group.newest.id);

interface Props {
  groups: readonly RunGroup[];
  /** The filter that also applies to the runs of an open row. */
  query: RunQuery;
  onTag?: (tag: string) => void;
  onUser?: (user: string) => void;
}

/** One row per name: how its last run ended, and the strip of the last durations. A row opens to its runs. */
export function RunRows({ groups, query, onTag, onUser }: Props) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  // With such a filter, the newest run of a row need not be the last one of its name.
  const isFiltered = Boolean(query.state || query.lost_workers);
  const toggle = (key: string) =>
    setOpen((now) => new Set(now.has(key) ? [...now].filter((k) => k !== key) : [...now, key]));
  return (
    <table class="runs">
      <thead>
        <tr>
          <th class="cv">
            <span class="sr">Show runs</span>
          </th>
          <th>Name</th>
          <th>{isFiltered ? "Last match" : "Last outcome"}</th>
          <th class="str">Last 20 runs, duration</th>
          <th class="num">{isFiltered ? "Its duration" : "Last"}</th>
          <th class="num x">Against median</th>
          <th class="num x">{isFiltered ? "Matches" : "Runs"}</th>
          <th class="num x" title="Costs are estimates based on your prices">
            Est. cost
          </th>
          <th class="num">Started</th>
        </tr>
      </thead>
      <tbody>
        {groups.map((group) => {
          const key = groupKey(group);
          const isOpen = open.has(key);
          return (
            <>
              <GroupRow
                key={key}
                group={group}
                open={isOpen}
                toggle={() => toggle(key)}
                onTag={onTag}
                onUser={onUser}
              />
              {isOpen && (
                <tr key={`${key} runs`} class="single">
                  <td colSpan={9}>
                    <NamedRuns group={group} query={query} />
                  </td>
                </tr>
              )}
            </>
          );
        })}
      </tbody>
    </table>
  );
}

interface RowProps extends Pick<Props, "onTag" | "onUser"> {
  group: RunGroup;
  open: boolean;
  toggle: () => void;
}

function GroupRow({ group: { name, newest, recent, runs, cost }, open, toggle, onTag, onUser }: RowProps) {
  const { account } = useTeam();
  const reason = outcomeText(newest, recent);
  return (
    <tr class="run" data-testid="run-row">
      <td class="cv">
        {name && (
          <button
            type="button"
            aria-expanded={open}
            aria-label={`${open ? "Hide" : "Show"} the runs of ${name}`}
            onClick={toggle}
          >
            <Icon name={open ? "chev" : "right"} />
          </button>
        )}
      </td>
      <td class="nm">
        <Link class="name" to={[account, "clusters", newest.id]} title={name || newest.id}>
          {name || <span class="faint">unnamed</span>}
        </Link>
        <small>
          {onUser ? (
            <button type="button" title={`Show only runs of ${newest.user}`} onClick={() => onUser(newest.user)}>
              {newest.user}
            </button>
          ) : (
            newest.user
          )}
          {onTag &&
            newest.tags.map((tag) => (
              <button type="button" key={tag} title={`Show only runs with the tag ${tag}`} onClick={() => onTag(tag)}>
                {tag}
              </button>
            ))}
        </small>
      </td>
      <td class="why">
        <RunPill run={newest} />
        <small title={reason}>
          {reason}
          {newest.missing_rows > 0 && (
            <span class="bad" data-testid="missing-rows">
              {" "}
              {counted(newest.missing_rows, "row")} missing
            </span>
          )}
        </small>
      </td>
      <td class="str">
        {recent.length > 1 ? (
          <RunStrip recent={recent} last={newest.id} />
        ) : (
          <span class="faint">{name && "first run"}</span>
        )}
      </td>
      <td class="num dur">{seconds(newest.duration)}</td>
      <td class="num x">
        <Change run={newest} recent={recent} />
      </td>
      <td class="num x">{count(runs)}</td>
      <td class="num x">{dollars(cost)}</td>
      <td class="num ago">
        <Ago at={newest.start} />
      </td>
    </tr>
  );
}

function RunPill({ run }: { run: ListedCluster }) {
  return isLive(run) ? <ClusterPill cluster={run} /> : <OutcomePill state={run.state} lost={run.lost_workers} />;
}

/** The duration against the median of the other finished runs, coloured only if it is unusual. */
function Change({ run, recent }: { run: ListedCluster; recent: readonly RecentRun[] }) {
  if (isLive(run)) return <span class="faint">so far</span>;
  const change = durationChange(run, recent);
  if (!change) return null;
  return (
    <span
      class={change.usual ? "faint" : change.share > 0 ? "slower" : "faster"}
      title={`Median of ${change.runs} runs`}
    >
      {signedPercent(change.share)}
    </span>
  );
}

/** Runs of an open row, and how many more a button loads. The first ones are the dots of the strip. */
const PAGE_SIZE = 20;

/** The single runs of a name. */
function NamedRuns({ group, query }: { group: RunGroup; query: RunQuery }) {
  const { api, account } = useTeam();
  const wanted = { ...query, same_name_as: group.newest.id, limit: PAGE_SIZE };
  const key = [account, group.name, JSON.stringify(query)];
  const first = useLive<ClusterList>(null, () => api.get("clusters", wanted), key, 5000);
  const { items, more, load } = usePages<ListedCluster, ClusterList>(
    first,
    (cursor) => api.get("clusters", { ...wanted, cursor }),
    (run) => run.id,
    key,
  );
  return (
    <Loaded from={first} lines={3}>
      {() => (
        <>
          <div class="scroll" tabIndex={0} role="region" aria-label={`Runs of ${group.name}`}>
            <PlainTable class="compact">
              <thead>
                <tr>
                  <th>Started</th>
                  <th>Outcome</th>
                  <th>Reason</th>
                  <th>User</th>
                  <th class="num">Duration</th>
                  <th class="num">Against median</th>
                  <th class="num">Tasks</th>
                  <th class="num">Workers</th>
                  <th class="num">Est. cost</th>
                </tr>
              </thead>
              <tbody>
                {items.map((run) => (
                  <SingleRun key={run.id} run={run} recent={group.recent} />
                ))}
              </tbody>
            </PlainTable>
          </div>
          {group.recent.length > 1 && (
            <Link to={[account, "compare"]} params={{ name: group.name }} class="btn sm">
              Compare the last runs
            </Link>
          )}
          {more && (
            <ActionButton class="sm" run={load} testid="more-runs">
              Show {PAGE_SIZE} more
            </ActionButton>
          )}
        </>
      )}
    </Loaded>
  );
}

function SingleRun({ run, recent }: { run: ListedCluster; recent: readonly RecentRun[] }) {
  const { account } = useTeam();
  const reason = outcomeText(run, recent);
  return (
    <tr data-testid="single-run">
      <td>
        <Link to={[account, "clusters", run.id]} title={run.id}>
          {minute(run.start) || "not recorded"}
        </Link>
      </td>
      <td>
        <RunPill run={run} />
      </td>
      <td title={reason}>{reason}</td>
      <td>{run.user}</td>
      <td class="num">{seconds(run.duration)}</td>
      <td class="num">
        <Change run={run} recent={recent} />
      </td>
      <td class="num">{count(run.n_tasks)}</td>
      <td class="num">{count(run.peak_workers)}</td>
      <td class="num" title={run.cost.formula}>
        {dollars(run.cost.total)}
      </td>
    </tr>
  );
}
