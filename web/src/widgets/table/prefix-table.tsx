import { useMemo } from "preact/hooks";
import { CATEGORIES, type Prefix } from "../../api/schema.gen";
import { ACTIVITY_NAMES, capital } from "../../model/activity";
import { prefixTimes, sumBy, sumByTwo } from "../../model/cube";
import { useActivity, useCube, useModel, useSettledSelection } from "../../model/page/hooks";
import { part } from "../../model/quantity";
import { count, duration, nbytes, percent } from "../../model/text/format";
import { Loading } from "../basics";
import { PrefixName } from "./prefix-name";
import { DataTable } from "./table";
import type { ViewColumn } from "./table-rows";

interface Row extends Prefix {
  tasks: number;
  us: number;
  parts: Float64Array;
  output: number;
  failed: number;
}

/** Task prefixes in the selected time. Mean, quantiles and maximum are for the whole run. */
export function PrefixTable() {
  const model = useModel();
  const selection = useSettledSelection();
  const activity = useActivity();
  const time = useCube("time_by_prefix");
  const counts = useCube("counts");
  const { report } = model;
  const rows = useMemo(() => {
    if (!time || !counts) return null;
    const parts = prefixTimes(time, report.prefixes, selection, activity);
    const countAt = new Map(counts.keys.prefix.map((p, i) => [p, i]));
    const n = sumBy(counts, "prefix", "count", selection);
    const bytes = sumBy(counts, "prefix", "nbytes", selection);
    const byStatus = sumByTwo(counts, "prefix", "status", "count", selection);
    const bad = counts.keys.status.map((s) => s === "error" || s === "failed");
    return report.prefixes
      .map((p, i): Row => {
        const c = countAt.get(p.prefix) ?? -1;
        const times = parts[i];
        const us = times.reduce((a, b) => a + b, 0);
        if (selection.whole)
          return {
            ...p,
            tasks: p.count + p.killed,
            us: us || (activity ? 0 : p.total_us),
            parts: times,
            output: p.nbytes,
            failed: p.errors,
          };
        return {
          ...p,
          tasks: n[c] ?? 0,
          us,
          parts: times,
          output: bytes[c] ?? 0,
          failed: byStatus[c]?.reduce((a, v, i) => a + (bad[i] ? v : 0), 0) ?? 0,
        };
      })
      .filter((r) => r.us > 0 || (!activity && r.tasks > 0));
  }, [time, counts, selection.b0, selection.b1, activity]);
  if (!rows)
    return (
      <section class="panel">
        <Loading />
      </section>
    );
  const all = rows.reduce((a, r) => a + r.us, 0);
  const max = rows.reduce((a, r) => Math.max(a, r.us), 1);
  const ofPrefix = (whole: string, r: Row) =>
    selection.whole && !activity ? part(whole, "prefix", r.prefix) : undefined;
  const us = (id: string, head: string, value: (r: Row) => number, hint: string): ViewColumn<Row> => ({
    id,
    head,
    num: true,
    value,
    hint,
    cell: (r) => duration(value(r)),
  });
  const scope = model.isLive ? "Tasks in the timeline" : "Whole run";
  const note = model.isLive
    ? "prefixes; mean to max are for the tasks in the timeline"
    : selection.whole
      ? "prefixes"
      : "prefixes; mean to max are for the whole run";
  const columns: ViewColumn<Row>[] = [
    { id: "prefix", head: "Prefix", value: (r) => r.prefix, cell: (r) => <PrefixName prefix={r.prefix} /> },
    {
      id: "tasks",
      head: "Task runs",
      num: true,
      value: (r) => r.tasks,
      text: count,
      quantity: (r) => ofPrefix("task-runs", r),
    },
    us(
      "total",
      activity ? capital(ACTIVITY_NAMES[activity]) : "Total time",
      (r) => r.us,
      `${activity ? `Thread time in ${ACTIVITY_NAMES[activity]}` : "Thread time"} in the selected time`,
    ),
    {
      id: "split",
      head: "Activities",
      hint: model.isLive ? "CPU and waiting have one colour until the run has ended" : undefined,
      value: (r) => r.us,
      width: "22%",
      cell: (r) => <SplitBar parts={r.parts} max={max} />,
    },
    {
      id: "share",
      head: "Share",
      num: true,
      value: (r) => (all ? r.us / all : 0),
      cell: (r) => percent(all ? r.us / all : 0),
      quantity: (r) => ofPrefix("prefix-share", r),
    },
    us("mean", "Mean", (r) => r.mean_us, scope),
    us("p50", "Median", (r) => r.p50_us, scope),
    us("p95", "p95", (r) => r.p95_us, `${scope}: 95 % of executions were shorter`),
    us("max", "Max", (r) => r.max_us, scope),
    { id: "output", head: "Output", num: true, value: (r) => r.output, text: nbytes },
    {
      id: "errors",
      // Whether a task is retried is known once it has run again.
      head: model.isLive ? "Exceptions" : "Errors",
      num: true,
      value: (r) => r.failed,
      cell: (r) => <span class={r.failed ? "bad" : ""}>{count(r.failed)}</span>,
      quantity: (r) => ofPrefix("failed-tasks", r),
    },
  ];
  // Most runs lose no result, and the table is wide.
  if (report.prefixes.some((p) => p.recomputed_us > 0))
    columns.push({
      id: "recomputed",
      head: "Recomputed",
      hint: "Whole run: time spent recomputing lost results",
      num: true,
      value: (r) => r.recomputed_us,
      text: duration,
    });
  return (
    <section class="panel" aria-label="By task prefix">
      <DataTable
        title="By task prefix"
        label="Task prefixes"
        name="prefixes"
        rows={rows}
        of={report.prefixes.length}
        note={note}
        // The size of results is not known while the run goes on.
        columns={model.isLive ? columns.filter(({ id }) => id !== "output") : columns}
        sort={{ id: "total", down: true }}
        rowKey={(r) => r.prefix}
        rowTestid="prefix-row"
        onRow={(r) => model.nav.go("profile", { prefix: r.prefix })}
        empty={
          activity
            ? `No ${ACTIVITY_NAMES[activity]} time in the selected time`
            : selection.whole
              ? "No tasks ran"
              : "No tasks ran in the selected time"
        }
      />
    </section>
  );
}

export function SplitBar({ parts, max }: { parts: Float64Array; max: number }) {
  const sum = parts.reduce((a, b) => a + b, 0);
  return (
    <div class="ibarbox">
      <div class="ibar" style={{ width: `${(sum / Math.max(max, 1)) * 100}%`, minWidth: "2px" }}>
        {CATEGORIES.map((c, i) =>
          parts[i] > 0 ? <i key={c} class={`a-${c}`} style={{ flex: `${parts[i]} 1 0` }} /> : null,
        )}
      </div>
    </div>
  );
}
