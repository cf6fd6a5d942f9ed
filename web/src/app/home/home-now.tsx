import type { Cluster, Overview } from "../../api/server.gen";
import { count, counted, money, percent } from "../../model/text/format";
import { Icon } from "../../widgets/icon";
import { isStuck } from "../parts/pills";
import { Ago, seconds } from "../parts/time-text";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";

function ClusterLink({ cluster: c }: { cluster: Cluster }) {
  return <Link to={[c.account, "clusters", c.id]}>{c.name || c.id}</Link>;
}

function NowPanel({
  title,
  icon,
  tone,
  note,
  empty,
  children,
  testid,
}: {
  title: string;
  icon: "stream" | "errors" | "coin";
  tone: string;
  note: string;
  empty: string;
  children: preact.ComponentChildren[];
  testid: string;
}) {
  return (
    <section class="panel now c4" aria-label={title} data-testid={`now-${testid}`}>
      <div class="phead">
        <h2>
          <span style={{ color: `var(${tone})` }}>
            <Icon name={icon} />
          </span>{" "}
          {title}
        </h2>
        <span class="count">{note}</span>
      </div>
      {children.length > 0 ? <ul>{children}</ul> : <p class="callout">{empty}</p>}
    </section>
  );
}

export function RunningPanel({ o }: { o: Overview }) {
  return (
    <NowPanel
      title="Running now"
      icon="stream"
      tone="--st-running"
      note={`${count(o.states.running ?? 0)} computing, ${count(o.states.idle ?? 0)} idle`}
      empty="No computations are running."
      testid="running"
    >
      {o.running.map(({ cluster: c, done, total }) => (
        <li key={c.id}>
          <b>
            <ClusterLink cluster={c} />
          </b>
          <span class={isStuck(c) ? "bad" : ""}>{isStuck(c) ? "stuck" : total > 0 ? percent(done / total) : ""}</span>
          <small title={c.reason}>
            {c.user} · {total > 0 && !isStuck(c) ? `${count(done)} of ${counted(total, "task")}` : c.reason}
          </small>
          <small>
            {total > 0 && (
              <span class="mbar" style="width:120px" role="img" aria-label={`${percent(done / total)} done`}>
                <i style={{ width: `${(100 * done) / total}%`, background: "var(--accent-fill)" }} />
              </span>
            )}
          </small>
        </li>
      ))}
    </NowPanel>
  );
}

export function FailedPanel({ o }: { o: Overview }) {
  const { account } = useTeam();
  return (
    <NowPanel
      title="Failed since midnight"
      icon="errors"
      tone="--st-erred"
      note={`${count(o.n_failed)} of ${counted(o.n_finished, "computation")} that finished or failed`}
      empty="No failed computations."
      testid="failed"
    >
      {o.failed.map((c) => (
        <li key={`${c.cluster_id} ${c.id}`}>
          <b>
            <Link to={[account, "clusters", c.cluster_id, "computations", c.id]}>{c.cluster_name || c.cluster_id}</Link>
          </b>
          <span class="muted">
            <Ago at={c.stop ?? c.start} />
          </span>
          <small title={c.cause}>
            {c.cause ||
              (c.state === "failed" ? `${count(c.n_errors)} of ${counted(c.n_tasks, "task")} failed` : c.state)}
          </small>
          <small>
            {c.user}
            {c.n_failed > 1 && ` · ${counted(c.n_failed, "computation")}`}
          </small>
        </li>
      ))}
    </NowPanel>
  );
}

export function IdlePanel({ o }: { o: Overview }) {
  return (
    <NowPanel
      title="Idle clusters"
      icon="coin"
      tone="--st-warn"
      note={`${money(o.idle_per_hour)} per hour, est.`}
      empty="No idle clusters."
      testid="idle"
    >
      {o.idle.map((c) => (
        <li key={c.id}>
          <b>
            <ClusterLink cluster={c} />
          </b>
          <span>
            {money(c.cost.per_hour)} <span class="faint">per hour</span>
          </span>
          <small>
            {c.user} · idle {seconds(c.idle_seconds)}
          </small>
          <small>{money(c.cost.total)} so far</small>
        </li>
      ))}
    </NowPanel>
  );
}
