import type { Report } from "../../api/schema.gen";
import { comparedText } from "../../model/run-groups";
import { count, counted, duration, moment, money, nbytes, nbytesOf, percent, UNKNOWN } from "../../model/text/format";
import type { Metric } from "../../widgets/metric-strip";
import { RunStrip } from "../../widgets/plots/run-strip";
import type { RunHistory } from "../views";

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

/** The duration beside the other runs of its name. A click on another one compares both. */
function durationOf(t: Report["totals"], history: RunHistory | null): Pick<Metric, "note" | "figure"> {
  const idle = t.fully_idle_us > 0 ? `${duration(t.fully_idle_us)} fully idle` : "never fully idle";
  const note = t.tasks === 0 ? "no tasks ran" : idle;
  if (!history || history.recent.length < 2) return { note };
  const { run, recent, compare } = history;
  const titleOf = (id: string) => {
    const other = recent.find((one) => one.id === id);
    const started = other?.start ? ` of ${moment(Date.parse(other.start) * 1000)}` : "";
    return `Compare with the run${started}: ${duration(1e6 * (other?.duration ?? 0))}`;
  };
  return {
    note: comparedText(run, recent) || note,
    figure: <RunStrip recent={recent} last={run.id} link={(id) => ({ href: compare(id), title: titleOf(id) })} />,
  };
}

export function metricsOf({ totals: t }: Report, history: RunHistory | null): Metric[] {
  const some = (...parts: [number, string][]) =>
    parts
      .filter(([n]) => n > 0)
      .map(([n, word]) => `${count(n)} ${word}`)
      .join(", ");
  return [
    {
      id: "duration",
      label: "Duration",
      quantity: "duration",
      value: duration(t.duration_us),
      ...durationOf(t, history),
    },
    {
      id: "tasks",
      label: "Task runs",
      quantity: "task-runs",
      value: count(t.tasks),
      note:
        some([t.recomputed, "recomputed"], [t.retries, "retried"], [t.killed, "killed"]) ||
        (t.tasks === 0 ? "no tasks ran" : "each ran once"),
    },
    {
      id: "errors",
      label: "Errors",
      quantity: "failed-tasks",
      value: count(t.errors),
      note: t.retries ? `${count(t.retries)} more retried` : t.errors ? "none retried" : "no task failed",
    },
    {
      id: "threads",
      label: "Threads",
      quantity: "threads",
      value: (
        <>
          {count(t.threads)} <small>at peak</small>
        </>
      ),
      note:
        t.workers_lost > 0
          ? `${counted(t.workers, "worker")} in total, ${count(t.workers_lost)} lost`
          : `${t.parallelism.toFixed(1)} busy on average, ${counted(t.workers, "worker")}`,
    },
    { id: "memory", label: "Total peak memory", quantity: "peak-memory", ...memoryOf(t) },
    {
      id: "transferred",
      label: "Transferred",
      value: nbytes(t.transferred),
      note: t.shuffled > 0 ? `${nbytes(t.shuffled)} by P2P shuffles` : `${nbytes(t.nbytes)} of results`,
      quantity: "transferred",
    },
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
