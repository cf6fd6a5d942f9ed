import type { Computation } from "../api/schema.gen";
import { callOf } from "../model/code";
import { clock, duration, NOTHING, nbytes, UNKNOWN } from "../model/format";
import { useModel } from "../model/hooks";
import type { TaskDetail } from "../model/stream";
import { Swatch } from "./basics";

/** The line that submitted the task, with its file. */
function callerText(c: Computation): string {
  return [callOf(c), c.code_file.split("/").at(-1)].filter(Boolean).join(" · ") || UNKNOWN;
}

export function TaskFacts({ detail: d, prefix, status }: { detail: TaskDetail; prefix: string; status: string }) {
  const model = useModel();
  const { report } = model;
  const tick = report.stream.tick_us;
  const worker = report.workers[report.stream.lanes[d.lane]?.worker];
  const workerLanes = report.stream.lanes.flatMap((lane, i) =>
    lane.worker === report.stream.lanes[d.lane]?.worker ? [i] : [],
  );
  const computation = report.computations[d.computation - 1];
  const ticks = (n: number) => (n < 0 ? UNKNOWN : n === 0 ? NOTHING : duration(n * tick));
  const facts: [string, preact.ComponentChildren][] = [
    [
      "Prefix",
      <span class="mono">
        <Swatch colour={model.colour(prefix)} /> {prefix}
      </span>,
    ],
    ["Worker", worker ? `${worker.name || worker.worker}${worker.host ? ` on ${worker.host}` : ""}` : UNKNOWN],
    ["Address", worker?.worker ?? UNKNOWN],
    ["Thread", `${workerLanes.indexOf(d.lane) + 1} of ${workerLanes.length}`],
    ["Status", status || UNKNOWN],
    ["Started", clock(d.start * tick, 1000)],
    ["Stopped", clock(d.stop * tick, 1000)],
    ...d.parts.map((p): [string, string] => [
      report.stream.actions[p.action] ?? "",
      duration((p.stop - p.start) * tick),
    ]),
    ["Queued on scheduler", ticks(d.queue)],
    ["Waited on worker", ticks(d.wait)],
    ["Output", d.nbytes < 0 ? UNKNOWN : nbytes(d.nbytes)],
    ...(computation ? [["Called by", callerText(computation)] as [string, string]] : []),
    ["Type", report.stream.types[d.type] || UNKNOWN],
  ];
  return (
    <dl class="kv">
      {facts.map(([label, text], i) => (
        <>
          <dt key={`${label}${i}`}>{label}</dt>
          <dd>{text}</dd>
        </>
      ))}
    </dl>
  );
}
