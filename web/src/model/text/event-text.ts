import type { Event } from "../../api/schema.gen";
import { counted, percent } from "./format";

type Detail = Readonly<Record<string, unknown>>;

/** Return the detail of an event as an object; null for log lines and texts that were cut. */
function detailOf(text: string): Detail | null {
  if (!text.startsWith("{")) return null;
  try {
    return JSON.parse(text) as Detail;
  } catch {
    return null;
  }
}

/** Return the length of a list, which a recording may shorten to its count and first items. */
function size(value: unknown): number {
  if (typeof value === "number") return value;
  if (Array.isArray(value)) return value.length;
  if (typeof value !== "object" || value === null) return 0;
  const { count } = value as Detail;
  return typeof count === "number" ? count : Object.keys(value).length;
}

const object = (value: unknown): Detail => (typeof value === "object" && value !== null ? (value as Detail) : {});

const were = (n: number, noun: string) => `${counted(n, noun)} ${n === 1 ? "was" : "were"}`;

/** Sentences of the scheduler's events by kind: of the worker's name and the detail. */
const SENTENCES: Readonly<Record<string, (worker: string, detail: Detail) => string>> = {
  "update-graph": (_, d) => {
    const tasks = size(object(d.metrics).tasks);
    return d.status && d.status !== "OK" ? "A graph could not be submitted" : `${were(tasks, "task")} submitted`;
  },
  gather: (_, d) => `${were(size(d.count), "result")} gathered`,
  scatter: (_, d) => `${were(size(d.count), "value")} scattered`,
  cancel: (_, d) => `${were(size(d.count), "task")} cancelled`,
  retry: (_, d) => `${were(size(d.count), "task")} retried`,
  "add-worker": (worker) => `${worker} joined`,
  "remove-worker": (worker, d) => {
    const lost = size(d["lost-computed-tasks"]);
    const running = size(d["processing-tasks"]);
    return [
      `${worker} left`,
      ...(running ? [`${were(running, "task")} assigned to it`] : []),
      ...(lost ? [`${were(lost, "result")} lost`] : []),
    ].join("; ");
  },
  "close-worker": (worker) => `${worker} was asked to close`,
  "retire-workers": (_, d) => `${were(size(d.retired ?? d.workers), "worker")} retired`,
  retired: (worker) => `${worker} was retired`,
  "could-not-retire": (worker) => `${worker} could not be retired`,
  "restart-workers": (_, d) => `${were(size(d.workers), "worker")} restarted`,
  restart: () => "The cluster was restarted",
  "worker-status-change": (worker, d) => `${worker} changed from ${d["prev-status"] ?? "unknown"} to ${d.status}`,
  "worker-ttl-timed-out": (worker) => `${worker} sent no heartbeat for too long`,
  "add-client": () => "A client connected",
  "remove-client": () => "A client disconnected",
  "wanted-workers": (_, d) => `Adaptive scaling wants ${counted(size(d.wanted ?? d.count ?? d.workers), "worker")}`,
  rebalance: () => "Results were rebalanced between workers",
  replicate: () => "Results were replicated to more workers",
  seceded: (worker) => `A task on ${worker} left its thread`,
  "run-function": (_, d) => `${String(d.function ?? "A function")} ran on the scheduler`,
  "fine-performance-metrics": () => "Performance metrics were reported",
  "gil-contention": (_, d) => `GIL contention was ${percent(Number(d.value) || 0)}`,
};

/** Return an event as a sentence. Log lines and unknown kinds are shown as they are, without line breaks. */
export function eventText(event: Pick<Event, "kind" | "text" | "worker">, workerName: string): string {
  const sentence = Object.hasOwn(SENTENCES, event.kind) ? SENTENCES[event.kind] : null;
  const detail = detailOf(event.text);
  if (!sentence || (event.text.startsWith("{") && !detail)) return plain(event.text, event.kind);
  return sentence(workerName ? `Worker ${workerName}` : "A worker", detail ?? {});
}

function plain(text: string, kind: string): string {
  return text.startsWith("{") || text === "" ? kind.replaceAll("-", " ") : text.replace(/\s+/g, " ").trim();
}

/** Longer log lines do not fit into a row. */
const MAX_LINE = 80;

/** Return the detail with line breaks if it is JSON; "" if the row already shows everything. */
export function rawDetail(text: string): string {
  const detail = detailOf(text);
  if (detail) return JSON.stringify(detail, null, 2);
  return text.startsWith("{") || text.includes("\n") || text.length > MAX_LINE ? text : "";
}
