import { useState } from "preact/hooks";
import type { ErrorState, OneError } from "../api/server.gen";
import { counted } from "../model/format";
import { Traceback } from "../widgets/traceback";
import { ActionButton } from "./action-button";
import { useCan, useTeam, useTitle } from "./context";
import { ErrorCode } from "./error-code";
import { ErrorMetrics } from "./error-metrics";
import { Occurrences } from "./error-occurrences";
import { ErrorSidebar } from "./error-sidebar";
import { Link } from "./link";
import { Loaded } from "./loaded";
import { ErrorPill } from "./pills";
import { useLive } from "./resources";

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
