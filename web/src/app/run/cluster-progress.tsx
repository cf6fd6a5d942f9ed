import type { ClusterProgress as Answer, ComputationProgress, TaskCounts } from "../../api/server.gen";
import { capital } from "../../model/activity";
import { count, counted } from "../../model/text/format";
import { Panel } from "../../widgets/basics";
import { Icon, Pill } from "../../widgets/icon";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";
import { LoadError } from "../shell/loaded";
import { type Resource, useLive } from "../shell/resources";
import { callText } from "./cluster-text";

const PARTS = [
  ["done", "Done", "--st-finished"],
  ["failed", "Failed", "--st-erred"],
  ["running", "Running", "--st-running"],
  ["waiting", "Waiting", "--line"],
] as const;

const HOW_ESTIMATED =
  "Estimated: tasks left × mean duration of their prefix, over all threads of the cluster (shortest) or the threads used so far (longest)";

/** The progress of the running computations of a cluster, which is loaded again when the cluster changes. */
export function useProgress(id: string): Resource<Answer> {
  const { api, account } = useTeam();
  return useLive<Answer>(id, () => api.get(`clusters/${encodeURIComponent(id)}/progress`), [id, account], 1000);
}

/** How far a computation is, as a headline: the only running one, if none is named. Empty if there are several or none. */
export function progressHeadline(progress: Answer | null, id = ""): string {
  const one = id
    ? progress?.items.find((item) => item.id === id)
    : progress?.total === 1
      ? progress.items[0]
      : undefined;
  if (!one) return "";
  if (isDone(one)) return `${capital(one.summary)}.`;
  return one.stuck ? `Stuck: ${one.stuck}.` : `Running: ${one.summary}.`;
}

/** Whether no task is left. The recorder closes a computation some seconds later. */
function isDone({ total, running, waiting }: TaskCounts): boolean {
  return total > 0 && running + waiting === 0;
}

/** The progress of each running computation: counts, time left, or why it is stuck. Shows nothing if none is running. */
export function ClusterProgress({ id, progress }: { id: string; progress: Resource<Answer> }) {
  const { value, error } = progress;
  if (error) return <LoadError error={error} at={value ? progress.at : 0} retry={progress.reload} />;
  if (!value || value.items.length === 0) return null;
  const hidden = value.total - value.items.length;
  return (
    <Panel
      title="Progress"
      note={hidden > 0 ? `${count(value.items.length)} of ${counted(value.total, "running computation")}` : undefined}
      testid="progress"
      foot={
        <ul class="keylist">
          {PARTS.map(([part, label, colour]) => (
            <li key={part}>
              <i class="sw" style={{ background: `var(${colour})` }} />
              {label}
            </li>
          ))}
        </ul>
      }
    >
      {value.items.map((one) => (
        <ProgressRow key={one.id} one={one} cluster={id} alone={value.total === 1} />
      ))}
    </Panel>
  );
}

function ProgressRow({ one, cluster, alone }: { one: ComputationProgress; cluster: string; alone: boolean }) {
  const { account } = useTeam();
  return (
    <details class="progress-row" data-testid="progress-row" open={alone}>
      <summary>
        <Icon name="right" small />
        <span class="mono cut" title={one.code}>
          {callText(one)}
        </span>
        <Bar counts={one} />
        <span class="progress-text" data-testid="progress-text">
          <ProgressPill one={one} />{" "}
          <span title={one.left ? HOW_ESTIMATED : undefined}>
            {one.stuck ? `${one.stuck} (${one.summary})` : one.summary}
          </span>
          {one.failed > 0 && <span class="bad">, {count(one.failed)} failed</span>}
        </span>
        {one.note && (
          <span class="progress-text" data-testid="progress-note">
            <Pill state="warn">Problem</Pill> {one.note}
          </span>
        )}
        {one.usual?.state === "slower" && (
          <span class="progress-text" data-testid="progress-usual">
            <Pill state="warn">Slow</Pill> {one.usual.sentence}
          </span>
        )}
      </summary>
      {one.prefixes.length > 0 ? (
        <ul class="progress-prefixes">
          {one.prefixes.map((p) => (
            <li key={p.prefix} data-testid="progress-prefix">
              <span class="mono cut" title={p.prefix}>
                {p.prefix}
              </span>
              <Bar counts={p} />
              <span>{countsText(p)}</span>
            </li>
          ))}
        </ul>
      ) : (
        <p class="callout">The recorder of this cluster does not send the progress of task prefixes.</p>
      )}
      <p class="progress-more">
        <Link to={[account, "clusters", cluster, "computations", one.id]}>Open this computation</Link>
      </p>
    </details>
  );
}

function ProgressPill({ one }: { one: ComputationProgress }) {
  if (isDone(one)) return <Pill state="finished">Done</Pill>;
  return one.stuck ? <Pill state="erred">Stuck</Pill> : <Pill state="running">Running</Pill>;
}

function Bar({ counts }: { counts: TaskCounts }) {
  return (
    <span class="progress-bar" role="img" aria-label={countsText(counts)} title={countsText(counts)}>
      {PARTS.map(([part, , colour]) =>
        counts[part] > 0 ? (
          <i key={part} style={{ flex: `${counts[part]} 1 0`, background: `var(${colour})` }} />
        ) : null,
      )}
    </span>
  );
}

/** The counts as words: "12 of 50 done, 4 running, 34 waiting". */
function countsText(c: TaskCounts): string {
  const parts = [`${count(c.done)} of ${count(c.total)} done`];
  for (const [part, word] of [
    ["running", "running"],
    ["waiting", "waiting"],
    ["failed", "failed"],
  ] as const)
    if (c[part] > 0) parts.push(`${count(c[part])} ${word}`);
  return parts.join(", ");
}
