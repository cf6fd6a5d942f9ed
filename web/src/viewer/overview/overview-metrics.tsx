import type { Report } from "../../api/schema.gen";
import { count, counted, duration, money, nbytes, nbytesOf, percent, UNKNOWN } from "../../model/text/format";
import type { Metric } from "../../widgets/metric-strip";

/** Peak memory. A peak of 0 means that no worker was sampled, because every process uses some memory. */
function memoryOf(t: Report["totals"]): Pick<Metric, "value" | "note"> {
  if (t.peak_memory === 0) return { value: UNKNOWN, note: "no samples" };
  const [peak, limit] = nbytesOf(t.peak_memory, t.memory_limit);
  return {
    value:
      t.memory_limit > 0 ? (
        <>
          {peak} <small>of {limit}</small>
        </>
      ) : (
        nbytes(t.peak_memory)
      ),
    note: t.spilled > 0 ? `${nbytes(t.spilled)} spilled` : "nothing spilled",
  };
}

export function metricsOf({ totals: t }: Report): Metric[] {
  const some = (...parts: [number, string][]) =>
    parts
      .filter(([n]) => n > 0)
      .map(([n, word]) => `${count(n)} ${word}`)
      .join(", ");
  return [
    {
      id: "duration",
      label: "Duration",
      value: duration(t.duration_us),
      note:
        t.tasks === 0
          ? "no tasks ran"
          : t.fully_idle_us > 0
            ? `${duration(t.fully_idle_us)} fully idle`
            : "never fully idle",
    },
    {
      id: "tasks",
      label: "Task runs",
      value: count(t.tasks),
      note:
        some([t.recomputed, "recomputed"], [t.retries, "retried"], [t.killed, "killed"]) ||
        (t.tasks === 0 ? "no tasks ran" : "each ran once"),
    },
    {
      id: "errors",
      label: "Errors",
      value: count(t.errors),
      note: t.retries ? `${count(t.retries)} more retried` : t.errors ? "none retried" : "no task failed",
    },
    {
      id: "threads",
      label: "Threads",
      value: (
        <>
          {count(t.threads)} <small>on {counted(t.workers - t.workers_lost, "worker")}</small>
        </>
      ),
      note:
        t.workers_lost > 0
          ? `${counted(t.workers_lost, "worker")} lost`
          : `${t.parallelism.toFixed(1)} busy on average`,
    },
    { id: "memory", label: "Peak memory", ...memoryOf(t) },
    { id: "transferred", label: "Transferred", value: nbytes(t.transferred), note: `${nbytes(t.nbytes)} of results` },
    ...(t.cost
      ? [
          {
            id: "cost",
            label: "Est. cost",
            value: money(t.cost.total),
            note: `${t.cost.total > 0 ? `${percent(t.cost.idle / t.cost.total)} of it idle; ` : ""}${t.cost.formula}`,
          },
        ]
      : []),
  ];
}
