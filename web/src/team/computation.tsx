import type { Computation, Prefix } from "../api/server.gen";
import { count } from "../model/format";
import { copy, Panel } from "../widgets/basics";
import { Icon } from "../widgets/icon";
import { toast } from "../widgets/toast";
import { callOf } from "./cluster";
import { useLive, useMay, useTeam } from "./context";
import { Act, Ago, ComputationPill, Link, Loaded, Scroll, seconds } from "./parts";
import { Viewing } from "./viewing";

interface OneComputation extends Computation {
  prefixes: Prefix[];
  earlier: Computation[];
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
                <span class="faint">{count(c.n_tasks)} tasks · {seconds(c.duration)} · <Ago at={c.start} /> · {c.user}</span>
              </div>
              <div class="cols mt">
                <div class={c.earlier.length > 0 ? "c7" : "c12"}>
                  <Panel title="Code" note={c.code_file}>
                    {c.code ? <pre class="src" tabIndex={0}>{c.code.split("\n").map((line, i) => <span key={i} class={i === c.code_line ? "hot" : ""}><i>{i + 1}</i> {line}</span>)}</pre> : <p class="callout">The code was not recorded: it is switched off, or the cluster was recorded by a preload alone.</p>}
                  </Panel>
                </div>
                {c.earlier.length > 0 && (
                  <div class="c5">
                    <Panel title="Earlier runs of the same code" testid="earlier">
                      <Scroll label="Earlier runs"><table class="data compact">
                        <thead><tr><th>Started</th><th>State</th><th class="num">Duration</th><th class="num">Tasks</th></tr></thead>
                        <tbody>
                          {c.earlier.map((e) => (
                            <tr key={`${e.cluster_id} ${e.id}`}>
                              <td><Link to={[account, "clusters", e.cluster_id, "computations", e.id]}><Ago at={e.start} /></Link></td>
                              <td><ComputationPill state={e.state} /></td>
                              <td class="num">{seconds(e.duration)}</td>
                              <td class="num">{count(e.n_tasks)}</td>
                            </tr>
                          ))}
                        </tbody>
                      </table></Scroll>
                    </Panel>
                  </div>
                )}
              </div>
            </>
          )}
        </Loaded>
      </div>
      <Viewing key={id} prefix={`${router.root}/${encodeURIComponent(account)}/clusters/${encodeURIComponent(cluster)}/computations/${encodeURIComponent(id)}/view`} />
    </>
  );
}
