import { useMemo, useState } from "preact/hooks";
import type { CriticalPath, Report } from "../../api/schema.gen";
import { sumBy } from "../../model/cube";
import type { Model } from "../../model/model";
import { useAsync, useCube, useModel, useParam, useSettledSelection } from "../../model/page/hooks";
import type { TaskDetail } from "../../model/stream";
import { loadNeighbours, type Neighbours } from "../../model/task-edges";
import { clock, count, counted, duration, nbytes } from "../../model/text/format";
import { Loading, Swatch } from "../basics";
import { Seg } from "../controls/inputs";
import { Icon } from "../icon";
import { DataTable } from "../table/table";
import { FindTask, type Found, useFound } from "./find-task";
import { TaskDrawer } from "./task-drawer";
import { type Highlight, type TaskLinks, TaskStream } from "./task-stream";

const MAX_PREFIXES = 7;

/** Height of the lanes of a small cluster: between other panels, and on a page of its own, where they fill the window. */
const MAX_LANE = 24;
const MAX_LANE_PAGE = 110;

/** The task stream with legend, notes and a table of the same tasks. */
export function StreamPanel({ maxHeight, page = false }: { maxHeight: number; page?: boolean }) {
  const model = useModel();
  const [item] = useParam("item");
  const selection = useSettledSelection();
  const { report, nav } = model;
  const [focus, setFocus] = useState(-1);
  const [table, setTable] = useState(false);
  const [tall, setTall] = useState<"fit" | "tall">("fit");
  const cube = useCube("counts");
  const here = useMemo(() => {
    if (!cube) return report.prefixes.map((_, i) => i);
    const counts = sumBy(cube, "prefix", "count", selection);
    const by = new Map(cube.keys.prefix.map((name, i) => [name, counts[i]]));
    return report.prefixes.flatMap((p, i) => ((by.get(p.prefix) ?? 0) > 0 ? [i] : []));
  }, [cube, selection.b0, selection.b1]);
  const open = (task: number) => nav.set({ item: String(task) });
  const selected = /^\d+$/.test(item) ? Number(item) : -1;
  const task = useAsync(
    () => (selected >= 0 ? model.stream.detail(selected) : Promise.resolve(null)),
    [selected, model],
  );
  const near = useAsync(
    () => (selected >= 0 ? loadNeighbours(model, selected) : Promise.resolve(null)),
    [selected, model],
  ).value;
  const links = useAsync(async () => near && loadLinks(model, near), [near]).value;
  const found = useFound().value;
  const path = useShownPath();
  const highlight = useHighlight(path, found);
  const max = innerWidth < 900 ? 4 : MAX_PREFIXES;
  const { stream } = report;
  const outside = report.prefixes.length - here.length;
  const more = here.length - Math.min(here.length, max);
  return (
    <section class="panel streampanel" aria-label="Task stream">
      <div class="phead">
        <h2>Task stream</h2>
        <ul class="keylist">
          {here.slice(0, max).map((rank) => (
            <li key={rank}>
              <button
                type="button"
                aria-pressed={focus === rank}
                title={`Highlight ${report.prefixes[rank].prefix}`}
                disabled={rank > 11}
                onClick={() => setFocus(focus === rank ? -1 : rank)}
              >
                <Swatch colour={model.colour(report.prefixes[rank].prefix)} />
                <span class="mono">{report.prefixes[rank].prefix}</span>
              </button>
            </li>
          ))}
          {more > 0 && <li class="faint">{count(more)} more</li>}
          {outside > 0 && <li class="faint">{count(outside)} not in the selection</li>}
        </ul>
        <div class="right">
          <FindTask found={found} onTask={open} />
          <PathToggle />
          {page && (
            <span class="hide-n">
              <Seg
                label="Lane height"
                options={[
                  ["fit", "All threads"],
                  ["tall", "Full height"],
                ]}
                value={tall}
                onChange={setTall}
              />
            </span>
          )}
        </div>
      </div>
      {stream.bars === 0 ? (
        <p class="callout">{noBarsText(report)}</p>
      ) : (
        <TaskStream
          maxHeight={maxHeight}
          maxLane={page ? MAX_LANE_PAGE : MAX_LANE}
          tall={tall === "tall"}
          focus={focus}
          onTask={open}
          highlight={highlight}
          open={selected >= 0 ? task.value : null}
          links={links}
        />
      )}
      <div class="pfoot">
        {path && (
          <b data-testid="path-foot">
            Critical path: {counted(path.of, "task")}, {duration(path.length_us)} of{" "}
            {duration(report.totals.duration_us)}
          </b>
        )}
        <span>1 lane is 1 thread.</span>
        <span class="hide-n">Tall bar: running. Short bar: transfer.</span>{" "}
        <span class="hide-n">
          {" "}
          <i class="sw a-failed" /> Lost or failed. Gray: no worker.
          {report.worker_periods.length > 0 && " Tinted: the worker was paused or starting."}
        </span>
        <button type="button" class="link push" onClick={() => setTable(!table)} data-testid="stream-as-table">
          {table ? "Hide table" : "View as table"}
        </button>
      </div>
      {stream.tasks < stream.of && (
        <div class="pfoot warn">{counted(stream.of - stream.tasks, "task")} not shown; totals include them.</div>
      )}
      {table && <StreamTable onTask={open} />}
      {selected >= 0 && <TaskDrawer task={selected} detail={task} near={near} />}
    </section>
  );
}

