import type { Failure, OneError } from "../api/server.gen";
import { counted } from "../model/format";
import { Panel } from "../widgets/basics";
import { useTeam } from "./context";
import { Shares, tally } from "./error-shares";
import { Link } from "./link";

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
