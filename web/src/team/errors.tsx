import { useState } from "preact/hooks";
import type { Page } from "../api/server";
import type { ErrorState, Failure, ListedError, OneComputation, OneError } from "../api/server.gen";
import { count, counted } from "../model/format";
import { useParam } from "../model/hooks";
import { Empty, Panel, Search, Seg } from "../widgets/basics";
import { Traceback } from "../widgets/traceback";
import { useLive, useMay, usePages, useResource, useSettledText, useTeam, useTitle } from "./context";
import { Act, Ago, ErrorPill, Link, Loaded, minute, Scroll, Source, Spark } from "./parts";

const STATES = [["open,regressed", "Open"], ["resolved", "Resolved"], ["ignored", "Ignored"], ["", "All"]] as const;

const STEP = 100;

const EMPTY: Record<string, string> = { "open,regressed": "Nothing is open", resolved: "Nothing is resolved", ignored: "Nothing is ignored" };

/** Failures that are the same, grouped, the newest first. */
export function Errors() {
  const { api, account } = useTeam();
  const [state, setState] = useParam("state", "open,regressed");
  const [find, setFind] = useParam("q");
  const search = useSettledText(find);
  const query = { state: state === "all" ? "" : state, search, limit: STEP };
  const key = [account, state, search];
  const groups = useLive<Page<ListedError>>(null, () => api.get("errors", query), key, 4000);
  const { items, more, load } = usePages<ListedError, Page<ListedError>>(groups, (cursor) => api.get("errors", { ...query, cursor }), (g) => g.fingerprint, key);
  return (
    <main class="wide" data-testid="page-errors">
      <div class="viewhead"><h1>Errors</h1><span class="note">failures of the same kind are one line</span></div>
      {state === "open,regressed" && !search && groups.value && <Answer items={items} more={more} />}
      <Panel>
        <div class="filters">
          <Search label="Type, message or traceback" value={find} onInput={setFind} testid="error-search" />
          <Seg label="State" options={STATES.map(([id, word]) => [id || "all", word] as const)} value={state || "all"} onChange={(id) => setState(id)} testid="error-state" />
        </div>
        <Loaded from={groups}>
          {() => {
            if (items.length === 0) return search ? <Empty title="Nothing matches"><button type="button" class="link" onClick={() => setFind("")}>Clear the search</button></Empty> : <Empty title={EMPTY[state] ?? "Nothing failed"}>A failure is listed here as soon as a cluster that is recorded has one.</Empty>;
            return (
              <div class="tablebox scroll" tabIndex={0} role="region" aria-label="Errors">
                <table class="data">
                  <thead><tr><th>Error</th><th>State</th><th>Last 48 hours</th><th class="num">Times</th><th class="num">Clusters</th><th>Users</th><th class="num">First seen</th><th class="num">Last seen</th></tr></thead>
                  <tbody>
                    {items.map((g) => (
                      <tr key={g.fingerprint} data-testid="error-row">
                        <td><Link class="name mono cut" to={[account, "errors", g.fingerprint]} title={`${g.type}: ${g.message}`}>{g.type}: {g.message}</Link></td>
                        <td><ErrorPill state={g.state} /></td>
                        <td><Spark values={g.hours} label="failures an hour, last 48 hours" tone="var(--st-erred)" /></td>
                        <td class="num">{count(g.count)}</td>
                        <td class="num">{count(g.n_clusters)}</td>
                        <td>{g.users.slice(0, 3).join(", ")}{g.users.length > 3 ? ` and ${g.users.length - 3} more` : ""}</td>
                        <td class="num"><Ago at={g.first_seen} /></td>
                        <td class="num"><Ago at={g.last_seen} /></td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            );
          }}
        </Loaded>
        {more && <div class="pfoot"><Act class="sm push" run={load} testid="load-more">Load {STEP} more</Act></div>}
      </Panel>
    </main>
  );
}

/** What failed and is still to be looked at, in a sentence. */
function Answer({ items, more }: { items: readonly ListedError[]; more: boolean }) {
  if (items.length === 0) return <p class="answer lead" data-testid="answer"><b>Nothing is open.</b> <span>What failed is resolved or ignored, or nothing failed.</span></p>;
  const [newest] = items;
  const again = items.filter((g) => g.state === "regressed").length;
  return (
    <p class="answer lead" data-testid="answer">
      <b>{more ? `More than ${count(items.length)} kinds of failure are open.` : items.length === 1 ? "1 kind of failure is open." : `${count(items.length)} kinds of failure are open.`}</b>{" "}
      <span>{again > 0 && `${count(again)} came back after being resolved. `}The latest was {newest.type}, <Ago at={newest.last_seen} />, {counted(newest.count, "time")} in all.</span>
    </p>
  );
}

/** One error: the traceback, who had it, where, and what to do with it. */
export function ErrorPage({ fingerprint }: { fingerprint: string }) {
  const { api, account } = useTeam();
  const may = useMay("write");
  const path = `errors/${encodeURIComponent(fingerprint)}`;
  const found = useLive<OneError>(null, () => api.get(path), [fingerprint, account], 5000);
  useTitle(found.value?.type);
  const [at, setAt] = useState(0);
  const mark = (state: ErrorState) => api.send("PATCH", path, { state }).then(found.reload);
  return (
    <main class="wide" data-testid="page-error">
      <div class="crumbs"><Link to={[account, "errors"]}>Errors</Link> / <span>{fingerprint}</span></div>
      <Loaded from={found} lines={10}>
        {(g) => {
          const sample = g.latest[Math.min(at, g.latest.length - 1)];
          const prefixes = tally(g.latest, (f) => f.prefix);
          return (
            <>
              <div class="title">
                <ErrorPill state={g.state} />
                <h1>{g.type}{sample?.prefix && <> in <code>{sample.prefix}</code></>}</h1>
                <div class="acts">
                  {may && g.state !== "ignored" && <Act run={() => mark("ignored")} testid="ignore">Ignore</Act>}
                  {may && g.state !== "resolved" && <Act class="primary" run={() => mark("resolved")} testid="resolve">Resolve</Act>}
                  {may && (g.state === "resolved" || g.state === "ignored") && <Act run={() => mark("open")} testid="reopen">Open again</Act>}
                </div>
              </div>
              <p class="answer"><b>It happened {g.count === 1 ? "once" : `${count(g.count)} times`} on {g.n_clusters === 1 ? "1 cluster" : `${count(g.n_clusters)} clusters`}.</b> <span>{g.state === "regressed" ? "It came back after it was resolved. " : ""}{sample ? sample.cause_message || sample.message : g.message}{sample && sample.type !== g.type && <>; raised as <code>{sample.type}</code>: {sample.message}</>}</span></p>
              <dl class="panel metrics eq mt">
                {[["Executions", count(g.count), `${count(g.latest.length)} of them below`], ["Clusters", count(g.n_clusters), ""], ["Users", count(g.users.length), g.users.slice(0, 4).join(", ")]].map(([label, value, note]) => (
                  <div class="metric" key={label}><dt>{label}</dt><dd class="v">{value}</dd><dd class="s" title={note}>{note}</dd></div>
                ))}
                <div class="metric"><dt>First seen</dt><dd class="v"><Ago at={g.first_seen} /></dd><dd class="s">{minute(g.first_seen)}</dd></div>
                <div class="metric"><dt>Last seen</dt><dd class="v"><Ago at={g.last_seen} /></dd><dd class="s">{minute(g.last_seen)}</dd></div>
              </dl>
              <div class="cols mt">
                <div class="c8">
                  <Traceback type={g.type} message={g.message} text={sample?.traceback || g.traceback} title={g.latest.length > 1 ? `Traceback, sample ${Math.min(at, g.latest.length - 1) + 1} of ${g.latest.length}` : "Traceback"} />
                  {sample?.computation_id && <Code failure={sample} />}
                  <Panel title="Where it happened" class="mt">
                    <Scroll label="Where it happened"><table class="data">
                      <thead><tr><th>Cluster</th><th>Prefix</th><th>User</th><th class="num">Times</th><th class="num">When</th><th /></tr></thead>
                      <tbody>
                        {g.latest.map((f, i) => (
                          <tr key={f.id} class={i === at ? "sel" : ""}>
                            <td>{f.computation_id ? <Link to={[account, "clusters", f.cluster_id, "computations", f.computation_id]}>{f.cluster_name || f.cluster_id}</Link> : <Link to={[account, "clusters", f.cluster_id]}>{f.cluster_name || f.cluster_id}</Link>}</td>
                            <td class="mono">{f.prefix}</td>
                            <td>{f.user}</td>
                            <td class="num">{count(f.count)}{f.will_retry ? " (retried)" : ""}</td>
                            <td class="num"><Ago at={f.time} /></td>
                            <td>{f.traceback && <button type="button" class="link" onClick={() => setAt(i)}>traceback</button>}</td>
                          </tr>
                        ))}
                      </tbody>
                    </table></Scroll>
                  </Panel>
                </div>
                <div class="c4">
                  <Panel title="What they share">
                    <Shares title="Prefix" parts={prefixes} />
                    <Shares title="User" parts={tally(g.latest, (f) => f.user)} />
                    <Shares title="Worker" parts={tally(g.latest, (f) => f.worker)} />
                    <Shares title="Retry" parts={tally(g.latest, (f) => (f.will_retry ? "tried again" : "final"))} />
                    <div class="pfoot"><span>of the {count(g.latest.length)} latest</span></div>
                  </Panel>
                  <Panel title="Versions that had it" class="mt">
                    <dl class="kv">
                      {["python", "dask", "distributed", "numpy", "pandas"].filter((name) => g.versions[name]).map((name) => (
                        <>
                          <dt key={name}>{name}</dt><dd>{g.versions[name].join(", ")}</dd>
                        </>
                      ))}
                    </dl>
                  </Panel>
                  {sample && (
                    <Panel title="This sample" class="mt">
                      <dl class="kv">
                        {sample.key && <><dt>Task</dt><dd class="mono cut" title={sample.key}>{sample.key || <span class="faint">not recorded</span>}</dd></>}
                        <dt>Worker</dt><dd class="mono cut" title={sample.worker}>{sample.worker}</dd>
                        <dt>Cluster</dt><dd><Link to={[account, "clusters", sample.cluster_id]}>{sample.cluster_name || sample.cluster_id}</Link></dd>
                        {sample.type !== g.type && <><dt>Raised as</dt><dd class="mono cut" title={sample.message}>{sample.type}</dd></>}
                      </dl>
                    </Panel>
                  )}
                </div>
              </div>
            </>
          );
        }}
      </Loaded>
    </main>
  );
}

/** The code of the computation that failed, where it was recorded. */
function Code({ failure: f }: { failure: Failure }) {
  const { api, account } = useTeam();
  const found = useResource<OneComputation>(() => api.get(`clusters/${encodeURIComponent(f.cluster_id)}/computations/${encodeURIComponent(f.computation_id)}`), [account, f.cluster_id, f.computation_id]);
  if (!found.value?.code) return null;
  return <Panel title="The computation that failed" note={found.value.code_file} right={<Link to={[account, "clusters", f.cluster_id, "computations", f.computation_id]}>Open</Link>} class="mt" testid="error-code"><Source code={found.value.code} hot={found.value.code_line} /></Panel>;
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
        <div class="share" key={name} style={{ "--share": String(n / total) }}><span class="mono cut">{name || "unknown"}</span><span>{Math.round((100 * n) / total)} %</span></div>
      ))}
    </div>
  );
}
