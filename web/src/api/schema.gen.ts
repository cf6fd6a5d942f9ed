// Written by scripts/gen-types from src/daskscope/report/schema.py. Change it there.

export const SCHEMA = 1;

export type Category = "cpu" | "noncpu" | "serialize" | "disk" | "transfer" | "failed" | "idle";

export type Status = "running" | "finished" | "erred" | "lost" | "idle";

export type DType = "u8" | "u16" | "u32" | "f32" | "f64" | "mini" | "utf8";

export const CATEGORIES: readonly Category[] = ["cpu", "noncpu", "serialize", "disk", "transfer", "failed", "idle"];

/**
 * A binary column: zlib over the byte planes of little-endian values (``utf8``: over lines of text).
 *
 * ``mini`` are whole numbers to three digits in 16 bits: codes below 512 are the number, others are 256 plus their low byte, times
 * two to the power of their high byte less one.
 */
export interface Block {
  block: string;
  dtype: DType;
  length: number;
}

/** The first thing a reader sees: what happened, and why, in words. */
export interface Answer {
  status: Status;
  headline: string;
  reason: string;
}

/** Dollars, estimated at the prices the recording was made with. */
export interface Cost {
  total: number;
  idle: number;
  formula: string;
}

/** The whole run in numbers; lengths in microseconds. */
export interface Totals {
  duration_us: number;
  tasks: number;
  errors: number;
  retries: number;
  killed: number;
  recomputed: number;
  workers: number;
  workers_lost: number;
  threads: number;
  thread_us: number;
  compute_us: number;
  idle_us: number;
  fully_idle_us: number;
  nbytes: number;
  peak_memory: number;
  memory_limit: number;
  spilled: number;
  transferred: number;
  parallelism: number;
  cost: Cost | null;
}

/** A part of all thread time. The parts add up to ``Totals.thread_us``. */
export interface Share {
  category: Category;
  label: string;
  us: number;
}

/** What could be saved at most: time of the run or of all threads, the part of it, and what was added up. */
export interface Gain {
  us: number;
  of: "run" | "threads";
  share: number;
  how: string;
}

/** A fact worth knowing and what follows from it; ``gain`` is missing where it cannot be said. */
export interface Finding {
  kind: string;
  title: string;
  evidence: string;
  advice: string;
  view: string;
  start_us: number;
  stop_us: number;
  gain: Gain | null;
}

/** All executions of one task prefix, the longest total first; lengths in microseconds. */
export interface Prefix {
  prefix: string;
  count: number;
  total_us: number;
  mean_us: number;
  std_us: number;
  p50_us: number;
  p95_us: number;
  p99_us: number;
  max_us: number;
  nbytes: number;
  peak_memory: number;
  errors: number;
  retries: number;
  killed: number;
  recomputed_us: number;
  intervals_us: Record<string, number>;
}

/** One worker's life. */
export interface Worker {
  worker: string;
  name: string;
  host: string;
  threads: number;
  memory_limit: number;
  start_us: number;
  stop_us: number;
  verdict: string;
  evidence: string;
  tasks: number;
  busy_us: number;
  utilisation: number;
  peak_memory: number;
  spilled: number;
  processing: string[];
  processing_count: number;
  lost_count: number;
  recomputed_us: number;
}

/** One compute, persist or submit wave with the code that asked for it. */
export interface Computation {
  computation: string;
  state: string;
  start_us: number;
  stop_us: number;
  tasks: number;
  errors: number;
  span: string;
  code: string;
  code_line: number;
  code_file: string;
}

/** A task group; ``dependencies`` are positions in the list of groups. */
export interface Group {
  group: string;
  prefix: string;
  computation: string;
  span: string;
  start_us: number;
  stop_us: number;
  tasks: number;
  nbytes: number;
  errors: number;
  durations_us: Record<string, number>;
  dominant: Category;
  dependencies: number[];
}

/** A distributed.span. */
export interface Span {
  span: string;
  name: string;
  parent: string;
  start_us: number;
  stop_us: number;
}

/** All failures with one fingerprint. */
export interface Error {
  fingerprint: string;
  type: string;
  message: string;
  traceback: string;
  count: number;
  retried: number;
  first_us: number;
  last_us: number;
  prefixes: string[];
  workers: string[];
  keys: string[];
}

/** Something that happened, or a log line (``kind`` is then its level). */
export interface Event {
  time_us: number;
  source: string;
  kind: string;
  worker: string;
  text: string;
  repeats: number;
}

/** One execution on the critical path; ``wait_us`` passed between its last input and its start. */
export interface Step {
  key: string;
  prefix: string;
  worker: string;
  start_us: number;
  stop_us: number;
  wait_us: number;
}

/** The chain of executions that the end had to wait for; lengths in microseconds. */
export interface CriticalPath {
  known: boolean;
  length_us: number;
  compute_us: number;
  wait_us: number;
  bound_us: number;
  by_prefix: [string, number][];
  steps: Step[];
  of: number;
}

