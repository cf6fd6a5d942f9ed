import { clock, duration, nbytes } from "../model/format";
import { useAsync, useModel, useSettledSelection } from "../model/hooks";
import type { TaskDetail } from "../model/stream";
import { Loading } from "./basics";
import { DataTable } from "./table";

const MAX_ROWS = 2000;

/** A table of the tasks in the selected time. */
export function StreamTable({ onTask }: { onTask: (task: number) => void }) {
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
