import type { Cluster, ErrorState } from "../../api/server.gen";
import { LIVE_STATES } from "../../api/states.gen";
import { Pill, type PillState, StatePill } from "../../widgets/icon";
import { seconds } from "./time-text";

/** Whether the cluster is running, as far as the server knows. */
export function isLive(c: Pick<Cluster, "state">): boolean {
  return LIVE_STATES.includes(c.state);
}

type Tasks = Pick<Cluster, "tasks_unrunnable" | "tasks_processing" | "tasks_queued">;

/** Whether all remaining tasks need resources that no worker has. */
export function isStuck(c: Tasks): boolean {
  return c.tasks_unrunnable > 0 && c.tasks_processing === 0 && c.tasks_queued === 0;
}

/** The state of a cluster as colour, glyph and word, and how long it has been idle. */
export function ClusterPill({ cluster: c }: { cluster: Pick<Cluster, "state" | "idle_seconds"> & Tasks }) {
  if (c.state === "running" && isStuck(c)) return <Pill state="erred">Stuck</Pill>;
  if (c.state === "idle" && c.idle_seconds > 0)
    return <Pill state={c.idle_seconds > 600 ? "warn" : "idle"}>{`Idle ${seconds(c.idle_seconds)}`}</Pill>;
  return <StatePill state={c.state} />;
}

export function ErrorPill({ state }: { state: ErrorState }) {
  const pills: Record<ErrorState, [PillState, string]> = {
    open: ["erred", "Open"],
    resolved: ["finished", "Resolved"],
    ignored: ["idle", "Ignored"],
    regressed: ["warn", "Regressed"],
  };
  const [pill, word] = pills[state];
  return <Pill state={pill}>{word}</Pill>;
}
