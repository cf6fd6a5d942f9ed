import {
  type Block,
  type Category,
  type Cube,
  type Error as ErrorGroup,
  type Flame,
  type Prefix,
  type Report,
  SCHEMA,
  type Series,
  type Worker,
} from "../../api/schema.gen";
import { MemorySource } from "../../api/source";
import { isExecution, type LiveLane } from "./live-lanes";
import type { LiveRun } from "./live-run";
import { LIVE_CATEGORIES } from "./live-sums";
import { KEPT_S, type LiveWorker, MEMORY_MEASURES, pausesOf, sampleAt } from "./live-workers";

const SECOND = 1e6;
/** Bins of the time axis. They are one second wide in the first two hours, and then two seconds and more. */
const MAX_BINS = 7_200;
/** Cells of a series of memory. With more, only the fullest workers have one: 300 in the first 20 minutes, 55 after two hours. */
const MAX_CELLS = 400_000;

/** Return numbers that are not known before the run has ended: NaN, because a zero would look like a fact. */
function unknown<K extends string>(...names: readonly K[]): Record<K, number> {
  return Object.fromEntries(names.map((name) => [name, Number.NaN])) as Record<K, number>;
}

/** The names of the categories of a live run in a document. Its compute time is not split into CPU and waiting. */
const CATEGORIES: readonly Category[] = ["cpu", "transfer", "disk", "serialize", "failed", "idle"];
const IDLE = CATEGORIES.indexOf("idle");
const FAILED = CATEGORIES.indexOf("failed");
const LIVE_ACTIONS = LIVE_CATEGORIES.slice(0, -1);
const LIVE_STATUSES = ["ok", "failed"] as const;

/** A live run in the form of a document. */
export interface LiveDocument {
  report: Report;
  source: MemorySource;
  /** The lanes of the stream, in its order. */
  lanes: readonly LiveLane[];
  /** The rank of each prefix, by its number in the run. */
  ranks: readonly number[];
}

/** Rows of a cube. Several rows of one cell add up. */
class CubeRows {
  private readonly columns: number[][];

  constructor(
    private readonly keys: Record<string, string[]>,
    private readonly measures: string[],
  ) {
    this.columns = this.names.map(() => []);
  }

  private get names(): string[] {
    return ["bin", ...Object.keys(this.keys), ...this.measures];
  }

  /** Add a row: its bin, the code of each key, and the value of each measure. */
  add(...row: number[]): void {
    for (let i = 0; i < row.length; i++) this.columns[i].push(row[i]);
  }

  cube(name: string, source: MemorySource): Cube {
    const columns: Cube["columns"] = {};
    this.names.forEach((column, i) => {
      columns[column] = source.add(`${name}.${column}`, Float64Array.from(this.columns[i]));
    });
    return { keys: this.keys, measures: this.measures, step: 1, rows: this.columns[0].length, columns };
  }
}

const NO_CUBE: Cube = { keys: {}, measures: [], step: 1, rows: 0, columns: {} };
const NO_BLOCK: Block = { block: "", dtype: "u8", length: 0 };

/** The time axis: bins of whole seconds. */
interface Bins {
  count: number;
  /** Seconds. */
  width: number;
  /** The end of what is known, in seconds since the origin: rows of the last seconds have not arrived. */
  known: number;
}

function binsUntil(now: number, known: number): Bins {
  let width = 1;
  while (Math.ceil(now / width) > MAX_BINS) width *= 2;
  return { count: Math.max(1, Math.ceil(now / width)), width, known: Math.min(now, known) };
}

/** Call `put` with the bins that [from, to) seconds cover, and the share of it in each. */
function spread(bins: Bins, from: number, to: number, put: (bin: number, share: number) => void): void {
  const last = Math.min(bins.count - 1, Math.ceil(to / bins.width) - 1);
  for (let bin = Math.max(0, Math.floor(from / bins.width)); bin <= last; bin++) {
    const inside = Math.min(to, (bin + 1) * bins.width) - Math.max(from, bin * bins.width);
    if (inside > 0) put(bin, inside / (to - from));
  }
}

