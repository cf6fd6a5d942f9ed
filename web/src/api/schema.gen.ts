// Written by scripts/gen-types from src/daskscope/report/schema.py. Change it there.

export const SCHEMA = 2;

export type Category = "cpu" | "noncpu" | "serialize" | "disk" | "transfer" | "failed" | "idle";

export type DType = "u8" | "u16" | "u32" | "f32" | "f64" | "mini" | "utf8";

export const CATEGORIES: readonly Category[] = ["cpu", "noncpu", "serialize", "disk", "transfer", "failed", "idle"];

export const INTERNAL_METRICS: readonly { context?: string; prefix?: string; activity?: string }[] = [
  { prefix: "", activity: "total" },
  { context: "p2p", activity: "idle" },
  { context: "p2p", prefix: "foreground" },
];

/** The tasks of a phase of a coffea run, and their time. */
export interface CoffeaPhase {
  phase: "preprocess" | "process" | "merge";
  tasks: number;
  us: number;
}

/** All chunks of a dataset or a file; ``slowest_start`` is the first event of the slowest chunk. */
export interface CoffeaPart {
  name: string;
  chunks: number;
  events: number;
  bytes_read: number;
  task_us: number;
  process_us: number;
  slowest_us: number;
  slowest_start: number;
}

/** Events per second of wall time, of thread time, of task time and of ``process()``; null if not known. */
export interface CoffeaRates {
  wall: number | null;
  thread: number | null;
  task: number | null;
  process: number | null;
}

/** Duration of a chunk: a fixed part, and a part per event. */
export interface CoffeaFit {
  fixed_us: number;
  us_per_event: number;
}

/**
 * One call of coffea's Runner, or a computation with dask-awkward. Numbers that were not recorded are -1.
 *
 * ``points`` are events and duration of chunks. ``event_rate`` (events per second) and ``worker_count`` have a value per bin.
 */
export interface CoffeaRun {
  name: string;
  kind: "Runner" | "dask-awkward";
  headline: string;
  start_us: number;
  stop_us: number;
  threads: number;
  events: number;
  chunks: number;
  chunks_skipped: number;
  chunks_failed: number;
  files: number;
  files_skipped: number;
  bytes_read: number;
  requests: number;
  task_us: number;
  open_us: number;
  process_us: number;
  useful_share: number | null;
  overhead_us: number;
  bytes_per_event: number | null;
  read_amplification: number | null;
  rates: CoffeaRates;
  phases: CoffeaPhase[];
  datasets: CoffeaPart[];
  file_parts: CoffeaPart[];
  columns: string[];
  fit: CoffeaFit | null;
  points: [number, number][];
  workers: [string, number][];
  event_rate: number[];
  worker_count: number[];
}

/** One quantity before and after: medians of the repeats and their ranges, and the relative change. */
export interface ComparedChange {
  name: string;
  before: number | null;
  after: number | null;
  before_range: number[] | null;
  after_range: number[] | null;
  verdict: "slower" | "faster" | "no difference shown" | "cannot tell" | "only before" | "only after" | "";
  p: number | null;
  ratio: number | null;
}

/** One task prefix: time and CPU time per task, and totals. */
export interface ComparedPrefix {
  prefix: string;
  time: ComparedChange;
  cpu: ComparedChange;
  total_us: ComparedChange;
  count: ComparedChange;
  nbytes: ComparedChange;
  verdict: "slower" | "faster" | "no difference shown" | "cannot tell" | "only before" | "only after" | "";
}

/** A package or config key with different values. */
export interface ComparedText {
  name: string;
  before: string;
  after: string;
}

/**
 * Stacks of both sides in one tree: file, function, line and owner of each frame; self seconds of each node in a median run.
 *
 * A node refers to a frame, and to its parent by index plus one; 0 for roots.
 */
export interface ComparedFlame {
  frames: ([string, string, number, "user" | "lib" | "native" | "dask"])[];
  nodes: number[];
  parents: number[];
  before: number[];
  after: number[];
}

