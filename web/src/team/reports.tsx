import type { Page } from "../api/server";
import type { HostedReport } from "../api/server.gen";
import { count, nbytes } from "../model/format";
import { useParam } from "../model/hooks";
import { copy, Empty, Panel, Search } from "../widgets/basics";
import { Icon } from "../widgets/icon";
import { useMay, usePages, useResource, useSettledText, useTeam } from "./context";
import { Edit, tagsOf } from "./edit";
import { Field } from "./field";
import { Act, Ago, Link, Loaded, seconds } from "./parts";
import { Viewing } from "./viewing";

const SNIPPET = `with daskscope.performance_report(filename="dask-report.html"):\n    df.groupby("name").value.mean().compute()`;

const STEP = 100;

/** The account's reports: search, tags, who may see them, until when. */
export function Reports() {
  const { api, account } = useTeam();
  const may = useMay("write");
  const [find, setFind] = useParam("q");
  const [tag, setTag] = useParam("tag");
  const search = useSettledText(find);
  const query = { search, tag, limit: STEP };
  const key = [account, search, tag];
  const reports = useResource<Page<HostedReport>>(() => api.get("reports", query), key);
  const { items, more, load, amend } = usePages<HostedReport, Page<HostedReport>>(reports, (cursor) => api.get("reports", { ...query, cursor }), (r) => String(r.id), key);
  const change = (r: HostedReport, body: object) => api.send<HostedReport>("PATCH", `reports/${r.id}`, body).then((now) => amend(String(r.id), now));
  return (
    <main class="wide" data-testid="page-reports">
      <div class="viewhead"><h1>Reports</h1></div>
      <Panel>
        <div class="filters">
          <Search label="Title or file name" value={find} onInput={setFind} testid="report-search" />
          {tag && <button type="button" class="chip" onClick={() => setTag("")}>tag: {tag} <Icon name="x" /></button>}
        </div>
        <Loaded from={reports}>
          {() => items.length === 0 ? (
            <Empty title={search || tag ? "No report matches" : "No report yet"} snippet={search || tag ? undefined : SNIPPET}>{search || tag ? "" : "A report is made around a block of work; where this server is configured it is uploaded by itself."}</Empty>
          ) : (
            <div class="tablebox scroll" tabIndex={0} role="region" aria-label="Reports">
              <table class="data">
                <thead><tr><th>Report</th><th>By</th><th class="num">Made</th><th class="num">Duration</th><th class="num">Tasks</th><th class="num">Errors</th><th class="num">Size</th><th>For</th><th class="num">Until</th><th /></tr></thead>
                <tbody>
                  {items.map((r) => (
                    <tr key={r.id} data-testid="report-row">
                      <td><Link class="name" to={[account, "reports", String(r.id)]} title={r.filename}>{r.title || r.filename}</Link>{r.tags.map((t) => <button type="button" class="sub tagbtn" key={t} onClick={() => setTag(t)}>{t}</button>)}</td>
                      <td>{r.user}</td>
                      <td class="num"><Ago at={r.created} /></td>
                      <td class="num">{r.kind === "html" ? "" : seconds(r.duration)}</td>
                      <td class="num">{r.kind === "html" ? "" : count(r.n_tasks)}</td>
                      <td class="num">{r.kind === "html" ? "" : <span class={r.n_errors ? "bad" : "zero"}>{count(r.n_errors)}</span>}</td>
                      <td class="num">{nbytes(r.size)}</td>
                      <td>{may ? <select class="sel" aria-label={`Who may see ${r.title || r.filename}`} value={r.private ? "private" : "public"} onChange={(e) => void change(r, { visibility: e.currentTarget.value })}><option value="private">members</option><option value="public">whoever has the link</option></select> : r.private ? "members" : "link"}</td>
                      <td class="num">{r.expires ? r.expires.slice(0, 10) : "for ever"}</td>
                      <td class="acts">
                        {may && <EditReport report={r} change={(body) => change(r, body)} />}
                        <button type="button" class="btn sm" onClick={() => copy(r.url, "Link copied")}>Copy link</button>
                        {may && <Act class="sm" run={async () => { if (confirm(`Delete ${r.title || r.filename}? It cannot be brought back.`)) await api.send("DELETE", `reports/${r.id}`).then(() => amend(String(r.id), null)); }}>Delete</Act>}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </Loaded>
        {more && <div class="pfoot"><Act class="sm push" run={load} testid="load-more">Load {STEP} more</Act></div>}
      </Panel>
    </main>
  );
}

const LASTS = [["", "as it is"], ["7", "7 days from now"], ["30", "30 days from now"], ["365", "a year from now"], ["0", "for ever"]] as const;

function EditReport({ report: r, change }: { report: HostedReport; change: (body: object) => Promise<unknown> }) {
  const save = ({ title, tags, lasts, link }: Record<string, string>) => change({
    title, tags: tagsOf(tags ?? ""), ...(lasts ? { days_to_expire: Number(lasts) } : {}), ...(link ? { new_link: true } : {}),
  });
  return (
    <Edit title={`Report ${r.id}`} button="Edit" label={`Edit ${r.title || r.filename}`} save={save} testid="edit-report">
      <Field label="Title" name="title" value={r.title} optional />
      <Field label="Tags" name="tags" value={r.tags.join(", ")} hint="Words between commas" optional />
      <label class="field">Lasts<select class="sel" name="lasts">{LASTS.map(([days, words]) => <option key={days} value={days}>{words}</option>)}</select></label>
      {!r.private && <label class="check"><input type="checkbox" name="link" value="new" /> Make a new link; the old one ends</label>}
    </Edit>
  );
}

/** One report of the account. */
export function ReportPage({ number }: { number: string }) {
  const { api, account, router } = useTeam();
  const report = useResource<HostedReport>(() => api.get(`reports/${encodeURIComponent(number)}`), [number, account]);
  return (
    <>
      <div class="crumbs wide" data-testid="page-report">
        <Link to={[account, "reports"]}>Reports</Link> / <span>{report.value?.title ?? number}</span>
        {report.value && <div class="right"><span class="faint">{report.value.private ? "for members" : "for whoever has the link"}</span> <button type="button" class="btn sm" onClick={() => report.value && copy(report.value.url, "Link copied")}><Icon name="share" />Copy link</button></div>}
      </div>
      <Loaded from={report}>
        {(r) => r.kind === "html" ? <Sandboxed address={`${router.root}/${encodeURIComponent(account)}/reports/${r.id}/html`} title={r.title || r.filename} /> : <Viewing prefix={`${router.root}/${encodeURIComponent(account)}/reports/${r.id}/view`} />}
      </Loaded>
    </>
  );
}

/** HTML somebody uploaded: it has no origin, and so no power. */
export function Sandboxed({ address, title }: { address: string; title: string }) {
  return <iframe class="foreign" sandbox="allow-scripts" referrerpolicy="no-referrer" src={address} title={title} />;
}
