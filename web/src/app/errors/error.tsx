import { useLayoutEffect } from "preact/hooks";
import type { ErrorState, Failure, OneComputation, OneError } from "../../api/server.gen";
import { errorName, impactNote } from "../../model/error-impact";
import { useParam } from "../../model/page/hooks";
import { count, counted } from "../../model/text/format";
import { takesKeys } from "../../viewer/viewer-keys";
import { Panel, Swatch } from "../../widgets/basics";
import { Icon } from "../../widgets/icon";
import { MetricStrip } from "../../widgets/metric-strip";
import { Traceback } from "../../widgets/traceback";
import { ActionButton } from "../parts/action-button";
import { ErrorPill } from "../parts/pills";
import { SourceCode } from "../parts/source-code";
import { Ago, minute } from "../parts/time-text";
import { useCan, useTeam, useTitle } from "../shell/context";
import { Link } from "../shell/link";
import { Loaded } from "../shell/loaded";
import { useLive, useResource } from "../shell/resources";
import { ErrorSidebar } from "./error-sidebar";
import { OccurrenceBars } from "./occurrence-bars";

/** The page of an error group: its impact, occurrences over time, one sample, common properties and actions. */
export function ErrorPage({ fingerprint }: { fingerprint: string }) {
  const { api, account } = useTeam();
  const canWrite = useCan("write");
  const path = `errors/${encodeURIComponent(fingerprint)}`;
  const found = useLive<OneError>(null, () => api.get(path), [fingerprint, account], 5000);
  useTitle(found.value?.type);
  const mark = (state: ErrorState) => api.send("PATCH", path, { state }).then(found.reload);
  return (
    <main class="wide" data-testid="page-error">
      <div class="crumbs">
        <Link to={[account, "errors"]}>Errors</Link> /{" "}
        <span class="cut" title={fingerprint}>
          {found.value ? errorName(found.value) : ""}
        </span>
      </div>
      <Loaded from={found} lines={10}>
        {(g) => (
          <>
            <div class="title">
              <ErrorPill state={g.state} />
              <h1>
                {g.type}
                {g.function && (
                  <>
                    {" "}
                    in <code>{g.function}</code>
                  </>
                )}
              </h1>
              {canWrite && <ErrorActions state={g.state} mark={mark} />}
            </div>
            <Impact group={g} />
            <Timeline group={g} />
            <ErrorMetrics group={g} />
            <Samples group={g} />
          </>
        )}
      </Loaded>
    </main>
  );
}

/** What it did, in a sentence. */
function Impact({ group: g }: { group: OneError }) {
  const runs = counted(g.n_clusters, "run");
  const fact =
    g.n_computations > 0
      ? `It ended ${counted(g.n_computations, "computation")} (${runs}).`
      : g.n_fatal > 0
        ? `It failed ${counted(g.n_fatal, "time")} (${runs}).`
        : `${g.count === 1 ? "It was retried" : `All ${count(g.count)} occurrences were retried`} (${runs}).`;
  return (
    <p class="answer" data-testid="answer">
      <b>{fact}</b>{" "}
      <span>
        {g.n_fatal > 0 && `${impactNote(g)}. `}
        {g.state === "regressed" && "It came back after being resolved. "}
        {g.message && <code>{g.message}</code>}
      </span>
    </p>
  );
}

const DAY_MS = 86_400_000;

/** Occurrences of the last week. The sample and the metrics have the same numbers in words. */
function Timeline({ group: { timeline: t } }: { group: OneError }) {
  const total = t.counts.reduce((a, b) => a + b, 0);
  const start = t.start ? Date.parse(t.start) : 0;
  const midnight = Math.ceil(start / DAY_MS);
  const days = Math.round((t.counts.length * t.step * 1000) / DAY_MS);
  const text = `${counted(total, "occurrence")} in ${days} days, per ${t.step / 3600} hours`;
  return (
    <Panel
      title="Occurrences"
      note={text}
      class="mt"
      testid="error-timeline"
      right={
        <ul class="keylist">
          <li>
            <Swatch colour="--act-failed" />
            failed
          </li>
          <li>
            <Swatch colour="--dot" />
            retried
          </li>
        </ul>
      }
    >
      <div class="timeline">
        <OccurrenceBars counts={t.counts} fatal={t.fatal} height={88} label={text} />
        <div class="days" aria-hidden="true">
          {Array.from({ length: days }, (_, i) => (midnight + i) * DAY_MS).map((at) => (
            <span key={at} style={{ left: `${(100 * (at - start)) / (t.counts.length * t.step * 1000)}%` }}>
              {new Date(at).toISOString().slice(5, 10)}
            </span>
          ))}
        </div>
      </div>
    </Panel>
  );
}

