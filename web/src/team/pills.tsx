import type { Cluster, ComputationState, ErrorState } from "../api/server.gen";
import { Pill, type PillState } from "../widgets/icon";
import { seconds } from "./time-text";

/** Whether the cluster is running, as far as the server knows. */
export function isLive(c: Pick<Cluster, "state">): boolean {
  return c.state === "running" || c.state === "idle";
}

/** The state of a cluster as colour, glyph and word: for one that has ended, how its work went. */
export function ClusterPill({ cluster: c }: { cluster: Pick<Cluster, "state" | "outcome" | "idle_seconds"> }) {
  if (c.state === "idle")
    return (
      <Pill state={c.idle_seconds > 600 ? "warn" : "idle"}>
        {c.idle_seconds > 0 ? `Idle ${seconds(c.idle_seconds)}` : "Idle"}
      </Pill>
    );
  if (c.outcome === "failed") return <Pill state="erred">Failed</Pill>;
  if (c.outcome === "lost") return <Pill state="lost">Unfinished</Pill>;
  if (c.outcome === "cancelled") return <Pill state="idle">Cancelled</Pill>;
  if (c.outcome === "nothing ran") return <Pill state="idle">Nothing ran</Pill>;
  const words = { running: "Running", finished: "Finished", lost: "Lost" } as const;
  return <Pill state={c.state}>{words[c.state]}</Pill>;
}

export function ComputationPill({ state }: { state: ComputationState }) {
  const pills: Record<ComputationState, [PillState, string]> = {
    running: ["running", "Running"],
    done: ["finished", "Finished"],
    erred: ["erred", "Failed"],
    cancelled: ["idle", "Cancelled"],
    lost: ["lost", "Lost"],
  };
  const [pill, word] = pills[state] ?? ["idle", state];
  return <Pill state={pill}>{word}</Pill>;
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
