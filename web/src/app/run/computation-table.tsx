import type { Computation } from "../../api/server.gen";
import { count } from "../../model/text/format";
import { Empty } from "../../widgets/basics";
import { StatePill } from "../../widgets/icon";
import { DataTable } from "../../widgets/table/table";
import type { ViewColumn } from "../../widgets/table/table-rows";
import { Ago, seconds } from "../parts/time-text";
import { useTeam } from "../shell/context";
import { Link } from "../shell/link";
import { callText } from "./cluster-text";

/** The computations of a cluster. */
export function ComputationTable({
  items,
  of,
  cluster,
}: {
  items: readonly Computation[];
  of: number;
  cluster: string;
}) {
  const { account } = useTeam();
  const columns: ViewColumn<Computation>[] = [
    {
      id: "code",
      head: "Computation",
      value: callText,
      cell: (c) => (
        <Link class="name mono cut" to={[account, "clusters", cluster, "computations", c.id]} title={c.code}>
          {callText(c)}
        </Link>
      ),
    },
    { id: "state", head: "State", value: (c) => c.state, cell: (c) => <StatePill state={c.state} /> },
    { id: "tasks", head: "Tasks", num: true, value: (c) => c.n_tasks, text: count },
    {
      id: "errors",
      head: "Failed",
      num: true,
      value: (c) => c.n_errors,
      cell: (c) => <span class={c.n_errors ? "bad" : "zero"}>{count(c.n_errors)}</span>,
    },
    { id: "duration", head: "Duration", num: true, value: (c) => c.duration, text: seconds },
    {
      id: "compute",
      head: "Compute",
      hint: "Also of task runs that failed or were lost",
      num: true,
      value: (c) => c.durations.compute ?? 0,
      text: seconds,
    },
    {
      id: "transfer",
      head: "Transfers",
      hint: "Of all transfers, which may overlap",
      num: true,
      value: (c) => c.durations.transfer ?? 0,
      text: seconds,
    },
    { id: "started", head: "Started", num: true, value: (c) => c.start ?? "", cell: (c) => <Ago at={c.start} /> },
  ];
  return (
    <DataTable
      label="Computations"
      name="computations"
      title="Computations"
      rows={items}
      of={of}
      columns={columns}
      rowKey={(c) => c.id}
      rowTestid="computation-row"
      sort={{ id: "started", down: true }}
      empty={<Empty title="No computations yet" />}
    />
  );
}
