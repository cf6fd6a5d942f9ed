import type { OneComputation } from "../api/server.gen";
import { count, counted } from "../model/format";
import { copy } from "../widgets/basics";
import { Icon } from "../widgets/icon";
import { toast } from "../widgets/toast";
import { callOf } from "./cluster";
import { useLive, useMay, useTeam } from "./context";
import { Act, Ago, ComputationPill, Link, Loaded, Scroll, seconds, Source } from "./parts";
import { Viewing } from "./viewing";

/** How long it took beside the median of its earlier runs that finished; nothing where there are none. */
export function compared(c: Pick<OneComputation, "state" | "duration" | "earlier">): string {
  const done = c.earlier.filter((e) => e.state === "done").map((e) => e.duration).sort((a, b) => a - b);
  if (c.state !== "done" || done.length === 0) return "";
  const median = (done[(done.length - 1) >> 1] + done[done.length >> 1]) / 2;
  if (median <= 0) return "";
  const change = Math.round((100 * (c.duration - median)) / median);
  return `${change === 0 ? "as long as" : `${count(Math.abs(change))} % ${change > 0 ? "longer" : "shorter"} than`} the median of ${done.length === 1 ? "1 earlier run" : `${done.length} earlier runs`} · `;
}

/** One computation: its code, its earlier runs, and its report. */
export function ComputationPage({ cluster, id }: { cluster: string; id: string }) {
  const { api, account, router } = useTeam();
  const may = useMay("write");
  const path = `clusters/${encodeURIComponent(cluster)}/computations/${encodeURIComponent(id)}`;
  const found = useLive<OneComputation>(cluster, () => api.get(path), [cluster, id, account], 3000);
  const share = async () => {
    const report = await api.send<{ url: string }>("POST", `${path}/share`);
    copy(report.url, "Shared; the link is on the clipboard");
    toast("The report is listed under Reports");
  };
  return (
    <>
      <div class="crumbs wide" data-testid="page-computation">
        <Link to={[account, "clusters"]}>Clusters</Link> / <Link to={[account, "clusters", cluster]}>{found.value?.cluster_name || cluster}</Link> / <span>{id}</span>
        <div class="right">{may && <Act class="sm" run={share} testid="share"><Icon name="share" />Share as report</Act>}</div>
      </div>
      <div class="wide headroom">
        <Loaded from={found} lines={3}>
          {(c) => (
            <>
              <div class="title">
                <ComputationPill state={c.state} />
                <h1><code>{callOf(c)}</code></h1>
                <span class="faint" data-testid="compared">{compared(c)}{counted(c.n_tasks, "task")}{c.n_submissions > 1 && <span title="Dask puts together what is submitted while something runs; the code is that of the first"> of {count(c.n_submissions)} submissions</span>} · {seconds(c.duration)} · <Ago at={c.start} /> · {c.user}</span>
              </div>
              <div class="folds">
                <details data-testid="code">
                  <summary>Code <span class="faint">{c.code_file}</span></summary>
                  {c.code ? <Source code={c.code} hot={c.code_line} /> : <p class="callout">The code was not recorded: it is switched off, or the cluster was recorded by a preload alone.</p>}
                </details>
                {c.earlier.length > 0 && (
                  <details data-testid="earlier">
                    <summary>{counted(c.earlier.length, "earlier run")} of the same code</summary>
                    <Scroll label="Earlier runs"><table class="data compact">
                      <thead><tr><th>Started</th><th>State</th><th class="num">Duration</th><th class="num">Tasks</th><th>Cluster</th></tr></thead>
                      <tbody>
                        {c.earlier.map((e) => (
                          <tr key={`${e.cluster_id} ${e.id}`}>
                            <td><Link to={[account, "clusters", e.cluster_id, "computations", e.id]}><Ago at={e.start} /></Link></td>
                            <td><ComputationPill state={e.state} /></td>
                            <td class="num">{seconds(e.duration)}</td>
                            <td class="num">{count(e.n_tasks)}</td>
                            <td><Link to={[account, "clusters", e.cluster_id]}><span class="cut">{e.cluster_name || e.cluster_id}</span></Link></td>
                          </tr>
                        ))}
                      </tbody>
                    </table></Scroll>
                  </details>
                )}
              </div>
            </>
          )}
        </Loaded>
      </div>
      <Viewing key={id} prefix={`${router.root}/${encodeURIComponent(account)}/clusters/${encodeURIComponent(cluster)}/computations/${encodeURIComponent(id)}/view`} live={found.value?.state === "running"} />
    </>
  );
}
