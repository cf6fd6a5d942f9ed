import type { Computation } from "../../api/schema.gen";
import { callOf } from "../../model/code";
import type { Model } from "../../model/model";
import { useAsync, useModel } from "../../model/page/hooks";
import type { TaskDetail } from "../../model/stream";
import { loadNeighbours } from "../../model/task-edges";
import { clock, count, counted, duration, nbytes, UNKNOWN } from "../../model/text/format";
import { select } from "../../model/time";
import { Empty, Failed, Loading, Panel, Swatch } from "../basics";
import { copy } from "../clipboard";
import { Icon } from "../icon";

/** The details of a task. */
export function TaskPanel({ task }: { task: number }) {
  const model = useModel();
  const { nav, report } = model;
  const detail = useAsync(() => model.stream.detail(task), [task]);
  const edges = useAsync(() => loadNeighbours(model, task), [task]);
  const close = (
    <button type="button" class="btn sm ghost" aria-label="Close" onClick={() => nav.set({ item: undefined })}>
      <Icon name="x" />
    </button>
  );
  if (detail.error)
    return (
      <Panel title="Task" right={close} testid="task-detail">
        <Failed message={detail.error} />
      </Panel>
    );
  if (task >= report.stream.tasks)
    return (
      <Panel title="Task" right={close} class="detail" testid="task-detail">
        <Empty title="Task not found">
          {" "}
          The link points to task {count(task + 1)}, but this report shows {counted(report.stream.tasks, "task")}.
        </Empty>
      </Panel>
    );
  const d = detail.value;
  if (!d)
    return (
      <Panel title="Task" right={close} testid="task-detail">
        <Loading lines={6} />
      </Panel>
    );
  const prefix = report.prefixes[d.prefix]?.prefix ?? "";
  const status = report.stream.statuses[d.status] ?? "";
  const failure =
    status && status !== "ok"
      ? (report.errors.find((e) => e.keys.includes(d.key)) ?? report.errors.find((e) => e.prefixes.includes(prefix)))
      : undefined;
  return (
    <Panel
      title="Task"
      note={`${task + 1} of ${report.stream.tasks.toLocaleString("en-US")}`}
      right={close}
      class="detail"
      testid="task-detail"
    >
      <p class="callout mono" style="border-top:0;padding-top:0">
        {d.key || "key not recorded"}{" "}
        {d.key && (
          <button type="button" class="link" onClick={() => copy(d.key, "Key copied")}>
            Copy
          </button>
        )}
      </p>
      <TaskFacts detail={d} prefix={prefix} status={status} />
      {failure && (
        <p class="callout">
          <b class="bad">{failure.type}</b> {failure.message}{" "}
          <a
            href={nav.href("errors", { item: String(report.errors.indexOf(failure)) })}
            onClick={(e) => {
              e.preventDefault();
              nav.go("errors", { item: String(report.errors.indexOf(failure)) });
            }}
          >
            Traceback
          </a>
        </p>
      )}
      <TaskLinks title="Dependencies" tasks={edges.value?.dependencies} />
      <TaskLinks title="Dependents" tasks={edges.value?.dependents} />
      <div class="pfoot">
        <a
          href={nav.href("profile", { prefix })}
          onClick={(e) => {
            e.preventDefault();
            nav.go("profile", { prefix });
          }}
        >
          Profile of prefix
        </a>
        <button type="button" class="link push" onClick={() => zoomTo(model, d)}>
          Zoom to task
        </button>
      </div>
    </Panel>
  );
}

function zoomTo(model: Model, d: TaskDetail): void {
  const tick = model.report.stream.tick_us;
  const pad = Math.max(50, (d.stop - d.start) * tick) * 0.6;
  model.nav.select(select(model.axis, d.start * tick - pad, d.stop * tick + pad));
}

const MAX_LINKS = 12;

function TaskLinks({ title, tasks }: { title: string; tasks: number[] | undefined }) {
  const model = useModel();
  const shown = tasks?.slice(0, MAX_LINKS) ?? [];
  const named = useAsync(() => Promise.all(shown.map((t) => model.stream.detail(t))), [tasks]);
  if (!tasks) return null;
  return (
    <>
      <h3>
        {title} {tasks.length > MAX_LINKS ? `${MAX_LINKS} of ${tasks.length}` : tasks.length === 0 ? "(none)" : ""}
      </h3>
      {shown.length > 0 && (
        <ul class="deps">
          {shown.map((t, i) => (
            <li key={t}>
              <button
                type="button"
                class="link mono"
                title={named.value?.[i]?.key}
                onClick={() => model.nav.set({ item: String(t) })}
              >
                {named.value?.[i]?.key || `task ${t + 1}`}
              </button>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** The line that submitted the task, with its file. */
function callerText(c: Computation): string {
  return [callOf(c), c.code_file.split("/").at(-1)].filter(Boolean).join(" · ") || UNKNOWN;
}

function TaskFacts({ detail: d, prefix, status }: { detail: TaskDetail; prefix: string; status: string }) {
  const model = useModel();
  const { report } = model;
  const tick = report.stream.tick_us;
  const worker = report.workers[report.stream.lanes[d.lane]?.worker];
  const workerLanes = report.stream.lanes.flatMap((lane, i) =>
    lane.worker === report.stream.lanes[d.lane]?.worker ? [i] : [],
  );
  const computation = report.computations[d.computation - 1];
  const ticks = (n: number) => (n < 0 ? UNKNOWN : duration(n * tick));
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
