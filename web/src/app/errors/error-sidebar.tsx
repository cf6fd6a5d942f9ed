import type { Failure, OneError } from "../../api/server.gen";
import { counted } from "../../model/text/format";
import { Panel } from "../../widgets/basics";
import { Ago } from "../parts/time-text";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";

/** The shown sample, what the occurrences share, and affected versions. */
export function ErrorSidebar({ group: g, sample }: { group: OneError; sample: Failure | undefined }) {
  const { account } = useTeam();
  const versions = ["python", "dask", "distributed", "numpy", "pandas"].filter((name) => g.versions[name]);
  return (
    <>
      {sample && (
        <Panel title="This sample">
          <dl class="kv" data-testid="sample">
            <dt>Result</dt>
            <dd>{sample.will_retry ? "retried" : <span class="bad">failed for good</span>}</dd>
            <dt>Time</dt>
            <dd>
              <Ago at={sample.time} />
            </dd>
            <dt>Run</dt>
            <dd>
              <Link to={[account, "clusters", sample.cluster_id]}>{sample.cluster_name || sample.cluster_id}</Link>
              {sample.computation_id && (
                <>
                  {", "}
                  <Link to={[account, "clusters", sample.cluster_id, "computations", sample.computation_id]}>
                    computation
                  </Link>
                </>
              )}
            </dd>
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
            {sample.count > 1 && (
              <>
                <dt>Count</dt>
                <dd>{counted(sample.count, "equal occurrence")}</dd>
              </>
            )}
            {sample.type !== g.type && (
              <>
                <dt>Raised as</dt>
                <dd class="mono cut" title={sample.message}>
                  {sample.type}: {sample.message}
                </dd>
              </>
            )}
          </dl>
        </Panel>
      )}
      <Panel title="What they share" class={sample ? "mt" : ""}>
        <Shares title="Prefix" parts={tally(g.latest, (f) => f.prefix)} />
        <Shares title="User" parts={tally(g.latest, (f) => f.user)} />
        <Shares title="Worker" parts={tally(g.latest, (f) => f.worker)} />
        <div class="pfoot">
          <span>Based on the latest {counted(g.latest.length, "occurrence")}</span>
        </div>
      </Panel>
      {versions.length > 0 && (
        <Panel title="Affected versions" class="mt">
          <dl class="kv">
            {versions.map((name) => (
              <>
                <dt key={name}>{name}</dt>
                <dd>{g.versions[name].join(", ")}</dd>
              </>
            ))}
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