/** One of the latest occurrences, with buttons to the previous and the next one. */
function Samples({ group: g }: { group: OneError }) {
  const [place, setPlace] = useParam("sample", "1");
  const kept = g.latest.length;
  const at = Math.min(Math.max(1, Number.parseInt(place, 10) || 1), Math.max(1, kept));
  const sample: Failure | undefined = g.latest[at - 1];
  // Not useEffect: a key pressed before the next frame would go on from the sample before.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (takesKeys(event.target as HTMLElement | null)) return;
      if (event.key === "[" && at > 1) setPlace(String(at - 1));
      if (event.key === "]" && at < kept) setPlace(String(at + 1));
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [at, kept]);
  const pager = kept > 1 && (
    <>
      <button
        type="button"
        class="btn sm"
        aria-label="Previous sample"
        title="Previous sample ([)"
        disabled={at <= 1}
        onClick={() => setPlace(String(at - 1))}
      >
        <Icon name="left" />
      </button>
      <span class="pager" data-testid="sample-place">
        {count(at)} of {count(kept)}
      </span>
      <button
        type="button"
        class="btn sm"
        aria-label="Next sample"
        title="Next sample (])"
        disabled={at >= kept}
        onClick={() => setPlace(String(at + 1))}
      >
        <Icon name="right" />
      </button>
    </>
  );
  return (
    <div class="cols mt">
      <div class="c8">
        <Traceback
          title="Sample"
          type={sample ? sample.cause_type || sample.type : g.type}
          message={sample ? sample.cause_message || sample.message : g.message}
          text={sample?.traceback || g.traceback}
          tools={pager}
        />
        {sample?.computation_id && <ErrorCode failure={sample} />}
      </div>
      <div class="c4">
        <ErrorSidebar group={g} sample={sample} />
      </div>
    </div>
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

/** The code that made the computation, if it was recorded. */
function ErrorCode({ failure: f }: { failure: Failure }) {
  const { api, account } = useTeam();
  const found = useResource<OneComputation>(
    () => api.get(`clusters/${encodeURIComponent(f.cluster_id)}/computations/${encodeURIComponent(f.computation_id)}`),
    [account, f.cluster_id, f.computation_id],
  );
  if (!found.value?.code) return null;
  // Dask merges calls, and records the code of the first one: another one may have made the task that failed.
  const calls = found.value.n_submissions;
  return (
    <Panel
      title="Calling code"
      note={calls > 1 ? `${found.value.code_file}, the first of ${count(calls)} calls` : found.value.code_file}
      right={<Link to={[account, "clusters", f.cluster_id, "computations", f.computation_id]}>Open</Link>}
      class="mt"
      testid="error-code"
    >
      <SourceCode code={found.value.code} hot={calls > 1 ? -1 : found.value.code_line} />
    </Panel>
  );
}

function ErrorMetrics({ group: g }: { group: OneError }) {
  const retried = Math.max(0, g.count - g.n_fatal);
  return (
    <div class="mt">
      <MetricStrip
        metrics={[
          { id: "ended", label: "Ended computations", value: count(g.n_computations), note: "" },
          { id: "failed", label: "Failed", value: count(g.n_fatal), note: `of ${counted(g.count, "occurrence")}` },
          { id: "retried", label: "Retried", value: count(retried), note: g.n_fatal === 0 ? "all of them" : "" },
          { id: "runs", label: "Runs", value: count(g.n_clusters), note: g.users.slice(0, 4).join(", ") },
          { id: "first", label: "First seen", value: <Ago at={g.first_seen} />, note: minute(g.first_seen) },
          { id: "last", label: "Last seen", value: <Ago at={g.last_seen} />, note: minute(g.last_seen) },
        ]}
      />
    </div>
  );
}
