import { useModel } from "../../model/page/hooks";
import type { TaskDetail } from "../../model/stream";
import { clock, duration, nbytes } from "../../model/text/format";
import { Swatch } from "../basics";

/** Tooltip of a task. */
export function TaskTip({ detail, x, y }: { detail: TaskDetail; x: number; y: number }) {
  const model = useModel();
  const { report } = model;
  const tick = report.stream.tick_us;
  const prefix = report.prefixes[detail.prefix]?.prefix ?? "";
  const lane = report.stream.lanes[detail.lane];
  const worker = report.workers[lane?.worker];
  const status = report.stream.statuses[detail.status];
  const left = Math.min(x + 14, innerWidth - 260);
  const top = y + 220 > innerHeight ? y - 190 : y + 14;
  return (
    <div class="tip" style={{ left: `${Math.max(4, left)}px`, top: `${top}px` }}>
      <h4>
        <Swatch colour={model.colour(prefix)} />
        {prefix}
      </h4>
      <dl>
        {detail.parts.map((part, i) => (
          <TipRow
            key={i}
            label={report.stream.actions[part.action] ?? ""}
            text={duration((part.stop - part.start) * tick)}
          />
        ))}
        <TipRow label="Started" text={clock(detail.start * tick, 1000)} />
        {detail.nbytes >= 0 && <TipRow label="Output" text={nbytes(detail.nbytes)} />}
        {worker && <TipRow label="Worker" text={model.worker(worker.worker)} />}
        {status && status !== "ok" && <TipRow label="Status" text={status} />}
        {detail.isLost && <TipRow label="Result" text="lost later" />}
      </dl>
    </div>
  );
}

function TipRow({ label, text }: { label: string; text: string }) {
  return (
    <>
      <dt>{label}</dt>
      <dd>{text}</dd>
    </>
  );
}
