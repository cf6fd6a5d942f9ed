import { useMemo } from "preact/hooks";
import { CATEGORIES, type Prefix } from "../../api/schema.gen";
import { ACTIVITY_NAMES, capital } from "../../model/activity";
import { sumBy, sumByTwo } from "../../model/cube";
import { useActivity, useCube, useModel, useSettledSelection } from "../../model/page/hooks";
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
    const parts = sumByTwo(time, "prefix", "category", "us", selection);
    const order = CATEGORIES.map((c) => time.keys.category.indexOf(c));
    const timeAt = new Map(time.keys.prefix.map((p, i) => [p, i]));
    const countAt = new Map(counts.keys.prefix.map((p, i) => [p, i]));
    const n = sumBy(counts, "prefix", "count", selection);
    const bytes = sumBy(counts, "prefix", "nbytes", selection);
    const byStatus = sumByTwo(counts, "prefix", "status", "count", selection);
    const bad = counts.keys.status.map((s) => s === "error" || s === "retried");
    return report.prefixes
      .map((p): Row => {
        const t = timeAt.get(p.prefix) ?? -1;
        const c = countAt.get(p.prefix) ?? -1;
        const times = Float64Array.from(order, (o, i) =>
          activity && CATEGORIES[i] !== activity ? 0 : (parts[t]?.[o] ?? 0),
        );
        const us = times.reduce((a, b) => a + b, 0);
        if (selection.whole)
          return {
            ...p,
            tasks: p.count,
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
  const us = (id: string, head: string, value: (r: Row) => number, hint: string): ViewColumn<Row> => ({
    id,
    head,
    num: true,
    value,
    hint,
    cell: (r) => duration(value(r)),
  });
  const columns: ViewColumn<Row>[] = [
    { id: "prefix", head: "Prefix", value: (r) => r.prefix, cell: (r) => <PrefixName prefix={r.prefix} /> },
    { id: "tasks", head: "Tasks", num: true, value: (r) => r.tasks, cell: (r) => count(r.tasks) },
    us(
      "total",
      activity ? capital(ACTIVITY_NAMES[activity]) : "Total time",
      (r) => r.us,
      `${activity ? `Thread time in ${ACTIVITY_NAMES[activity]}` : "Thread time"} in the selected time`,
    ),
    {
      id: "split",
      head: "Activities",
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
    },
    us("mean", "Mean", (r) => r.mean_us, "Whole run"),
    us("p50", "Median", (r) => r.p50_us, "Whole run"),
    us("p95", "p95", (r) => r.p95_us, "Whole run: 95 % of executions were shorter"),
    us("max", "Max", (r) => r.max_us, "Whole run"),
    { id: "output", head: "Output", num: true, value: (r) => r.output, cell: (r) => nbytes(r.output) },
    {
      id: "errors",
      head: "Errors",
      num: true,
      value: (r) => r.failed,
      cell: (r) => <span class={r.failed ? "bad" : ""}>{count(r.failed)}</span>,
    },
  ];
  // Most runs lose no result, and the table is wide.
  if (report.prefixes.some((p) => p.recomputed_us > 0))
    columns.push({
      id: "recomputed",
      head: "Recomputed",
      num: true,
      value: (r) => r.recomputed_us,
      hint: "Whole run: time spent recomputing lost results",
      cell: (r) => duration(r.recomputed_us),
    });
  return (
    <section class="panel" aria-label="By task prefix">
      <DataTable
        title="By task prefix"
        label="Task prefixes"
        name="prefixes"
        rows={rows}
        of={report.prefixes.length}
        note={selection.whole ? "prefixes" : "prefixes; mean to max are for the whole run"}
        columns={columns}
        sort={{ id: "total", down: true }}
        rowKey={(r) => r.prefix}
        rowTestid="prefix-row"
        onRow={(r) => model.nav.go("profile", { prefix: r.prefix })}
        empty={activity ? `No ${ACTIVITY_NAMES[activity]} time in the selected time` : "No tasks ran"}
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