function noBarsText({ answer, complete, totals }: Report): string {
  if (answer.state === "running")
    return totals.tasks > 0 ? "No task has finished in the last minutes." : "No task has finished yet.";
  return complete ? "No tasks ran." : "No task can be shown: rows are missing.";
}

/** Lines are drawn to at most this many inputs and outputs. */
const MAX_LINKS = 12;

async function loadLinks(model: Model, near: Neighbours): Promise<TaskLinks> {
  const marks = (tasks: readonly number[]) => model.stream.marks(tasks.slice(0, MAX_LINKS));
  return { inputs: await marks(near.dependencies), outputs: await marks(near.dependents) };
}

/** Return the critical path, if the reader wants to see it: of the chosen computation, else of the longest one. */
function useShownPath(): CriticalPath | null {
  const { report } = useModel();
  const [shown] = useParam("path");
  const [chosen] = useParam("computation");
  if (!shown) return null;
  const path = report.other_paths.find((p) => p.computation === chosen) ?? report.critical_path;
  return path.known ? path : null;
}

function PathToggle() {
  const { report } = useModel();
  const [shown, show] = useParam("path");
  if (!report.critical_path.known) return null;
  return (
    <button
      type="button"
      class="btn sm hide-n"
      aria-pressed={shown !== ""}
      title="Fade all tasks that are not on the critical path"
      onClick={() => show(shown ? "" : "1")}
    >
      <Icon name="path" /> Critical path
    </button>
  );
}

/** Return the tasks that stand out: the critical path, or else the matches of a search. */
function useHighlight(path: CriticalPath | null, found: Found | null): Highlight | null {
  const model = useModel();
  return useAsync(async () => {
    if (path) return { marks: await model.stream.marks(path.steps.map((step) => step.task)), joined: true };
    return found && { marks: await model.stream.marks(found.tasks), joined: false };
  }, [path, found, model]).value;
}

const MAX_ROWS = 2000;

/** A table of the tasks in the selected time. */
function StreamTable({ onTask }: { onTask: (task: number) => void }) {
  const model = useModel();
  const selection = useSettledSelection();
  const { report } = model;
  const tick = report.stream.tick_us;
  const found = useAsync(
    () => model.stream.tasksIn(selection.t0 / tick, selection.t1 / tick, MAX_ROWS),
    [selection.t0, selection.t1],
  );
  if (!found.value) return <Loading />;
  const prefix = (r: TaskDetail) => report.prefixes[r.prefix]?.prefix ?? "";
  const worker = (r: TaskDetail) => {
    const w = report.workers[report.stream.lanes[r.lane]?.worker];
    return w ? model.worker(w.worker) : "";
  };
  return (
    <DataTable
      label="Tasks in the selected time"
      name="task-stream"
      rows={found.value.rows}
      of={found.value.of}
      compact
      rowKey={(r) => String(r.task)}
      onRow={(r) => onTask(r.task)}
      rowTestid="stream-row"
      columns={[
        { id: "key", head: "Key", value: (r) => r.key, cell: (r) => <span class="mono">{r.key}</span> },
        { id: "prefix", head: "Prefix", value: prefix },
        { id: "worker", head: "Worker", value: worker },
        {
          id: "start",
          head: "Start",
          num: true,
          value: (r) => r.start * tick,
          cell: (r) => clock(r.start * tick, 1000),
        },
        { id: "duration", head: "Duration", num: true, value: (r) => (r.stop - r.start) * tick, text: duration },
        {
          id: "nbytes",
          head: "Output",
          num: true,
          value: (r) => r.nbytes,
          cell: (r) => (r.nbytes < 0 ? "" : nbytes(r.nbytes)),
        },
        { id: "status", head: "Status", value: (r) => report.stream.statuses[r.status] ?? "" },
      ]}
    />
  );
}
