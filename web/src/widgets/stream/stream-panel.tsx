import { useMemo, useState } from "preact/hooks";
import type { Report } from "../../api/schema.gen";
import { sumBy } from "../../model/cube";
import { useAsync, useCube, useModel, useNav, useSettledSelection } from "../../model/page/hooks";
import type { TaskDetail } from "../../model/stream";
import { clock, count, counted, duration, nbytes } from "../../model/text/format";
import { Loading, Swatch } from "../basics";
import { Seg } from "../controls/inputs";
import { DataTable } from "../table/table";
import { TaskStream } from "./task-stream";

const MAX_PREFIXES = 7;

/** Height of the lanes of a small cluster: between other panels, and on a page of its own, where they fill the window. */
const MAX_LANE = 24;
const MAX_LANE_PAGE = 110;

/** What a lane is. Tasks that were killed have no measured start, so they can overlap others and need a lane of their own. */
export function laneText({ stream, workers }: Pick<Report, "stream" | "workers">): string {
  const lanes = new Map<number, number>();
  for (const { worker } of stream.lanes) lanes.set(worker, (lanes.get(worker) ?? 0) + 1);
  const isExact = [...lanes].every(([worker, n]) => n <= (workers[worker]?.threads ?? n));
  return isExact ? "1 lane is 1 thread." : "1 lane is 1 thread; tasks of a killed worker can need one more.";
}

/** The task stream with legend, notes and a table of the same tasks. */
export function StreamPanel({
  maxHeight,
  page = false,
  onTask,
}: {
  maxHeight: number;
  page?: boolean;
  /** Opens a task. Without it, tasks open in the task stream view. */
  onTask?: (task: number) => void;
}) {
  const model = useModel();
  const { params } = useNav();
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
  const open = (task: number) => {
    if (onTask) onTask(task);
    else if (page) nav.set({ item: String(task) });
    else nav.go("stream", { item: String(task) });
  };
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
        {page && (
          <div class="right hide-n">
            <Seg
              label="Lane height"
              options={[
                ["fit", "All threads"],
                ["tall", "Full height"],
              ]}
              value={tall}
              onChange={setTall}
            />
          </div>
        )}
      </div>
      {stream.bars === 0 ? (
        <p class="callout">{report.complete ? "No tasks ran." : "No task can be shown: rows are missing."}</p>
      ) : (
        <TaskStream
          maxHeight={maxHeight}
          maxLane={page ? MAX_LANE_PAGE : MAX_LANE}
          tall={tall === "tall"}
          focus={focus}
          onTask={open}
          selected={page && /^\d+$/.test(params.item ?? "") ? Number(params.item) : -1}
        />
      )}
      <div class="pfoot">
        <span>{laneText(report)}</span>
        <span class="hide-n">Tall bar: running. Short bar: transfer.</span>{" "}
        <span class="hide-n">
          {" "}
          <i class="sw a-failed" /> Failed or lost. Hatched: no worker.{" "}
        </span>
        <button type="button" class="link push" onClick={() => setTable(!table)} data-testid="stream-as-table">
          {table ? "Hide table" : "View as table"}
        </button>
      </div>
      {stream.tasks < stream.of && (
        <div class="pfoot warn">{counted(stream.of - stream.tasks, "task")} not shown; totals include them.</div>
      )}
      {table && <StreamTable onTask={open} />}
    </section>
  );
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
    return w ? w.name || w.worker : "";
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
        {
          id: "duration",
          head: "Duration",
          num: true,
          value: (r) => (r.stop - r.start) * tick,
          cell: (r) => duration((r.stop - r.start) * tick),
        },
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
