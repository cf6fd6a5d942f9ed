import type { Worker } from "../api/server.gen";
import { count, nbytes, percent } from "../model/format";
import { isLost, verdictText } from "../model/model";
import { DataTable } from "../widgets/table";
import type { ViewColumn } from "../widgets/table-rows";
import { Ago } from "./time-text";

/** Return why a worker left. For workers of a lost cluster this is unknown. */
function endOf(w: Worker, live: boolean): string {
  return verdictText(w) || (w.end ? "left" : live ? "connected" : "unknown");
}

export function WorkerTable({ workers, live }: { workers: readonly Worker[]; live: boolean }) {
  const columns: ViewColumn<Worker>[] = [
    {
      id: "worker",
      head: "Worker",
      value: (w) => w.name || w.worker,
      cell: (w) => (
        <span class="cut" title={w.worker}>
          {w.name || w.worker}
        </span>
      ),
    },
    {
      id: "state",
      head: "Status",
      value: (w) => endOf(w, live),
      cell: (w) => <span class={isLost(w) ? "bad" : ""}>{endOf(w, live)}</span>,
    },
    ...(workers.some((w) => w.evidence) ? [{ id: "why", head: "Why it left", value: (w: Worker) => w.evidence }] : []),
    { id: "host", head: "Host", value: (w) => w.host },
    { id: "threads", head: "Threads", num: true, value: (w) => w.nthreads },
    {
      id: "memory",
      head: "Memory",
      num: true,
      value: (w) => w.memory,
      cell: (w) => (w.memory ? nbytes(w.memory) : <span class="faint">not recorded</span>),
    },
    {
      id: "limit",
      head: "Limit",
      num: true,
      value: (w) => w.memory_limit,
      cell: (w) => (w.memory_limit ? nbytes(w.memory_limit) : "none"),
    },
    { id: "cpu", head: "CPU", num: true, value: (w) => w.cpu_percent, cell: (w) => percent(w.cpu_percent / 100) },
    {
      id: "lost",
      head: "Lost results",
      num: true,
      value: (w) => w.lost_results,
      cell: (w) => <span class={w.lost_results ? "bad" : "zero"}>{count(w.lost_results)}</span>,
    },
    { id: "start", head: "Joined", num: true, value: (w) => w.start ?? "", cell: (w) => <Ago at={w.start} /> },
    { id: "end", head: "Left", num: true, value: (w) => w.end ?? "", cell: (w) => (w.end ? <Ago at={w.end} /> : "") },
  ];
  return (
    <DataTable
      label="Workers"
      name="workers"
      title="Workers"
      rows={workers}
      columns={columns}
      rowKey={(w) => w.server_id}
      sort={{ id: "start", down: true }}
      empty="No workers have joined yet"
    />
  );
}
