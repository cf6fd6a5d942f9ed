import type { Page } from "../../api/server";
import type { ListedError } from "../../api/server.gen";
import { errorName, impactNote, impactText } from "../../model/error-impact";
import { shortFile } from "../../model/flame";
import { useParam } from "../../model/page/hooks";
import { count, counted } from "../../model/text/format";
import { Empty, Panel, Swatch } from "../../widgets/basics";
import { Search, Seg } from "../../widgets/controls/inputs";
import { CardTable } from "../../widgets/table/card-table";
import { ActionButton } from "../parts/action-button";
import { ErrorPill } from "../parts/pills";
import { Ago } from "../parts/time-text";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";
import { Loaded } from "../shell/loaded";
import { useLive, usePages } from "../shell/resources";
import { useDebouncedText } from "../shell/use-time";
import { OccurrenceBars } from "./occurrence-bars";

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
      </div>
      {state === "open,regressed" && !search && groups.value && <OpenErrors items={items} more={more} />}
      <Panel>
        <div class="filters">
          <Search label="Type or message" value={find} onInput={setFind} testid="error-search" />
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
                <CardTable class="errors">
                  <thead>
                    <tr>
                      <th>Error</th>
                      <th>Impact</th>
                      <th>Last 48 hours</th>
                      <th class="num">Occurrences</th>
                      <th class="num">Runs</th>
                      <th>Users</th>
                      <th class="num">Last seen</th>
                    </tr>
                  </thead>
                  <tbody>
                    {byImpact(items).map((g) => (
                      <ErrorRow key={g.fingerprint} group={g} />
                    ))}
                  </tbody>
                </CardTable>
              </div>
            );
          }}
        </Loaded>
        {items.length > 0 && (
          <div class="pfoot">
            <span>
              Bars: occurrences per hour. <Swatch colour="--act-failed" /> failed <Swatch colour="--dot" /> retried.
              Each row has its own scale.
            </span>
            {more && (
              <ActionButton class="sm push" run={load} testid="load-more">
                Load {PAGE_SIZE} more
              </ActionButton>
            )}
          </div>
        )}
      </Panel>
    </main>
  );
}

/** Sort errors that failed tasks for good before errors that were always retried; each part stays in its order. */
function byImpact(items: readonly ListedError[]): ListedError[] {
  return [...items.filter((g) => g.n_fatal > 0), ...items.filter((g) => g.n_fatal === 0)];
}

function ErrorRow({ group: g }: { group: ListedError }) {
  const { account } = useTeam();
  return (
    <tr data-testid="error-row">
      <td class="what">
        <Link class="name cut" to={[account, "errors", g.fingerprint]} title={`${g.type}: ${g.message}`}>
          {errorName(g)}
        </Link>
        {g.file && (
          <span class="faint" title={g.file}>
            {shortFile(g.file)}, line {g.line}
          </span>
        )}
        <small class="mono">{g.message}</small>
      </td>
      <td>
        <b class={g.n_fatal > 0 ? "bad" : "plain"}>{impactText(g)}</b>
        <small>{impactNote(g)}</small>
      </td>
      <td>
        <OccurrenceBars counts={g.hours} fatal={g.fatal_hours} height={30} label={barsLabel(g)} />
      </td>
      <td class="num">{count(g.count)}</td>
      <td class="num">{count(g.n_clusters)}</td>
      <td>
        {g.users.slice(0, 3).join(", ")}
        {g.users.length > 3 ? ` and ${g.users.length - 3} more` : ""}
      </td>
      <td class="num">
        <Ago at={g.last_seen} />
        {g.state !== "open" && <ErrorPill state={g.state} />}
      </td>
    </tr>
  );
}

function barsLabel({ hours }: ListedError): string {
  const recent = hours.reduce((a, b) => a + b, 0);
  return `${counted(recent, "occurrence")} in the last 48 hours, by hour`;
}

/** The open error groups in a sentence. */
function OpenErrors({ items, more }: { items: readonly ListedError[]; more: boolean }) {
  if (items.length === 0)
    return (
      <p class="answer lead" data-testid="answer">
        <b>No open errors.</b>
      </p>
    );
  const fatal = items.filter((g) => g.n_fatal > 0);
  const others = items.length - fatal.length;
  const regressed = items.filter((g) => g.state === "regressed").length;
  const [worst] = fatal;
  return (
    <p class="answer lead" data-testid="answer">
      <b>
        {more ? `More than ${count(items.length)} open error groups.` : `${counted(items.length, "open error group")}.`}
        {worst && (
          <>
            {" "}
            <code>{errorName(worst)}</code> {impactText(worst).toLowerCase()}, last seen <Ago at={worst.last_seen} />.
          </>
        )}
      </b>{" "}
      <span>
        {regressed > 0 && `${count(regressed)} came back after being resolved. `}
        {fatal.length > 1 && `${counted(fatal.length - 1, "other group")} failed tasks. `}
        {worst
          ? others > 0 && `${count(others)} ${others === 1 ? "was" : "were"} always retried.`
          : "All were retried."}
      </span>
    </p>
  );
}
