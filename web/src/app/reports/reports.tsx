import type { Page } from "../../api/server";
import type { HostedReport } from "../../api/server.gen";
import { useParam } from "../../model/page/hooks";
import { chipText, MAIN_CHIPS, WORKER_LOST } from "../../model/run-groups";
import { count, nbytes } from "../../model/text/format";
import { Empty, Panel } from "../../widgets/basics";
import { copy } from "../../widgets/clipboard";
import { Search } from "../../widgets/controls/inputs";
import { Icon } from "../../widgets/icon";
import { CardTable } from "../../widgets/table/card-table";
import { ActionButton } from "../parts/action-button";
import { EditDialog, parseTags } from "../parts/edit-dialog";
import { Field } from "../parts/field";
import { Ago, seconds } from "../parts/time-text";
import { useCan, useTeam } from "../shell/context";
import { Link } from "../shell/link";
import { Loaded } from "../shell/loaded";
import { usePages, useResource } from "../shell/resources";
import { useDebouncedText } from "../shell/use-time";

const SNIPPET = `with daskscope.performance_report(filename="dask-report.html"):\n    df.groupby("name").value.mean().compute()`;

const PAGE_SIZE = 100;

/** Reports of the account, with search, tags, visibility and expiry. */
export function Reports() {
  const { api, account } = useTeam();
  const canWrite = useCan("write");
  const [find, setFind] = useParam("q");
  const [tag, setTag] = useParam("tag");
  const search = useDebouncedText(find);
  const query = { search, tag, limit: PAGE_SIZE };
  const key = [account, search, tag];
  const reports = useResource<Page<HostedReport>>(() => api.get("reports", query), key);
  const { items, more, load, amend } = usePages<HostedReport, Page<HostedReport>>(
    reports,
    (cursor) => api.get("reports", { ...query, cursor }),
    (r) => String(r.id),
    key,
  );
  const change = (r: HostedReport, body: object) =>
    api.send<HostedReport>("PATCH", `reports/${r.id}`, body).then((now) => amend(String(r.id), now));
  return (
    <main class="wide" data-testid="page-reports">
      <div class="viewhead">
        <h1>Reports</h1>
        <span class="note">runs that were shared, or written as a file</span>
      </div>
      <div class="runbar">
        <div class="chiprow">
          {["", ...MAIN_CHIPS, WORKER_LOST].map((state) => (
            <Link key={state} class="chip" to={[account, "runs"]} params={{ state }}>
              {chipText(state)}
            </Link>
          ))}
          <span class="chip" aria-current="page">
            <Icon name="report" /> Reports
          </span>
        </div>
      </div>
      <Panel>
        <div class="filters">
          <Search label="Title or file name" value={find} onInput={setFind} testid="report-search" />
          {tag && (
            <button type="button" class="chip" onClick={() => setTag("")}>
              Tag: {tag} <Icon name="x" />
            </button>
          )}
        </div>
        <Loaded from={reports}>
          {() =>
            items.length === 0 ? (
              <Empty
                title={search || tag ? "No reports match" : "No reports yet"}
                snippet={search || tag ? undefined : SNIPPET}
              >
                {search || tag
                  ? ""
                  : "Wrap your code in performance_report. If this server is configured, the report is uploaded automatically."}
              </Empty>
            ) : (
              <div class="tablebox scroll" tabIndex={0} role="region" aria-label="Reports">
                <CardTable>
                  <thead>
                    <tr>
                      <th>Report</th>
                      <th>Author</th>
                      <th class="num">Created</th>
                      <th class="num">Duration</th>
                      <th class="num">Tasks</th>
                      <th class="num">Errors</th>
                      <th class="num">Size</th>
                      <th>Visible to</th>
                      <th class="num">Expires</th>
                      <th />
                    </tr>
                  </thead>
                  <tbody>
                    {items.map((r) => (
                      <tr key={r.id} data-testid="report-row">
                        <td>
                          <Link class="name" to={[account, "reports", String(r.id)]} title={r.filename}>
                            {r.title || r.filename}
                          </Link>
                          {r.tags.map((t) => (
                            <button type="button" class="sub tagbtn" key={t} onClick={() => setTag(t)}>
                              {t}
                            </button>
                          ))}
                        </td>
                        <td>{r.user}</td>
                        <td class="num">
                          <Ago at={r.created} />
                        </td>
                        <td class="num">{r.kind === "html" ? "" : seconds(r.duration)}</td>
                        <td class="num">{r.kind === "html" ? "" : count(r.n_tasks)}</td>
                        <td class="num">
                          {r.kind === "html" ? (
                            ""
                          ) : (
                            <span class={r.n_errors ? "bad" : "zero"}>{count(r.n_errors)}</span>
                          )}
                        </td>
                        <td class="num">{nbytes(r.size)}</td>
                        <td>
                          {canWrite ? (
                            <select
                              class="sel"
                              aria-label={`Visibility of ${r.title || r.filename}`}
                              value={r.private ? "private" : "public"}
                              onChange={(e) => void change(r, { visibility: e.currentTarget.value })}
                            >
                              <option value="private">members</option>{" "}
                              <option value="public">anyone with the link</option>
                            </select>
                          ) : r.private ? (
                            "members"
                          ) : (
                            "anyone with the link"
                          )}
                        </td>
                        <td class="num">{r.expires ? r.expires.slice(0, 10) : "never"}</td>
                        <td class="acts">
                          {canWrite && <EditReport report={r} change={(body) => change(r, body)} />}
                          <button type="button" class="btn sm" onClick={() => copy(r.url, "Link copied")}>
                            Copy link
                          </button>
                          {canWrite && (
                            <ActionButton
                              class="sm"
                              run={async () => {
                                if (confirm(`Delete ${r.title || r.filename}? This cannot be undone.`))
                                  await api.send("DELETE", `reports/${r.id}`).then(() => amend(String(r.id), null));
                              }}
                            >
                              Delete
                            </ActionButton>
                          )}
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </CardTable>
              </div>
            )
          }
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

const EXPIRY = [
  ["", "unchanged"],
  ["7", "in 7 days"],
  ["30", "in 30 days"],
  ["365", "in a year"],
  ["0", "never"],
] as const;

function EditReport({ report: r, change }: { report: HostedReport; change: (body: object) => Promise<unknown> }) {
  const save = ({ title, tags, lasts, link }: Record<string, string>) =>
    change({
      title,
      tags: parseTags(tags ?? ""),
      ...(lasts ? { days_to_expire: Number(lasts) } : {}),
      ...(link ? { new_link: true } : {}),
    });
  return (
    <EditDialog
      title={`Report ${r.id}`}
      button="Edit"
      label={`Edit ${r.title || r.filename}`}
      save={save}
      testid="edit-report"
    >
      <Field label="Title" name="title" value={r.title} optional />
      <Field label="Tags" name="tags" value={r.tags.join(", ")} hint="Separate tags with commas" optional />
      <label class="field">
        Expires{" "}
        <select class="sel" name="lasts">
          {EXPIRY.map(([days, words]) => (
            <option key={days} value={days}>
              {words}
            </option>
          ))}
        </select>
      </label>
      {!r.private && (
        <label class="check">
          <input type="checkbox" name="link" value="new" /> Create a new link; the old one stops working
        </label>
      )}
    </EditDialog>
  );
}
