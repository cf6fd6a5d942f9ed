import type { Failure, OneError } from "../../api/server.gen";
import { counted } from "../../model/text/format";
import { Panel } from "../../widgets/basics";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";

/** What the occurrences have in common, affected versions, and the selected occurrence. */
export function ErrorSidebar({ group: g, sample }: { group: OneError; sample: Failure | undefined }) {
  const { account } = useTeam();
  return (
    <>
      <Panel title="Common properties">
        <Shares title="Prefix" parts={tally(g.latest, (f) => f.prefix)} />
        <Shares title="User" parts={tally(g.latest, (f) => f.user)} />
        <Shares title="Worker" parts={tally(g.latest, (f) => f.worker)} />
        <Shares title="Retry" parts={tally(g.latest, (f) => (f.will_retry ? "retried" : "not retried"))} />
        <div class="pfoot">
          <span>Based on the latest {counted(g.latest.length, "occurrence")}</span>
        </div>
      </Panel>
      <Panel title="Affected versions" class="mt">
        <dl class="kv">
          {["python", "dask", "distributed", "numpy", "pandas"]
            .filter((name) => g.versions[name])
            .map((name) => (
              <>
                <dt key={name}>{name}</dt>
                <dd>{g.versions[name].join(", ")}</dd>
              </>
            ))}
        </dl>
      </Panel>
      {sample && (
        <Panel title="Selected occurrence" class="mt">
          <dl class="kv">
            {sample.key && (
              <>
                <dt>Task</dt>
                <dd class="mono cut" title={sample.key}>
                  {sample.key}
                </dd>
              </>
            )}
            <dt>Worker</dt>
            <dd class="mono cut" title={sample.worker}>
              {sample.worker}
            </dd>
            <dt>Cluster</dt>
            <dd>
              <Link to={[account, "clusters", sample.cluster_id]}>{sample.cluster_name || sample.cluster_id}</Link>
            </dd>
            {sample.type !== g.type && (
              <>
                <dt>Raised as</dt>
                <dd class="mono cut" title={sample.message}>
                  {sample.type}
                </dd>
              </>
            )}
          </dl>
        </Panel>
      )}
    </>
  );
}

function tally(failures: readonly Failure[], pick: (f: Failure) => string): [string, number][] {
  const counts = new Map<string, number>();
  for (const f of failures) counts.set(pick(f), (counts.get(pick(f)) ?? 0) + f.count);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

function Shares({ title, parts }: { title: string; parts: readonly [string, number][] }) {
  const total = parts.reduce((sum, [, n]) => sum + n, 0);
  if (total === 0) return null;
  const shown = parts.slice(0, 4);
  const rest = total - shown.reduce((sum, [, n]) => sum + n, 0);
  const rows: [string, number][] = rest > 0 ? [...shown, [`${parts.length - 4} others`, rest]] : shown;
  return (
    <div class="dist">
      <h3>{title}</h3>
      {rows.map(([name, n]) => (
        <div class="share" key={name} style={{ "--share": String(n / total) }}>
          <span class="mono cut">{name || "unknown"}</span>
          <span>{Math.round((100 * n) / total)} %</span>
        </div>
      ))}
    </div>
  );
}
