import { useState } from "preact/hooks";
import type { ErrorState, Failure, OneComputation, OneError } from "../../api/server.gen";
import { count, counted } from "../../model/text/format";
import { Panel } from "../../widgets/basics";
import { CardTable } from "../../widgets/table/card-table";
import { Traceback } from "../../widgets/traceback";
import { ActionButton } from "../parts/action-button";
import { ErrorPill } from "../parts/pills";
import { ScrollRegion } from "../parts/scroll-region";
import { SourceCode } from "../parts/source-code";
import { Ago, minute } from "../parts/time-text";
import { useCan, useTeam, useTitle } from "../shell/context";
import { Link } from "../shell/link";
import { Loaded } from "../shell/loaded";
import { useLive, useResource } from "../shell/resources";
import { ErrorSidebar } from "./error-sidebar";

/** The page of an error group: traceback, occurrences, common properties and actions. */
export function ErrorPage({ fingerprint }: { fingerprint: string }) {
  const { api, account } = useTeam();
  const canWrite = useCan("write");
  const path = `errors/${encodeURIComponent(fingerprint)}`;
  const found = useLive<OneError>(null, () => api.get(path), [fingerprint, account], 5000);
  useTitle(found.value?.type);
  const [at, setAt] = useState(0);
  const mark = (state: ErrorState) => api.send("PATCH", path, { state }).then(found.reload);
  return (
    <main class="wide" data-testid="page-error">
      <div class="crumbs">
        <Link to={[account, "errors"]}>Errors</Link> / <span>{fingerprint}</span>
      </div>
      <Loaded from={found} lines={10}>
        {(g) => {
          const sample = g.latest[Math.min(at, g.latest.length - 1)];
          return (
            <>
              <div class="title">
                <ErrorPill state={g.state} />
                <h1>
                  {g.type}
                  {sample?.prefix && (
                    <>
                      {" "}
                      in <code>{sample.prefix}</code>
                    </>
                  )}
                </h1>
                {canWrite && <ErrorActions state={g.state} mark={mark} />}
              </div>
              <p class="answer">
                <b>
                  {counted(g.count, "occurrence")} on {counted(g.n_clusters, "cluster")}.
                </b>{" "}
                <span>
                  {g.state === "regressed" ? "It came back after being resolved. " : ""}
                  {sample ? sample.cause_message || sample.message : g.message}
                  {sample && sample.type !== g.type && (
                    <>
                      ; raised as <code>{sample.type}</code>: {sample.message}
                    </>
                  )}
                </span>
              </p>
              <ErrorMetrics group={g} />
              <div class="cols mt">
                <div class="c8">
                  <Traceback
                    type={g.type}
                    message={g.message}
                    text={sample?.traceback || g.traceback}
                    title={
                      g.latest.length > 1
                        ? `Traceback ${Math.min(at, g.latest.length - 1) + 1} of ${g.latest.length}`
                        : "Traceback"
                    }
                  />
                  {sample?.computation_id && <ErrorCode failure={sample} />}
                  <Occurrences failures={g.latest} selected={at} onSelect={setAt} />
                </div>
                <div class="c4">
                  <ErrorSidebar group={g} sample={sample} />
                </div>
              </div>
            </>
          );
        }}
      </Loaded>
    </main>
  );
}

interface ActionProps {
  state: ErrorState;
  mark: (state: ErrorState) => Promise<unknown>;
}

function ErrorActions({ state, mark }: ActionProps) {
  return (
    <div class="acts">
      {state !== "ignored" && (
        <ActionButton run={() => mark("ignored")} testid="ignore">
          Ignore
        </ActionButton>
      )}
      {state !== "resolved" && (
        <ActionButton class="primary" run={() => mark("resolved")} testid="resolve">
          Resolve
        </ActionButton>
      )}
      {(state === "resolved" || state === "ignored") && (
        <ActionButton run={() => mark("open")} testid="reopen">
          Reopen
        </ActionButton>
      )}
    </div>
  );
}

/** The code of the failed computation, if it was recorded. */
function ErrorCode({ failure: f }: { failure: Failure }) {
  const { api, account } = useTeam();
  const found = useResource<OneComputation>(
    () => api.get(`clusters/${encodeURIComponent(f.cluster_id)}/computations/${encodeURIComponent(f.computation_id)}`),
    [account, f.cluster_id, f.computation_id],
  );
  if (!found.value?.code) return null;
  return (
    <Panel
      title="Failed computation"
      note={found.value.code_file}
      right={<Link to={[account, "clusters", f.cluster_id, "computations", f.computation_id]}>Open</Link>}
      class="mt"
      testid="error-code"
    >
      <SourceCode code={found.value.code} hot={found.value.code_line} />
    </Panel>
  );
}

function ErrorMetrics({ group: g }: { group: OneError }) {
  return (
    <dl class="panel metrics eq mt">
      {[
        ["Occurrences", count(g.count), `${count(g.latest.length)} shown below`],
        ["Clusters", count(g.n_clusters), ""],
        ["Users", count(g.users.length), g.users.slice(0, 4).join(", ")],
      ].map(([label, value, note]) => (
        <div class="metric" key={label}>
          <dt>{label}</dt>
          <dd class="v">{value}</dd>
          <dd class="s" title={note}>
            {note}
          </dd>
        </div>
      ))}
      <div class="metric">
        <dt>First seen</dt>
        <dd class="v">
          <Ago at={g.first_seen} />
        </dd>
        <dd class="s">{minute(g.first_seen)}</dd>
      </div>
      <div class="metric">
        <dt>Last seen</dt>
        <dd class="v">
          <Ago at={g.last_seen} />
        </dd>
        <dd class="s">{minute(g.last_seen)}</dd>
      </div>
    </dl>
  );
}

interface Props {
  failures: readonly Failure[];
  selected: number;
  onSelect: (index: number) => void;
}

/** The latest occurrences of an error. A button shows the traceback of an occurrence. */
function Occurrences({ failures, selected, onSelect }: Props) {
  const { account } = useTeam();
  return (
    <Panel title="Occurrences" class="mt">
      <ScrollRegion label="Occurrences">
        <CardTable>
          <thead>
            <tr>
              <th>Cluster</th>
              <th>Prefix</th>
              <th>User</th>
              <th class="num">Count</th>
              <th class="num">Time</th>
              <th />
            </tr>
          </thead>
          <tbody>
            {failures.map((f, i) => (
              <tr key={f.id} class={i === selected ? "sel" : ""}>
                <td>
                  {f.computation_id ? (
                    <Link to={[account, "clusters", f.cluster_id, "computations", f.computation_id]}>
                      {f.cluster_name || f.cluster_id}
                    </Link>
                  ) : (
                    <Link to={[account, "clusters", f.cluster_id]}>{f.cluster_name || f.cluster_id}</Link>
                  )}
                </td>
                <td class="mono">{f.prefix}</td>
                <td>{f.user}</td>
                <td class="num">
                  {count(f.count)}
                  {f.will_retry ? " (retried)" : ""}
                </td>
                <td class="num">
                  <Ago at={f.time} />
                </td>
                <td>
                  {f.traceback && (
                    <button type="button" class="link" onClick={() => onSelect(i)}>
                      Show traceback
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </CardTable>
      </ScrollRegion>
    </Panel>
  );
}
