import type { HostedReport } from "../../api/server.gen";
import { copy } from "../../widgets/clipboard";
import { Icon } from "../../widgets/icon";
import { RunFrame } from "../run/run-frame";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";
import { Loaded } from "../shell/loaded";
import { useResource } from "../shell/resources";

/** The page of a report. */
export function ReportPage({ number }: { number: string }) {
  const { api, account } = useTeam();
  const report = useResource<HostedReport>(() => api.get(`reports/${encodeURIComponent(number)}`), [number, account]);
  const head = (
    <div class="crumbs" data-testid="page-report">
      <Link to={[account, "runs"]}>Runs</Link> / <Link to={[account, "reports"]}>Reports</Link> /{" "}
      <span>{report.value?.title ?? number}</span>
      {report.value && (
        <div class="right">
          <span class="faint">{report.value.private ? "Visible to members" : "Visible to anyone with the link"}</span>{" "}
          <button type="button" class="btn sm" onClick={() => report.value && copy(report.value.url, "Link copied")}>
            <Icon name="share" />
            Copy link
          </button>
        </div>
      )}
    </div>
  );
  if (report.value?.kind === "recording")
    return <RunFrame head={head} titled={false} address={api.url(`reports/${report.value.id}/document`)} />;
  return (
    <>
      <div class="wide">{head}</div>
      <Loaded from={report}>{(r) => <UploadedHtml id={r.id} title={r.title || r.filename} />}</Loaded>
    </>
  );
}

/** Uploaded HTML. A frame cannot send the headers of a page, so its URL has a ticket, or is signed and of another origin. */
function UploadedHtml({ id, title }: { id: number; title: string }) {
  const { api, account } = useTeam();
  const ticket = useResource<{ ticket: string | null; url: string | null }>(
    () => api.get(`reports/${id}/html/ticket`),
    [id, account],
  );
  return (
    <Loaded from={ticket}>
      {(t) => (
        <Sandboxed address={t.url ?? api.url(`reports/${id}/html`, { ticket: t.ticket ?? undefined })} title={title} />
      )}
    </Loaded>
  );
}

/** Uploaded HTML in a sandbox without an origin, so that it has no access to the app. */
export function Sandboxed({ address, title }: { address: string; title: string }) {
  return <iframe class="foreign" sandbox="allow-scripts" referrerpolicy="no-referrer" src={address} title={title} />;
}
