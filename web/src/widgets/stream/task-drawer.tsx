import type { Computation } from "../../api/schema.gen";
import { callOf } from "../../model/code";
import type { Model } from "../../model/model";
import { type Loaded, useAsync, useModel } from "../../model/page/hooks";
import type { TaskDetail } from "../../model/stream";
import type { Neighbours } from "../../model/task-edges";
import { clock, count, counted, duration, nbytes, UNKNOWN } from "../../model/text/format";
import { select } from "../../model/time";
import { Empty, Failed, Loading, Swatch } from "../basics";
import { copy } from "../clipboard";
import { Icon } from "../icon";

/** The details of a task, in a drawer below the stream. */
export function TaskDrawer({
  task,
  detail,
  near,
}: {
  task: number;
  detail: Loaded<TaskDetail | null>;
  near: Neighbours | null;
}) {
  const { nav, report } = useModel();
  const { tasks } = report.stream;
  const d = detail.value?.task === task ? detail.value : null;
  return (
    <section class="drawer" aria-label="Task" data-testid="task-detail">
      <div class="phead">
        <h2 class="mono" title={d?.key}>
          {d ? d.key || "key not recorded" : "Task"}
        </h2>
        {d?.key && (
          <button type="button" class="link" onClick={() => copy(d.key, "Key copied")}>
            Copy
          </button>
        )}
        {task < tasks && <span class="note hide-n">{`Task ${count(task + 1)} of ${count(tasks)}`}</span>}
        <div class="right">
          {d && <DrawerActions detail={d} />}
          <button type="button" class="btn sm ghost" aria-label="Close" onClick={() => nav.set({ item: undefined })}>
            <Icon name="x" />
          </button>
        </div>
      </div>
      {task >= tasks ? (
        <Empty title="Task not found">
          {" "}
          The link points to task {count(task + 1)}, but this report shows {counted(tasks, "task")}.
        </Empty>
      ) : detail.error ? (
        <Failed message={detail.error} />
      ) : d ? (
        <DrawerBody detail={d} near={near} />
      ) : (
        <Loading lines={4} />
      )}
    </section>
  );
}

function DrawerActions({ detail }: { detail: TaskDetail }) {
  const model = useModel();
  const { nav, report } = model;
  const prefix = report.prefixes[detail.prefix]?.prefix ?? "";
  return (
    <>
      <a
        class="hide-n"
        href={nav.href("profile", { prefix })}
        onClick={(e) => {
          e.preventDefault();
          nav.go("profile", { prefix });
        }}
      >
        Profile of prefix
      </a>
      <button type="button" class="link" onClick={() => zoomTo(model, detail)}>
        Zoom to task
      </button>
    </>
  );
}

function DrawerBody({ detail: d, near }: { detail: TaskDetail; near: Neighbours | null }) {
  const { nav, report } = useModel();
  const prefix = report.prefixes[d.prefix]?.prefix ?? "";
  const status = report.stream.statuses[d.status] ?? "";
  const failure =
    status && status !== "ok"
      ? (report.errors.find((e) => e.keys.includes(d.key)) ?? report.errors.find((e) => e.prefixes.includes(prefix)))
      : undefined;
  return (
    <div class="drawerbody">
      <TaskFacts detail={d} prefix={prefix} status={status} />
      <div>
        {failure && (
          <p class="callout">
            <b class="bad">{failure.type}</b> {failure.message}{" "}
            {failure.traceback && (
              <a
                href={nav.href("errors", { item: String(report.errors.indexOf(failure)) })}
                onClick={(e) => {
                  e.preventDefault();
                  nav.go("errors", { item: String(report.errors.indexOf(failure)) });
                }}
              >
                Traceback
              </a>
            )}
          </p>
        )}
        <TaskLinks title="Inputs" tasks={near?.dependencies} />
        <TaskLinks title="Outputs go to" tasks={near?.dependents} />
      </div>
    </div>
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
    ["Worker", worker ? `${model.worker(worker.worker)}${worker.host ? ` on ${worker.host}` : ""}` : UNKNOWN],
    ["Address", worker?.worker ?? UNKNOWN],
    ["Thread", `${workerLanes.indexOf(d.lane) + 1} of ${workerLanes.length}`],
    ["Status", d.isLost ? `${status}, result lost later` : status || UNKNOWN],
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
  // While the run goes on, the page does not have all of them.
  const shown = model.isLive ? facts.filter(([, text]) => text !== UNKNOWN) : facts;
  return (
    <dl class="kv">
      {shown.map(([label, text], i) => (
        <>
          <dt key={`${label}${i}`}>{label}</dt>
          <dd>{text}</dd>
        </>
      ))}
    </dl>
  );
}
