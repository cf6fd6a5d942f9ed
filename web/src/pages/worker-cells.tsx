import type { Worker } from "../api/schema.gen";
import { clock, nbytes, percent, UNKNOWN } from "../model/format";
import { useModel } from "../model/hooks";
import { isLost, verdictText } from "../model/model";
import { Pill } from "../widgets/icon";

export function Verdict({ worker }: { worker: Worker }) {
  if (!worker.verdict) return <Pill state="finished">connected</Pill>;
  return <Pill state={isLost(worker) ? "lost" : "idle"}>{verdictText(worker)}</Pill>;
}

export function PeakBar({ worker: w }: { worker: Worker }) {
  const share = w.memory_limit > 0 ? w.peak_memory / w.memory_limit : 0;
  return (
    <>
      {w.memory_limit > 0 && (
        <span class="mbar" style="width:48px;margin-right:8px">
          <i class={share > 0.8 ? "hi" : ""} style={{ width: `${Math.min(1, share) * 100}%` }} />
        </span>
      )}
      <span style="display:inline-block;min-width:62px">{w.peak_memory > 0 ? nbytes(w.peak_memory) : UNKNOWN}</span>
    </>
  );
}

export function Uptime({ worker }: { worker: Worker }) {
  const model = useModel();
  const { length } = model.axis;
  const from = Math.max(0, model.since(worker.start_us) / length);
  const to = Math.min(1, model.stopOf(worker) / length);
  return (
    <div class="life" role="img" aria-label={`from ${clock(from * length)} to ${clock(to * length)}`}>
      <i style={{ left: `${from * 100}%`, width: `${(to - from) * 100}%` }} />
      <i
        class="fill"
        style={{ left: `${from * 100}%`, width: `${(to - from) * worker.utilisation * 100}%` }}
        title={`${percent(worker.utilisation)} busy`}
      />
      {isLost(worker) && <i class="end" style={{ left: `${to * 100}%` }} />}
    </div>
  );
}