/** Return the workers. Bars can arrive before their worker: it has no threads so far. */
function knownWorkers(run: LiveRun): LiveWorker[] {
  const { workers } = run.workers;
  const others = new Set(run.lanes.lanes.map((lane) => lane.worker).filter((worker) => !workers.has(worker)));
  const unknown = { name: "", threads: 0, memory_limit: 0, stop_us: 0, verdict: "", samples: null, last: -1 };
  return [...workers.values(), ...[...others].map((worker) => ({ ...unknown, worker, start_us: run.originUs }))];
}

/** Return the thread time that some workers had in each bin as far as it is known, in microseconds. */
function capacity(workers: readonly LiveWorker[], originUs: number, bins: Bins): Float64Array {
  const sums = new Float64Array(bins.count);
  // Workers join and leave, and most bins lie between: only the changes are added up.
  const changes = new Float64Array(bins.count + 1);
  const full = bins.width * SECOND;
  for (const { start_us, stop_us, threads } of workers) {
    const from = Math.max(0, (start_us - originUs) / SECOND);
    const to = stop_us > 0 ? Math.min(bins.known, (stop_us - originUs) / SECOND) : bins.known;
    if (to <= from) continue;
    const [first, last] = [Math.floor(from / bins.width), Math.min(bins.count - 1, Math.floor(to / bins.width))];
    changes[first] += threads * full;
    changes[last + 1] -= threads * full;
    sums[first] -= threads * (from - first * bins.width) * SECOND;
    sums[last] -= threads * ((last + 1) * bins.width - to) * SECOND;
  }
  let all = 0;
  for (let bin = 0; bin < bins.count; bin++) {
    all += changes[bin];
    sums[bin] = Math.max(0, sums[bin] + all);
  }
  return sums;
}

/** What is known about the executions of a prefix. */
interface PrefixSums {
  us: number;
  count: number;
  failed: number;
}

/** Return the cubes of thread time and executions, the sums of each prefix, and the sums of all. */
function timeCubes(run: LiveRun, workers: readonly LiveWorker[], bins: Bins, source: MemorySource) {
  // Sums of the time before the window do not have a prefix, nor does idle time.
  const names = [...run.prefixes, ""];
  const none = names.length - 1;
  const time = new CubeRows({ prefix: names, category: [...CATEGORIES] }, ["us"]);
  const counts = new CubeRows({ prefix: names, status: [...LIVE_STATUSES] }, ["count", "us"]);
  const prefixes = names.map((): PrefixSums => ({ us: 0, count: 0, failed: 0 }));
  const busy = new Float64Array(bins.count);
  const totals = { tasks: 0, compute_us: 0, thread_us: 0 };
  run.busy.each(({ second, length, prefix, category, us, count }) => {
    const code = prefix < 0 ? none : prefix;
    const sums = prefixes[code];
    sums.us += us;
    sums.count += count;
    if (category === FAILED) sums.failed += count;
    totals.tasks += count;
    if (isExecution(category)) totals.compute_us += us;
    spread(bins, second, second + length, (bin, share) => {
      busy[bin] += us * share;
      time.add(bin, code, category, us * share);
      if (isExecution(category)) counts.add(bin, code, category === FAILED ? 1 : 0, count * share, us * share);
    });
  });
  capacity(workers, run.originUs, bins).forEach((all, bin) => {
    totals.thread_us += all;
    if (all > busy[bin]) time.add(bin, none, IDLE, all - busy[bin]);
  });
  return { time: time.cube("time_by_prefix", source), counts: counts.cube("counts", source), prefixes, totals };
}

/** Return the thread time of each worker as far as its bars are known; nothing if some bars were left out. */
function workerCube(run: LiveRun, workers: readonly LiveWorker[], bins: Bins, source: MemorySource): Cube {
  const rows = new CubeRows({ worker: workers.map((w) => w.worker), category: [...CATEGORIES] }, ["us"]);
  const first = Math.ceil(run.keptFrom / SECOND / bins.width);
  const byWorker = Map.groupBy(run.lanes.lanes, (lane) => lane.worker);
  workers.forEach(({ worker, threads, start_us, stop_us }, code) => {
    const lanes = byWorker.get(worker);
    if (!lanes || run.leftOut > 0) return;
    const busy = new Float64Array(Math.max(0, bins.count - first));
    for (const { start, length } of lanes)
      for (let i = 0; i < start.length; i++)
        spread(bins, start[i] / SECOND, (start[i] + length[i]) / SECOND, (bin, share) => {
          if (bin >= first) busy[bin - first] += length[i] * share;
        });
    const from = Math.max(first * bins.width, (start_us - run.originUs) / SECOND);
    const to = stop_us > 0 ? Math.min(bins.known, (stop_us - run.originUs) / SECOND) : bins.known;
    spread(bins, from, to, (bin, share) => {
      const all = share * (to - from) * threads * SECOND;
      const us = Math.min(busy[bin - first], all);
      rows.add(bin, code, 0, us);
      rows.add(bin, code, IDLE, all - us);
    });
  });
  return rows.cube("time_by_worker", source);
}

