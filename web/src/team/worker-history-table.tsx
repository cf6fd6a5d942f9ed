import { useMemo } from "preact/hooks";
import type { History } from "../api/server.gen";
import { clock, count } from "../model/format";
import { DataTable } from "../widgets/table";
import type { ViewColumn } from "../widgets/table-rows";

// Two digits, because axis labels in quarters of a worker would otherwise be rounded to uneven steps.
export const number = (v: number): string =>
  v >= 100 || Number.isInteger(v) ? count(Math.round(v)) : String(Number(v.toFixed(2)));

interface Step {
  at: number;
  workers: number;
  wanted: number | null;
  busy: number;
  threads: number;
  tasks: number;
  errors: number;
}

export function WorkerHistoryTable({ h }: { h: History }) {
  const rows = useMemo<Step[]>(
    () =>
      h.workers.map((workers, i) => ({
        at: h.edges[i] * 1e6,
        workers,
        wanted: h.wanted[i],
        busy: h.busy[i],
        threads: h.threads[i],
        tasks: h.tasks[i],
        errors: h.errors[i],
      })),
    [h],
  );
  const columns: ViewColumn<Step>[] = [
    { id: "at", head: "Start", num: true, value: (s) => s.at, cell: (s) => clock(s.at, 1e6) },
    { id: "workers", head: "Workers", num: true, value: (s) => s.workers, cell: (s) => number(s.workers) },
    {
      id: "wanted",
      head: "Wanted",
      num: true,
      value: (s) => s.wanted ?? -1,
      cell: (s) => (s.wanted === null ? <span class="faint">–</span> : count(s.wanted)),
    },
    { id: "busy", head: "Busy threads", num: true, value: (s) => s.busy, cell: (s) => number(s.busy) },
    { id: "threads", head: "Threads", num: true, value: (s) => s.threads, cell: (s) => number(s.threads) },
    { id: "tasks", head: "Finished tasks", num: true, value: (s) => s.tasks, cell: (s) => count(s.tasks) },
    {
      id: "errors",
      head: "Errors",
      num: true,
      value: (s) => s.errors,
      cell: (s) => <span class={s.errors ? "bad" : "zero"}>{count(s.errors)}</span>,
    },
  ];
  return (
    <DataTable
      label="Workers over time"
      name="history"
      title="Steps"
      rows={rows}
      columns={columns}
      rowKey={(s) => String(s.at)}
      sort={{ id: "at", down: false }}
      empty=""
    />
  );
}