/** A comparison of two sets of runs. */
export interface Comparison {
  before: string[];
  after: string[];
  headline: string;
  verdict: string;
  reason: string;
  notes: string[];
  repeats_before: number;
  repeats_after: number;
  can_prove: boolean;
  wall: ComparedChange;
  walls_before: number[];
  walls_after: number[];
  prefixes: ComparedPrefix[];
  thread_us: ComparedChange[];
  spans_us: ComparedChange[];
  peak_memory: ComparedChange;
  memory_before: number[];
  memory_after: number[];
  transferred: ComparedChange;
  workers: ComparedChange;
  threads: ComparedChange;
  errors: ComparedChange;
  other_cores: ComparedChange;
  is_load_different: boolean;
  versions: ComparedText[];
  config: ComparedText[];
  code: string;
  hints: string[];
  left_out: string[];
  flame: ComparedFlame;
}

/**
 * A binary column: zlib over the byte planes of little-endian values (``utf8``: over lines of text).
 *
 * ``mini`` are whole numbers to three digits in 16 bits: a code below 512 is the number itself, others are 256 plus the low
 * byte, times two to the power of the high byte less one.
 */
export interface Block {
  block: string;
  dtype: DType;
  length: number;
}

/** The headline: how the run ended, and why. */
export interface Answer {
  state: "running" | "idle" | "finished" | "failed" | "unfinished" | "interrupted" | "lost";
  headline: string;
  reason: string;
}

/** Dollars, estimated at the prices in the recording. */
export interface Cost {
  total: number;
  idle: number;
  formula: string;
}

/** Totals of the whole run; durations in microseconds. */
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
  shuffled: number;
  parallelism: number;
  cost: Cost | null;
}

/** A reason for waiting or idle thread time. */
export interface Reason {
  reason: string;
  label: string;
  us: number;
}

/** A category of thread time. All of them add up to ``Totals.thread_us``. */
export interface Share {
  category: Category;
  label: string;
  us: number;
  reasons: Reason[];
}

/** The estimated saving, an upper bound: wall time or thread time, its share, and what was added up. */
export interface Gain {
  us: number;
  of: "run" | "threads";
  share: number;
  how: string;
  wall_low_us: number;
  wall_high_us: number;
  cost_high: number;
}

/** A finding with its evidence and a suggestion; ``gain`` is null if it cannot be estimated. */
export interface Finding {
  kind: string;
  title: string;
  evidence: string;
  advice: string;
  view: string;
  start_us: number;
  stop_us: number;
  gain: Gain | null;
  rule: string;
}

/**
 * All executions of one task prefix, longest total first; durations in microseconds.
 *
 * ``order`` is its position in the order in which prefixes first ran. Colours follow it, while the run goes on and later.
 */
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
  order: number;
}

/** One worker from joining to leaving. */
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
  busy_share: number;
  peak_memory: number;
  peak_us: number;
  spilled: number;
  processing: string[];
  processing_count: number;
  lost_count: number;
  recomputed_us: number;
}

/** Time in which a connected worker did not take tasks: it was paused, or had just joined. */
export interface WorkerPeriod {
  worker: string;
  state: "paused" | "starting";
  start_us: number;
  stop_us: number;
}