function mean(values: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i];
  return sum / values.length;
}

/** Return the prefixes that took most time first. Mean to maximum are of the executions that have bars. */
function prefixesOf(run: LiveRun, sums: readonly PrefixSums[]): Prefix[] {
  const counts = new Uint32Array(run.prefixes.length);
  const each = (put: (prefix: number, length: number) => void) => {
    for (const { category, prefix, length } of run.lanes.lanes)
      for (let i = 0; i < length.length; i++) if (isExecution(category[i])) put(prefix[i], length[i]);
  };
  each((prefix) => counts[prefix]++);
  const lengths = Array.from(counts, (count) => new Float64Array(count));
  each((prefix, length) => {
    lengths[prefix][--counts[prefix]] = length;
  });
  return run.prefixes
    .flatMap((prefix, order): Prefix[] => {
      if (!prefix) return [];
      const sorted = lengths[order].sort();
      const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN;
      const { us, count, failed } = sums[order];
      return [
        {
          ...unknown("std_us", "nbytes", "peak_memory", "retries", "recomputed_us"),
          prefix,
          order,
          count,
          total_us: us,
          mean_us: mean(sorted),
          p50_us: at(0.5),
          p95_us: at(0.95),
          p99_us: at(0.99),
          max_us: at(1),
          errors: failed,
          // Executions that were lost with their worker count as failed.
          killed: 0,
          intervals_us: {},
        },
      ];
    })
    .sort((a, b) => b.total_us - a.total_us || a.order - b.order);
}

function workerOf({ samples, last, ...worker }: LiveWorker): Worker {
  const counts = unknown(
    "tasks",
    "busy_us",
    "busy_share",
    "spilled",
    "processing_count",
    "lost_count",
    "recomputed_us",
  );
  // Without a peak, panels take the highest sample.
  return { ...worker, ...counts, host: "", evidence: "", peak_memory: 0, peak_us: 0, processing: [] };
}

function memorySeries(workers: readonly LiveWorker[], bins: Bins, source: MemorySource): Series {
  const sampled = workers.filter((worker) => worker.last >= 0);
  const most = Math.max(12, Math.floor(MAX_CELLS / bins.count));
  const latest = (worker: LiveWorker) => sampleAt(worker, "memory", worker.last);
  const shown = sampled.length > most ? sampled.sort((a, b) => latest(b) - latest(a)).slice(0, most) : sampled;
  const measures: Series["measures"] = {};
  for (const measure of MEMORY_MEASURES) {
    const values = new Float32Array(shown.length * bins.count).fill(Number.NaN);
    shown.forEach((worker, row) => {
      for (let second = Math.max(0, worker.last - KEPT_S); second <= worker.last; second++) {
        const value = sampleAt(worker, measure, second);
        const bin = Math.floor(second / bins.width);
        // The highest value of a bin. Comparing with NaN is false.
        if (bin < bins.count && !Number.isNaN(value) && !(values[row * bins.count + bin] > value))
          values[row * bins.count + bin] = value;
      }
    });
    measures[measure === "memory" ? "process" : measure] = source.add(`series.${measure}`, values);
  }
  return { workers: shown.map((worker) => worker.worker), measures };
}

function flameOf({ stacks }: LiveRun, bins: Bins, source: MemorySource): Flame {
  const rows = new CubeRows({ stack: stacks.nodes.map(() => "") }, ["count"]);
  let got = 0;
  for (const [second, counts] of stacks.counts)
    for (const [stack, count] of counts) {
      got += count;
      rows.add(Math.min(bins.count - 1, Math.floor(second / bins.width)), stack, count);
    }
  return {
    frames: stacks.frames,
    nodes: source.add("flame.nodes", Float64Array.from(stacks.nodes)),
    parents: source.add("flame.parents", Float64Array.from(stacks.parents)),
    cube: rows.cube("flame", source),
    // How long a sample stands for is known when the compute time is.
    seconds_per_sample: [],
    got,
    ...unknown("expected"),
    note: "",
  };
}

