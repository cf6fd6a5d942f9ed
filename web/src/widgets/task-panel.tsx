import { count, counted } from "../model/format";
import { useAsync, useModel } from "../model/hooks";
import type { Model } from "../model/model";
import type { TaskDetail } from "../model/stream";
import { loadNeighbours } from "../model/task-edges";
import { select } from "../model/time";
import { Empty, Failed, Loading, Panel } from "./basics";
import { copy } from "./clipboard";
import { Icon } from "./icon";
import { TaskFacts } from "./task-facts";
import { TaskLinks } from "./task-links";

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