/** One ``compute()``, ``persist()`` or ``submit()`` call, with its calling code. */
export interface Computation {
  computation: string;
  state: "running" | "idle" | "finished" | "failed" | "unfinished" | "interrupted" | "lost";
  start_us: number;
  stop_us: number;
  tasks: number;
  errors: number;
  span: string;
  code: string;
  code_line: number;
  code_file: string;
  graph_us: number;
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

/** A span of ``distributed.span``. */
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

/** An event, or a log line, whose ``kind`` is its level. */
export interface Event {
  time_us: number;
  source: string;
  kind: string;
  worker: string;
  text: string;
  repeats: number;
}

/**
 * One execution on the critical path.
 *
 * ``wait_us`` is the time since the end of the step before: queued at the scheduler, fetching inputs, waiting for
 * a busy thread, and the rest. With ``same_thread`` the step before did not produce an input, but occupied the thread.
 * ``task`` is its number in the stream, -1 if it was left out.
 */
export interface Step {
  task: number;
  key: string;
  prefix: string;
  worker: string;
  start_us: number;
  stop_us: number;
  wait_us: number;
  queue_us: number;
  transfer_us: number;
  busy_us: number;
  scheduler_us: number;
  same_thread: boolean;
}

/** The chain of executions that determined when a computation ended, the longest one; durations in microseconds. */
export interface CriticalPath {
  known: boolean;
  computation: string;
  length_us: number;
  compute_us: number;
  wait_us: number;
  queue_us: number;
  transfer_us: number;
  busy_us: number;
  scheduler_us: number;
  bound_us: number;
  by_prefix: [string, number][];
  steps: Step[];
  of: number;
}

/** The time axis of all cubes: ``count`` bins of ``width_us``, beginning at the start of the report. */
export interface Bins {
  count: number;
  width_us: number;
}

/**
 * Sums by key and bin, one row per non-empty cell.
 *
 * ``keys`` has the key columns in order, each with the texts of its codes; ``columns`` has a block of codes for each, a block
 * ``bin`` and a block for each measure. If there are very many keys, ``step`` bins are merged, and a row has the first of them.
 */
export interface Cube {
  keys: Record<string, string[]>;
  measures: string[];
  step: number;
  rows: number;
  columns: Record<string, Block>;
}

/** One thread of a worker (its position in the report's workers); its bars are ``first`` to ``first + count``. */
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
 * Columns of bars: ``gap`` (ticks since the end of the previous bar in the lane, or since the start of the report; zigzag),
 * ``duration`` (microseconds), ``action`` (position in ``actions``). Action 0 is the execution itself, and the bars of action 0
 * are the tasks 0, 1, 2 … in order. Each other bar has a value in ``owner``: its task, counted from the next task (zigzag).
 *
 * Columns of tasks: ``prefix`` (position in the report's prefixes), ``status`` and ``type`` (positions), ``computation``
 * (position plus one; 0 means none), ``nbytes``, ``wait`` (ticks between assignment and start), ``queue`` (ticks between becoming
 * runnable and assignment).
 *
 * Keys are templates and numbers: ``template`` (position in ``templates``; without this column the prefix is the position) and
 * ``number0``, ``number1`` … for each U+0000 in the template. If ``templates`` is empty, ``key`` (utf8) has a line per task, as
 * JSON if the key has line breaks.
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

/** Samples by worker (row) and bin (column), NaN without a sample; one block per measure. */
export interface Series {
  workers: string[];
  measures: Record<string, Block>;
}

/**
 * Stacks as a tree of nodes (parents before children; a parent is a node plus one, 0 means none), and samples by node.
 *
 * ``frames`` are file, function, line and owner of the code. The cube's ``stack`` codes are nodes. ``seconds_per_sample``
 * scales counts of ``compute`` samples to the recorded compute time of their prefix, by its code; it is empty without such
 * samples. ``got`` of ``expected`` samples were taken. ``note`` says why there are no stacks of event loops.
 */
export interface Flame {
  frames: ([string, string, number, "user" | "lib" | "native" | "dask"])[];
  parents: Block;
  nodes: Block;
  cube: Cube;
  seconds_per_sample: number[];
  got: number;
  expected: number;
  note: string;
}

/**
 * Dependencies between tasks of the stream, in the order of the tasks; ``of`` is the number recorded.
 *
 * ``tasks`` are differences to the previous row, ``dependencies`` the distance from the task back to its dependency (zigzag).
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

/** The first ``rows`` of ``of`` rows of a table of the recording. ``data`` (utf8) has a JSON array per column, one per line. */
export interface ReportTable {
  name: string;
  row: string;
  rows: number;
  of: number;
  dropped: number;
  columns: ReportColumn[];
  data: Block;
}

/** A labelled fact. */
export interface Fact {
  label: string;
  text: string;
}

/**
 * The whole report.
 *
 * ``view`` is the view shown first, ``calling_code`` the code around the report, ``failure`` the traceback of the exception
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
  worker_periods: WorkerPeriod[];
  computations: Computation[];
  groups: Group[];
  spans: Span[];
  errors: Error[];
  events: Event[];
  events_of: number;
  critical_path: CriticalPath;
  other_paths: CriticalPath[];
  bins: Bins;
  time_by_prefix: Cube;
  time_by_worker: Cube;
  time_by_span: Cube;
  idle_by_reason: Cube;
  counts: Cube;
  activities: Cube;
  transfers: Cube;
  series: Series;
  scheduler: Series;
  flame: Flame;
  stream: Stream;
  edges: Edges;
  coffea: CoffeaRun[];
  tables: ReportTable[];
}