/** Return a live run as a document. What is not known yet is empty or NaN, and never zero. */
export function liveDocument(run: LiveRun, nowUs: number): LiveDocument {
  const source = new MemorySource();
  const bins = binsUntil(nowUs / SECOND, run.knownUntil / SECOND);
  const order = new Intl.Collator("en", { numeric: true });
  const workers = knownWorkers(run).sort((a, b) => order.compare(a.name || a.worker, b.name || b.worker));
  const position = new Map(workers.map((worker, i) => [worker.worker, i]));
  const lanes = [...run.lanes.lanes].sort(
    (a, b) => (position.get(a.worker) ?? 0) - (position.get(b.worker) ?? 0) || a.thread - b.thread,
  );
  const sums = timeCubes(run, workers, bins, source);
  const prefixes = prefixesOf(run, sums.prefixes);
  const rank = new Map(prefixes.map((prefix, i) => [prefix.prefix, i]));

  const report: Report = {
    schema: SCHEMA,
    generator: "",
    title: "",
    made_us: run.originUs + nowUs,
    start_us: run.originUs,
    stop_us: run.originUs + nowUs,
    answer: { state: "running", headline: "", reason: "" },
    totals: {
      ...unknown("errors", "retries", "killed", "recomputed", "workers_lost", "threads"),
      ...unknown("idle_us", "fully_idle_us", "nbytes", "peak_memory", "memory_limit", "spilled", "transferred"),
      ...unknown("shuffled", "parallelism"),
      duration_us: nowUs,
      ...sums.totals,
      tasks: Math.round(sums.totals.tasks),
      workers: workers.length,
      cost: null,
    },
    split: [],
    findings: [],
    facts: [],
    statement: "",
    complete: true,
    view: "overview",
    calling_code: "",
    failure: "",
    prefixes,
    workers: workers.map(workerOf),
    worker_periods: workers.flatMap((worker) =>
      pausesOf(worker).map(([from, to]) => ({
        worker: worker.worker,
        state: "paused" as const,
        start_us: run.originUs + from * SECOND,
        stop_us: run.originUs + to * SECOND,
      })),
    ),
    computations: [],
    groups: [],
    spans: [],
    errors: [...run.errors.values()].map(
      (error): ErrorGroup => ({
        ...error,
        ...unknown("retried", "first_us"),
        last_us: error.time_us,
        traceback: "",
        prefixes: [error.prefix],
        workers: [],
        keys: [error.key],
      }),
    ),
    events: [],
    events_of: 0,
    critical_path: {
      ...unknown(
        "length_us",
        "compute_us",
        "wait_us",
        "queue_us",
        "transfer_us",
        "busy_us",
        "scheduler_us",
        "bound_us",
      ),
      known: false,
      computation: "",
      by_prefix: [],
      steps: [],
      of: 0,
    },
    other_paths: [],
    bins: { count: bins.count, width_us: bins.width * SECOND },
    time_by_prefix: sums.time,
    time_by_worker: workerCube(run, workers, bins, source),
    time_by_span: NO_CUBE,
    idle_by_reason: NO_CUBE,
    counts: sums.counts,
    activities: NO_CUBE,
    transfers: NO_CUBE,
    series: memorySeries(workers, bins, source),
    scheduler: { workers: [], measures: {} },
    flame: flameOf(run, bins, source),
    stream: {
      tick_us: 1,
      lanes: lanes.map(({ worker, thread, start }) => ({
        worker: position.get(worker) ?? 0,
        thread,
        first: 0,
        count: start.length,
        tasks: 0,
      })),
      actions: [...LIVE_ACTIONS],
      statuses: [...LIVE_STATUSES],
      types: [],
      bars: run.lanes.bars,
      tasks: run.lanes.tasks,
      of: run.lanes.tasks + run.leftOut,
      templates: [],
      columns: {},
    },
    // The dependencies of tasks are not among the increments.
    edges: { tasks: NO_BLOCK, dependencies: NO_BLOCK, rows: 0, ...unknown("of") },
    coffea: [],
    tables: [],
  };
  return { report, source, lanes, ranks: run.prefixes.map((name) => rank.get(name) ?? prefixes.length) };
}
