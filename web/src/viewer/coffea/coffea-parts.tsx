import type { CoffeaPart, CoffeaRun } from "../../api/schema.gen";
import { useModel } from "../../model/page/hooks";
import { count, counted, duration, frequency, NOTHING, nbytes } from "../../model/text/format";
import { Panel } from "../../widgets/basics";
import { DataTable } from "../../widgets/table/table";

const known = (value: number, format: (value: number) => string) => (value >= 0 ? format(value) : NOTHING);
const rate = (part: CoffeaPart) => (part.events > 0 && part.task_us > 0 ? (part.events / part.task_us) * 1e6 : -1);

/** Tables by dataset, by file and by worker. */
export function CoffeaParts({ run }: { run: CoffeaRun }) {
  const model = useModel();
  return (
    <>
      {run.datasets.length > 0 && <PartTable title="Datasets" head="Dataset" noun="datasets" parts={run.datasets} />}
      {run.file_parts.length > 0 && <PartTable title="Files" head="File" noun="files" parts={run.file_parts} />}
      <section class="panel mt" aria-label="Workers">
        <DataTable
          title="Workers"
          label="Chunks by worker"
          name="coffea-workers"
          note="workers"
          rows={run.workers}
          rowKey={([worker]) => worker}
          sort={{ id: "tasks", down: true }}
          compact
          columns={[
            { id: "worker", head: "Worker", value: ([worker]) => model.worker(worker) },
            { id: "tasks", head: "Chunks", num: true, value: ([, tasks]) => tasks, cell: ([, tasks]) => count(tasks) },
          ]}
        />
      </section>
    </>
  );
}

interface TableProps {
  title: string;
  head: string;
  noun: string;
  parts: readonly CoffeaPart[];
}

function PartTable({ title, head, noun, parts }: TableProps) {
  return (
    <section class="panel mt" aria-label={title}>
      <DataTable
        title={title}
        label={title}
        name={`coffea-${noun}`}
        note={noun}
        rows={parts}
        rowKey={(p) => p.name}
        sort={{ id: "task", down: true }}
        compact
        columns={[
          { id: "name", head, value: (p) => p.name || NOTHING },
          { id: "events", head: "Events", num: true, value: (p) => p.events, cell: (p) => known(p.events, count) },
          { id: "chunks", head: "Chunks", num: true, value: (p) => p.chunks, text: count },
          { id: "read", head: "Read", num: true, value: (p) => p.bytes_read, cell: (p) => known(p.bytes_read, nbytes) },
          { id: "rate", head: "Rate per task", num: true, value: rate, cell: (p) => known(rate(p), frequency) },
          { id: "task", head: "Task time", num: true, value: (p) => p.task_us, text: duration },
          {
            id: "process",
            head: "process()",
            num: true,
            value: (p) => p.process_us,
            cell: (p) => known(p.process_us, duration),
          },
          { id: "slowest", head: "Slowest chunk", num: true, value: (p) => p.slowest_us, text: duration },
          {
            id: "from",
            head: "Its first event",
            num: true,
            value: (p) => p.slowest_start,
            cell: (p) => known(p.slowest_start, count),
          },
        ]}
      />
    </section>
  );
}

/** The names of the columns that were read. */
export function CoffeaColumns({ run }: { run: CoffeaRun }) {
  if (run.columns.length === 0) return null;
  return (
    <Panel title="Columns" note={`${counted(run.columns.length, "column")} read`} class="mt" testid="coffea-columns">
      <ul class="chips">
        {run.columns.map((column) => (
          <li key={column} class="mono">
            {column}
          </li>
        ))}
      </ul>
    </Panel>
  );
}
