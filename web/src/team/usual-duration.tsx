import type { UsualDuration } from "../api/server.gen";
import { counted } from "../model/format";
import { Pill } from "../widgets/icon";

/** What the sentence is based on. */
export function howKnown({ runs, left }: UsualDuration): string {
  const from = `From ${counted(runs, "earlier run")} of this code`;
  return left
    ? `${from}. Time left: from those that took longer than this run so far, and later from the pace of its tasks`
    : from;
}

/** How long a running computation usually takes and what is left, in one sentence. Shows nothing without earlier runs. */
export function UsualDurationText({ usual }: { usual: UsualDuration | null }) {
  if (!usual) return null;
  return (
    <p class="usual" title={howKnown(usual)} data-testid="usual">
      {usual.state === "slower" && <Pill state="warn">Slow</Pill>} {usual.sentence}
    </p>
  );
}
