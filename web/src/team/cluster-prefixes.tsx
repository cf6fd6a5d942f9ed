import type { Prefix } from "../api/server.gen";
import { count, nbytes } from "../model/format";
import { DataTable } from "../widgets/table";
import type { ViewColumn } from "../widgets/table-rows";
import { secondsOrDash } from "./time-text";

export function PrefixTable({ prefixes }: { prefixes: readonly Prefix[] }) {
  const columns: ViewColumn<Prefix>[] = [
    {
      id: "prefix",
      head: "Prefix",
      value: (p) => p.prefix,
      cell: (p) => (
        <span class="mono cut" title={p.prefix}>
          {p.prefix}
        </span>
      ),
    },
    { id: "tasks", head: "Tasks", num: true, value: (p) => p.tasks, cell: (p) => count(p.tasks) },
    {
      id: "errors",
      head: "Errors",
      num: true,
      value: (p) => p.errors,
      cell: (p) => <span class={p.errors ? "bad" : "zero"}>{count(p.errors)}</span>,
    },
    ...(prefixes.some((p) => p.retried > 0)
      ? [{ id: "retried", head: "Retried", num: true, value: (p: Prefix) => p.retried }]
      : []),
    ...(prefixes.some((p) => p.killed > 0)
      ? [{ id: "killed", head: "Killed", num: true, value: (p: Prefix) => p.killed }]
      : []),
    { id: "compute", head: "Compute", num: true, value: (p) => p.compute, cell: (p) => secondsOrDash(p.compute) },
    { id: "mean", head: "Mean", num: true, value: (p) => p.mean, cell: (p) => secondsOrDash(p.mean) },
    { id: "transfer", head: "Transfer", num: true, value: (p) => p.transfer, cell: (p) => secondsOrDash(p.transfer) },
    { id: "nbytes", head: "Results", num: true, value: (p) => p.nbytes, cell: (p) => nbytes(p.nbytes) },
  ];
  return (
    <DataTable
      label="Task prefixes"
      name="prefixes"
      title="Time by task prefix"
      rows={prefixes}
      columns={columns}
      rowKey={(p) => p.prefix}
      sort={{ id: "compute", down: true }}
      empty="No tasks have finished yet"
    />
  );
}
