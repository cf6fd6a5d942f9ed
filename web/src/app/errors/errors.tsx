import type { Page } from "../../api/server";
import type { ListedError } from "../../api/server.gen";
import { useParam } from "../../model/page/hooks";
import { count, counted } from "../../model/text/format";
import { Empty, Panel } from "../../widgets/basics";
import { Search, Seg } from "../../widgets/controls/inputs";
import { CardTable } from "../../widgets/table/card-table";
import { ActionButton } from "../parts/action-button";
import { ErrorPill } from "../parts/pills";
import { Sparkline } from "../parts/sparkline";
import { Ago } from "../parts/time-text";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";
import { Loaded } from "../shell/loaded";
import { useLive, usePages } from "../shell/resources";
import { useDebouncedText } from "../shell/use-time";

const STATES = [
  ["open,regressed", "Open"],
  ["resolved", "Resolved"],
  ["ignored", "Ignored"],
  ["", "All"],
] as const;

const PAGE_SIZE = 100;

const EMPTY: Record<string, string> = {
  "open,regressed": "No open errors",
  resolved: "No resolved errors",
  ignored: "No ignored errors",
};

/** Error groups, newest first. */
export function ErrorGroups() {
  const { api, account } = useTeam();
  const [state, setState] = useParam("state", "open,regressed");
  const [find, setFind] = useParam("q");
  const search = useDebouncedText(find);
  const query = { state: state === "all" ? "" : state, search, limit: PAGE_SIZE };
  const key = [account, state, search];
  const groups = useLive<Page<ListedError>>(null, () => api.get("errors", query), key, 4000);
  const { items, more, load } = usePages<ListedError, Page<ListedError>>(
    groups,
    (cursor) => api.get("errors", { ...query, cursor }),
    (g) => g.fingerprint,
    key,
  );
  return (
    <main class="wide" data-testid="page-errors">
      <div class="viewhead">
        <h1>Errors</h1>
        <span class="note">Grouped by cause</span>
      </div>
      {state === "open,regressed" && !search && groups.value && <OpenErrors items={items} more={more} />}
      <Panel>
        <div class="filters">
          <Search label="Type, message or traceback" value={find} onInput={setFind} testid="error-search" />
          <Seg
            label="State"
            options={STATES.map(([id, word]) => [id || "all", word] as const)}
            value={state || "all"}
            onChange={(id) => setState(id)}
            testid="error-state"
          />
        </div>
        <Loaded from={groups}>
          {() => {
            if (items.length === 0)
              return search ? (
                <Empty title="No errors match">
                  <button type="button" class="link" onClick={() => setFind("")}>
                    Clear search
                  </button>
                </Empty>
              ) : (
                <Empty title={EMPTY[state] ?? "No errors yet"}>Failed tasks of recorded clusters appear here.</Empty>
              );
            return (
              <div class="tablebox scroll" tabIndex={0} role="region" aria-label="Errors">
                <CardTable>
                  <thead>
                    <tr>
                      <th>Error</th>
                      <th>State</th>
                      <th>Last 48 hours</th>
                      <th class="num">Count</th>
                      <th class="num">Clusters</th>
                      <th>Users</th>
                      <th class="num">First seen</th>
                      <th class="num">Last seen</th>
                    </tr>
                  </thead>
                  <tbody>
                    {items.map((g) => (
                      <tr key={g.fingerprint} data-testid="error-row">
                        <td>
                          <Link
                            class="name mono cut"
                            to={[account, "errors", g.fingerprint]}
                            title={`${g.type}: ${g.message}`}
                          >
                            {g.type}: {g.message}
                          </Link>
                        </td>
                        <td>
                          <ErrorPill state={g.state} />
                        </td>
                        <td>
                          <Sparkline values={g.hours} label="Errors per hour, last 48 hours" tone="var(--st-erred)" />
                        </td>
                        <td class="num">{count(g.count)}</td>
                        <td class="num">{count(g.n_clusters)}</td>
                        <td>
                          {g.users.slice(0, 3).join(", ")}
                          {g.users.length > 3 ? ` and ${g.users.length - 3} more` : ""}
                        </td>
                        <td class="num">
                          <Ago at={g.first_seen} />
                        </td>
                        <td class="num">
                          <Ago at={g.last_seen} />
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </CardTable>
              </div>
            );
          }}
        </Loaded>
        {more && (
          <div class="pfoot">
            <ActionButton class="sm push" run={load} testid="load-more">
              Load {PAGE_SIZE} more
            </ActionButton>
          </div>
        )}
      </Panel>
    </main>
  );
}

/** The open error groups in a sentence. */
function OpenErrors({ items, more }: { items: readonly ListedError[]; more: boolean }) {
  if (items.length === 0)
    return (
      <p class="answer lead" data-testid="answer">
        <b>No open errors.</b>
      </p>
    );
  const [newest] = items;
  const regressed = items.filter((g) => g.state === "regressed").length;
  return (
    <p class="answer lead" data-testid="answer">
      <b>
        {more ? `More than ${count(items.length)} open error groups.` : `${counted(items.length, "open error group")}.`}
      </b>{" "}
      <span>
        {regressed > 0 && `${count(regressed)} came back after being resolved. `}Latest: {newest.type},{" "}
        <Ago at={newest.last_seen} />, {counted(newest.count, "occurrence")}.
      </span>
    </p>
  );
}
