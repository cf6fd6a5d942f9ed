import { useMemo, useState } from "preact/hooks";
import type { History } from "../../api/server.gen";
import { clock, count, duration } from "../../model/text/format";
import { Empty, Panel } from "../../widgets/basics";
import { Plot, type PlotSeries } from "../../widgets/plots/plot";
import { DataTable } from "../../widgets/table/table";
import type { ViewColumn } from "../../widgets/table/table-rows";
import { PlotKey } from "../parts/plot-key";
import { useTeam } from "../shell/context";
import { Loaded } from "../shell/loaded";
import { useLive } from "../shell/resources";

/** Workers over time: connected, wanted by the scheduler, and their busy threads. */
export function WorkerHistory({ id }: { id: string }) {
  const { api, account } = useTeam();
  const [table, setTable] = useState(false);
  const history = useLive<History>(
    id,
    () => api.get(`clusters/${encodeURIComponent(id)}/history`),
    [id, account],
    10_000,
  );
  const right = (
    <button
      type="button"
      class="link"
      aria-pressed={table}
      onClick={() => setTable(!table)}
      data-testid="history-table"
    >
      {table ? "View as chart" : "View as table"}
    </button>
  );
  return (
    <Panel
      title="Workers over time"
      note={`mean over ${duration((history.value?.step ?? 10) * 1e6)}`}
      right={right}
      testid="history"
    >
      <Loaded from={history}>
        {(h) =>
          h.workers.every((n) => n === 0) ? (
            <Empty title="No workers have joined yet" />
          ) : table ? (
            <WorkerHistoryTable h={h} />
          ) : (
            <WorkerHistoryCharts h={h} />
          )
        }
      </Loaded>
    </Panel>
  );
}

function WorkerHistoryCharts({ h }: { h: History }) {
  const [x, workers, threads] = useMemo<[number[], PlotSeries[], PlotSeries[]]>(() => {
    // One point more than there are steps: the end of the last step.
    const closed = (values: readonly number[]) => [...values, values[values.length - 1]];
    const times = h.edges.map((second) => second * 1e6);
    const wanted = closed(h.wanted.map((n) => n ?? Number.NaN));
    const asked = wanted.some((n) => !Number.isNaN(n));
    return [
      times,
      [
        { label: "workers", values: closed(h.workers), colour: "--accent", fill: "--accent-soft", stepped: true },
        ...(asked
          ? [{ label: "wanted by the scheduler", values: wanted, colour: "--st-warn", dash: true, stepped: true }]
          : []),
      ],
      [
        { label: "busy threads", values: closed(h.busy), colour: "--act-cpu", fill: "--accent-soft", stepped: true },
        { label: "threads", values: closed(h.threads), colour: "--text-3", dash: true, stepped: true },
      ],
    ];
  }, [h]);
  return (
    <div class="cols">
      <div class="c6">
        <PlotKey series={workers} />
        <Plot label="Connected and wanted workers" x={x} series={workers} format={number} height={150} />
      </div>
      <div class="c6">
        <PlotKey series={threads} />
        <Plot label="Busy threads and all threads" x={x} series={threads} format={number} height={150} />
      </div>
    </div>
  );
}

// Two digits, because axis labels in quarters of a worker would otherwise be rounded to uneven steps.
const number = (v: number): string =>
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

function WorkerHistoryTable({ h }: { h: History }) {
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