/** The time axis of all cubes: ``count`` bins of ``width_us`` from the start of the report. */
export interface Bins {
  count: number;
  width_us: number;
}

/**
 * Sums by key and bin, one row per cell that is not empty.
 *
 * ``keys`` names the key columns in order with the values that their codes stand for; ``columns`` has a block of codes for each,
 * a block ``bin`` and a block for each measure. Where there are very many keys, ``step`` bins are taken together, and a row has
 * the first of them.
 */
export interface Cube {
  keys: Record<string, string[]>;
  measures: string[];
  step: number;
  rows: number;
  columns: Record<string, Block>;
}

/** One thread of a worker (a position in the report's workers); its bars are ``first`` to ``first + count``. */
export interface Lane {
  worker: number;
  thread: number;
  first: number;
  count: number;
  tasks: number;
}

/**
 * The task stream: bars sorted by lane and start.
 *
 * Columns of bars: ``gap`` (ticks since the end of the bar before in its lane, of the first since the start of the report;
 * zigzag), ``duration`` (microseconds), ``action`` (position in ``actions``). Action 0 is the execution itself, and the bars of
 * action 0 are the tasks 0, 1, 2 … in order. Other bars have a value in ``owner``: the task they belong to, counted from the next
 * one (zigzag).
 *
 * Columns of tasks: ``prefix`` (position in the report's prefixes), ``status``, ``type``, ``computation`` (positions; of
 * computations one more than that, 0 is none), ``nbytes``, ``wait`` (ticks between assignment and start), ``queue`` (ticks between
 * becoming runnable and assignment).
 *
 * Keys are texts with numbers taken out: ``template`` (position in ``templates``; where there is no such column the prefix is the
 * position) and ``number0``, ``number1`` … for each U+0000 in it. Where ``templates`` is empty, ``key`` (utf8) has a line a task,
 * JSON where a key has line breaks.
 */
export interface Stream {
  tick_us: number;
  lanes: Lane[];
  actions: string[];
  statuses: string[];
  types: string[];
  bars: number;
  tasks: number;
  of: number;
  templates: string[];
  columns: Record<string, Block>;
}

/** Samples of workers on the grid of the bins, a row a worker, NaN where there is none; one block a measure. */
export interface Series {
  workers: string[];
  measures: Record<string, Block>;
}

/**
 * Stacks as a tree of nodes (parents before children; a parent is a node plus one, 0 is none) and samples over their ends.
 *
 * ``frames`` are file, function, line and whose code it is. The cube's ``stack`` codes are nodes. ``seconds_per_sample`` scales
 * counts of ``compute`` samples to the compute time that was recorded.
 */
export interface Flame {
  frames: ([string, string, number, "user" | "lib" | "native" | "dask"])[];
  parents: Block;
  nodes: Block;
  cube: Cube;
  seconds_per_sample: number;
  got: number;
  expected: number;
}

/**
 * Dependencies between tasks of the stream, in the order of the tasks; ``of`` counts all that were recorded.
 *
 * ``tasks`` are differences to the row before, ``dependencies`` the distance from the task back to its dependency (zigzag).
 */
export interface Edges {
  tasks: Block;
  dependencies: Block;
  rows: number;
  of: number;
}

/** A column of a table of the recording. */
export interface ReportColumn {
  name: string;
  kind: "int" | "float" | "str" | "time" | "list";
  meaning: string;
}

/** Rows of a table of the recording; ``rows`` of ``of`` are here. ``data`` (utf8) has a line a column: a JSON array. */
export interface ReportTable {
  name: string;
  row: string;
  rows: number;
  of: number;
  dropped: number;
  columns: ReportColumn[];
  data: Block;
}

/** A label and its text, for lists of facts. */
export interface Fact {
  label: string;
  text: string;
}

/**
 * Everything.
 *
 * ``view`` is what is shown first, ``calling_code`` the code that asked for the report, ``failure`` the traceback of the exception
 * that ended its block.
 */
export interface Report {
  schema: number;
  generator: string;
  title: string;
  made_us: number;
  start_us: number;
  stop_us: number;
  answer: Answer;
  totals: Totals;
  split: Share[];
  findings: Finding[];
  facts: Fact[];
  statement: string;
  complete: boolean;
  view: string;
  calling_code: string;
  failure: string;
  prefixes: Prefix[];
  workers: Worker[];
  computations: Computation[];
  groups: Group[];
  spans: Span[];
  errors: Error[];
  events: Event[];
  events_of: number;
  critical_path: CriticalPath;
  bins: Bins;
  time_by_prefix: Cube;
  time_by_worker: Cube;
  time_by_span: Cube;
  counts: Cube;
  activities: Cube;
  transfers: Cube;
  series: Series;
  flame: Flame;
  stream: Stream;
  edges: Edges;
  tables: ReportTable[];
}
