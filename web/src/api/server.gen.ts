// Written by scripts/gen-types from src/daskscope/server/contract.py. Change it there.

import type { AuditAction, ErrorState, Role, RunState, Scope } from "./states.gen";

export type { AuditAction, ErrorState, Role, RunState, Scope };

/** Parameters of a prediction: ``Options``, and numbers of workers and threads. */
export interface WhatIfQuery {
  workers?: string;
  threads?: number;
  prefix?: string;
  times?: number;
  no_transfers?: boolean;
  no_spill?: boolean;
  no_stragglers?: boolean;
  chunks?: number;
}

/** Tasks of a computation or of one of its prefixes. */
export interface TaskCounts {
  total: number;
  done: number;
  running: number;
  waiting: number;
  failed: number;
}

/** The progress of a prefix. */
export interface PrefixProgress {
  total: number;
  done: number;
  running: number;
  waiting: number;
  failed: number;
  prefix: string;
}

/** An estimated range of seconds. */
export interface TimeLeft {
  low: number;
  high: number;
}

/** How long earlier runs of the same code took, in seconds, and whether this run is unusual. */
export interface UsualDuration {
  runs: number;
  median: number;
  low: number;
  high: number;
  left: TimeLeft | null;
  state: "" | "slower" | "more tasks" | "fewer tasks";
  sentence: string;
}

/** The progress of a running computation. */
export interface ComputationProgress {
  total: number;
  done: number;
  running: number;
  waiting: number;
  failed: number;
  id: string;
  code: string;
  code_file: string;
  code_line: number;
  start: string | null;
  left: TimeLeft | null;
  summary: string;
  stuck: string;
  note: string;
  usual: UsualDuration | null;
  prefixes: PrefixProgress[];
}

/** The running computations of a cluster, oldest first. */
export interface ClusterProgress {
  items: ComputationProgress[];
  total: number;
}

/** A task that has been running for a second or longer. */
export interface LongTask {
  key: string;
  prefix: string;
  computation_id: string;
  worker: string;
  worker_name: string;
  start: string | null;
  age: number;
  usual: number | null;
}

/** The tasks of a cluster that have been running longest. */
export interface RunningTasks {
  items: LongTask[];
  total: number;
}

/** A request for stacks, by the time it was made. */
export interface StackRequest {
  request: number;
}

/** The stack of a task. Frames are positions in the list of frames, outermost first. */
export interface TaskStack {
  key: string;
  prefix: string;
  worker: string;
  worker_name: string;
  thread: number;
  time: string | null;
  age: number | null;
  frames: number[];
}

/** The answer to the last request for stacks. */
export interface CurrentStacks {
  request: number;
  asked_at: string | null;
  of: string;
  state: "not requested" | "waiting" | "done" | "no answer";
  workers: number;
  asked: number;
  answered: number;
  why: string;
  frames: ([string, string, number, "user" | "lib" | "native" | "dask"])[];
  items: TaskStack[];
  nodes: number[];
  parents: number[];
  counts: number[];
}

/**
 */
export interface IncrementWorker {
  worker: string;
  name: string;
  threads: number;
  memory_limit: number;
  start_us: number;
  stop_us: number;
  verdict: string;
}

/** Failures of an error group. Key, prefix and time belong to the last failure. */
export interface IncrementError {
  fingerprint: string;
  type: string;
  message: string;
  prefix: string;
  key: string;
  count: number;
  time_us: number;
}

/** Names, which columns refer to by position. */
export interface IncrementNames {
  prefixes: string[];
  lanes: [string, number][];
  workers: string[];
  frames: [string, string, number, string][];
}

/** Sums over the whole run in steps of ``step`` seconds, by the first second of each step. */
export interface IncrementHistory {
  step: number;
  seconds: number[];
  us: number[];
  tasks: number[];
  errors: number[];
}

/** The header of an increment. Its columns follow as bytes, in the order of ``columns``. */
export interface IncrementHeader {
  cursor: string;
  is_first: boolean;
  origin_us: number;
  now_us: number;
  known_until_us: number;
  is_live: boolean;
  window: number;
  first_second: number;
  names: IncrementNames;
  workers: IncrementWorker[];
  errors: IncrementError[];
  keys: string[];
  left_out: number;
  history: IncrementHistory | null;
  columns: [string, string, string, number][];
}

/** A column of a result, with its DuckDB type. */
export interface SqlResultColumn {
  name: string;
  type: string;
}

/** The rows of a query. */
export interface SqlAnswer {
  columns: SqlResultColumn[];
  rows: unknown[][];
  is_cut: boolean;
  clusters: number;
  all_clusters: number;
  skipped: string[];
  skipped_clusters: number;
  seconds: number;
}

/** A column that queries can use. */
export interface SqlTableColumn {
  name: string;
  kind: string;
  meaning: string;
}

/** A table that queries can read. */
export interface SqlTable {
  name: string;
  row: string;
  columns: SqlTableColumn[];
}

/** All tables that queries can read. */
export interface SqlTables {
  tables: SqlTable[];
}

/** A computation with its prefixes and earlier runs of the same code. */
export interface OneComputation {
  id: string;
  cluster_id: string;
  scheduler_id: string;
  cluster_name: string;
  user: string;
  state: RunState;
  code: string;
  call: string;
  code_file: string;
  code_line: number;
  start: string | null;
  stop: string | null;
  duration: number;
  n_tasks: number;
  states: Record<string, number>;
  n_executions: number;
  n_errors: number;
  durations: Record<string, number>;
  nbytes: number;
  n_groups: number;
  n_submissions: number;
  span: string;
  client: string;
  url: string;
  prefixes: Prefix[];
  earlier: Computation[];
  usual: UsualDuration | null;
}

/** One run. Durations are seconds; compute, transfer and disk are thread time of its tasks. */
export interface HistoryRun {
  id: string;
  cluster_id: string;
  start: string | null;
  duration: number;
  cost: number | null;
  compute: number;
  transfer: number;
  disk: number;
  n_tasks: number;
  n_errors: number;
  nbytes: number;
  threads: number;
}

/** The median duration from one change to the next, in seconds, and the index of the first run with it. */
export interface HistoryLevel {
  first: number;
  duration: number;
}

/** A change of the level: when, by how much, and what else changed. */
export interface HistoryChange {
  at: string | null;
  sentence: string;
  causes: string[];
}

/** Finished runs of the same code, oldest first, and the changes of their duration. */
export interface ComputationHistory {
  runs: HistoryRun[];
  levels: HistoryLevel[];
  changes: HistoryChange[];
}

/** A cluster, and what went wrong in it. */
export interface ListedCluster {
  id: string;
  scheduler_id: string;
  name: string;
  user: string;
  host: string;
  address: string;
  account: string;
  state: RunState;
  status: "running" | "stopped";
  reason: string;
  created: string | null;
  start: string | null;
  end: string | null;
  last_seen: string | null;
  last_work: string | null;
  idle_since: string | null;
  duration: number;
  workers: number;
  threads: number;
  memory: number;
  memory_limit: number;
  peak_workers: number;
  peak_threads: number;
  peak_memory_limit: number;
  clock_offset: number;
  tasks_processing: number;
  tasks_queued: number;
  tasks_unrunnable: number;
  n_tasks: number;
  n_errors: number;
  n_exceptions: number;
  n_computations: number;
  thread_seconds: number;
  compute_seconds: number;
  transfer_seconds: number;
  disk_seconds: number;
  idle_seconds: number;
  nbytes: number;
  tags: string[];
  versions: Record<string, string>;
  platform: Record<string, string>;
  dropped: Record<string, number>;
  missing_rows: number;
  cost: Money;
  url: string;
  lost_workers: number;
  problem: string;
}

/** A run as a dot in the row of its name. */
export interface RecentRun {
  id: string;
  start: string | null;
  duration: number;
  state: RunState;
  lost_workers: number;
}

/** The clusters of one name that a filter selects. A cluster without a name is a group of its own. */
export interface RunGroup {
  name: string;
  newest: ListedCluster;
  runs: number;
  cost: number;
  recent: RecentRun[];
}

/** A page of an account's clusters by name, and the number of clusters in each state, whatever state the filter selects. */
export interface RunList {
  items: RunGroup[];
  next: string | null;
  states: Record<string, number>;
  lost_workers: number;
}

/** A cluster as lists show it. */
export interface Cluster {
  id: string;
  scheduler_id: string;
  name: string;
  user: string;
  host: string;
  address: string;
  account: string;
  state: RunState;
  status: "running" | "stopped";
  reason: string;
  created: string | null;
  start: string | null;
  end: string | null;
  last_seen: string | null;
  last_work: string | null;
  idle_since: string | null;
  duration: number;
  workers: number;
  threads: number;
  memory: number;
  memory_limit: number;
  peak_workers: number;
  peak_threads: number;
  peak_memory_limit: number;
  clock_offset: number;
  tasks_processing: number;
  tasks_queued: number;
  tasks_unrunnable: number;
  n_tasks: number;
  n_errors: number;
  n_exceptions: number;
  n_computations: number;
  thread_seconds: number;
  compute_seconds: number;
  transfer_seconds: number;
  disk_seconds: number;
  idle_seconds: number;
  nbytes: number;
  tags: string[];
  versions: Record<string, string>;
  platform: Record<string, string>;
  dropped: Record<string, number>;
  missing_rows: number;
  cost: Money;
  url: string;
}

/** A computation: one ``compute()``, ``persist()`` or ``submit()`` call. */
export interface Computation {
  id: string;
  cluster_id: string;
  scheduler_id: string;
  cluster_name: string;
  user: string;
  state: RunState;
  code: string;
  call: string;
  code_file: string;
  code_line: number;
  start: string | null;
  stop: string | null;
  duration: number;
  n_tasks: number;
  states: Record<string, number>;
  n_executions: number;
  n_errors: number;
  durations: Record<string, number>;
  nbytes: number;
  n_groups: number;
  n_submissions: number;
  span: string;
  client: string;
  url: string;
}

/** A report on the server. */
export interface HostedReport {
  id: number;
  filename: string;
  title: string;
  private: boolean;
  url: string;
  kind: "recording" | "html";
  account: string;
  user: string | null;
  created: string | null;
  expires: string | null;
  size: number;
  duration: number;
  n_tasks: number;
  n_errors: number;
  state: string;
  cluster_id: string;
  tags: string[];
}

/** Usage of an account over some days. */
export interface Usage {
  by: "day" | "user" | "cluster" | "prefix";
  items: UsageLine[];
  total: UsageLine;
  clusters: number;
  estimate: boolean;
}

/** Usage of one day, user, cluster or prefix. A prefix has a share of the cost of busy threads, but no threads. */
export interface UsageLine {
  name: string;
  label: string;
  tasks: number;
  errors: number;
  compute_seconds: number;
  transfer_seconds: number;
  nbytes: number;
  thread_seconds: number;
  cost: number;
  cost_busy: number;
  cost_idle: number;
}

/** A running cluster and its progress. */
export interface Running {
  cluster: Cluster;
  done: number;
  total: number;
}

/** Usage of an account on one day (UTC). */
export interface Day {
  day: string;
  tasks: number;
  errors: number;
  compute_seconds: number;
  thread_seconds: number;
  cost: number;
  cost_idle: number;
}

/** Compute time of a member in a week, which starts on Monday. */
export interface WeekCell {
  user: string;
  week: string;
  compute_seconds: number;
}

/** The last computation of a run that failed. */
export interface FailedComputation {
  id: string;
  cluster_id: string;
  scheduler_id: string;
  cluster_name: string;
  user: string;
  state: RunState;
  code: string;
  call: string;
  code_file: string;
  code_line: number;
  start: string | null;
  stop: string | null;
  duration: number;
  n_tasks: number;
  states: Record<string, number>;
  n_executions: number;
  n_errors: number;
  durations: Record<string, number>;
  nbytes: number;
  n_groups: number;
  n_submissions: number;
  span: string;
  client: string;
  url: string;
  cause: string;
  n_failed: number;
}

/** What the home page shows. */
export interface Overview {
  states: Record<string, number>;
  running: Running[];
  failed: FailedComputation[];
  n_failed: number;
  n_finished: number;
  idle: Cluster[];
  idle_per_hour: number;
  days: Day[];
  weeks: WeekCell[];
  reports: HostedReport[];
}

/** An error group: errors with the same fingerprint. */
export interface ErrorGroup {
  fingerprint: string;
  type: string;
  message: string;
  first_seen: string | null;
  last_seen: string | null;
  count: number;
  n_fatal: number;
  n_computations: number;
  n_clusters: number;
  users: string[];
  function: string;
  file: string;
  line: number;
  state: ErrorState;
  state_since: string | null;
  state_by: string;
  url: string;
}

/** A failed execution. */
export interface Failure {
  id: number;
  time: string | null;
  cluster_id: string;
  scheduler_id: string;
  cluster_name: string;
  user: string;
  type: string;
  message: string;
  traceback: string;
  cause_type: string;
  cause_message: string;
  key: string;
  prefix: string;
  computation_id: string;
  worker: string;
  fingerprint: string;
  will_retry: boolean;
  count: number;
  url: string;
}

/** An error group with its errors per hour, oldest first, and how many of them were not retried. */
export interface ListedError {
  fingerprint: string;
  type: string;
  message: string;
  first_seen: string | null;
  last_seen: string | null;
  count: number;
  n_fatal: number;
  n_computations: number;
  n_clusters: number;
  users: string[];
  function: string;
  file: string;
  line: number;
  state: ErrorState;
  state_since: string | null;
  state_by: string;
  url: string;
  hours: number[];
  fatal_hours: number[];
}

/** Errors per step of time, oldest first, and how many of them were not retried. */
export interface ErrorTimeline {
  start: string | null;
  step: number;
  counts: number[];
  fatal: number[];
}

/** An error group with its latest errors, a week of them over time, and the versions it was seen with, by package. */
export interface OneError {
  fingerprint: string;
  type: string;
  message: string;
  first_seen: string | null;
  last_seen: string | null;
  count: number;
  n_fatal: number;
  n_computations: number;
  n_clusters: number;
  users: string[];
  function: string;
  file: string;
  line: number;
  state: ErrorState;
  state_since: string | null;
  state_by: string;
  url: string;
  traceback: string;
  versions: Record<string, string[]>;
  latest: Failure[];
  timeline: ErrorTimeline;
}

/** A computation on a number of equal workers. */
export interface PredictedCluster {
  workers: number;
  threads: number;
  duration: number;
  max_duration: number;
  speedup: number;
  efficiency: number;
  cost: number | null;
  peak_worker_memory: number;
  peak_memory: number;
  transferred: number;
  exceeds_memory: boolean;
}

/** Predictions of a computation, by number of workers. */
export interface WhatIf {
  reason: string;
  check: string;
  advice: string;
  workers: number;
  threads: number;
  duration: number;
  replayed: number;
  bound: number;
  knee: number;
  predictions: PredictedCluster[];
  assumptions: string[];
  prefixes: string[];
}

/** The baseline of one test. */
export interface Baseline {
  name: string;
  test: string;
  repeats: number;
  size: number;
  created: string | null;
  changed: string | null;
  user: string;
}

/** A baseline with the measurements of each repeat, as they were kept. */
export interface BaselineRuns {
  name: string;
  test: string;
  repeats: number;
  size: number;
  created: string | null;
  changed: string | null;
  user: string;
  runs: Record<string, unknown>[];
}

/** A page of an account's baselines. */
export interface BaselineList {
  items: Baseline[];
  next: string | null;
}

/** A cost and its formula. */
export interface Money {
  total: number;
  busy: number;
  idle: number;
  per_hour: number;
  currency: string;
  estimate: boolean;
  formula: string;
}

/** A page of an account's clusters, and the number of clusters in each state. */
export interface ClusterList {
  items: ListedCluster[];
  next: string | null;
  states: Record<string, number>;
}

/** Executions of one prefix, summed; durations in seconds. */
export interface Prefix {
  prefix: string;
  tasks: number;
  errors: number;
  retried: number;
  killed: number;
  nbytes: number;
  compute: number;
  transfer: number;
  disk: number;
  deserialize: number;
  longest: number;
  mean: number;
  order: number;
}

/** A worker. */
export interface Worker {
  server_id: string;
  worker: string;
  name: string;
  host: string;
  nthreads: number;
  memory_limit: number;
  verdict: string;
  evidence: string;
  start: string | null;
  end: string | null;
  memory: number;
  cpu_percent: number;
  lost_results: number;
  processing_at_end: number;
}

/** A client of a cluster. */
export interface ConnectedClient {
  client: string;
  connected: string | null;
  last_seen: string | null;
  disconnected: string | null;
  held_keys: number;
  held_nbytes: number;
}

/** A cluster with its workers, clients and prefixes. */
export interface OneCluster {
  id: string;
  scheduler_id: string;
  name: string;
  user: string;
  host: string;
  address: string;
  account: string;
  state: RunState;
  status: "running" | "stopped";
  reason: string;
  created: string | null;
  start: string | null;
  end: string | null;
  last_seen: string | null;
  last_work: string | null;
  idle_since: string | null;
  duration: number;
  workers: number;
  threads: number;
  memory: number;
  memory_limit: number;
  peak_workers: number;
  peak_threads: number;
  peak_memory_limit: number;
  clock_offset: number;
  tasks_processing: number;
  tasks_queued: number;
  tasks_unrunnable: number;
  n_tasks: number;
  n_errors: number;
  n_exceptions: number;
  n_computations: number;
  thread_seconds: number;
  compute_seconds: number;
  transfer_seconds: number;
  disk_seconds: number;
  idle_seconds: number;
  nbytes: number;
  tags: string[];
  versions: Record<string, string>;
  platform: Record<string, string>;
  dropped: Record<string, number>;
  missing_rows: number;
  cost: Money;
  url: string;
  config: Record<string, unknown>;
  idle_timeout: number;
  worker_list: Worker[];
  clients: ConnectedClient[];
  prefixes: Prefix[];
  recent: RecentRun[];
}

/** A cluster over time, in equal steps; workers, threads and busy threads are averages per step. */
export interface History {
  start: string | null;
  step: number;
  edges: number[];
  workers: number[];
  threads: number[];
  busy: number[];
  tasks: number[];
  errors: number[];
  wanted: (number | null)[];
}

/** Why a cluster is still running. */
export interface Explanation {
  cluster_id: string;
  state: RunState;
  answer: string;
  evidence: string[];
  advice: string[];
  tasks_processing: number;
  tasks_queued: number;
  tasks_unrunnable: number;
  idle_since: string | null;
  idle_timeout: number;
  clients: ConnectedClient[];
  cost_per_hour: number;
  cost_so_far: number;
}

/** An account of the caller. */
export interface Membership {
  name: string;
  role: Role;
}

/** The caller. */
export interface Me {
  user: string;
  kind: "token" | "session" | "local";
  admin: boolean;
  account: string | null;
  scopes: ("ingest" | "read" | "write" | "admin" | "tokens" | "accounts")[];
  expires: string | null;
  accounts: Membership[];
  warnings: string[];
}

/** A member of an account. */
export interface Member {
  name: string;
  email: string;
  role: Role;
  since: string | null;
}

/** A token without its secret, and the numbers of recorder tokens and other tokens created with it. */
export interface Token {
  id: number;
  hint: string;
  label: string;
  scopes: ("ingest" | "read" | "write" | "admin" | "tokens" | "accounts")[];
  user: string;
  expired: boolean;
  expires_soon: boolean;
  recorders: number;
  children: number;
  created: string | null;
  expires: string | null;
  used: string | null;
  revoked: string | null;
}

/** A new browser session. Its cookie works only together with the page secret. */
export interface Opened {
  user: string;
  page_secret: string;
}

/** A user of the server, as its administrators see it. */
export interface ServerUser {
  name: string;
  email: string;
  admin: boolean;
  created: string | null;
  disabled: string | null;
}

/** A link that works once. */
export interface SignInLink {
  url: string;
  expires: string | null;
}

/** A browser session of the caller. */
export interface BrowserSession {
  id: string;
  agent: string;
  address: string;
  created: string | null;
  expires: string | null;
  current: boolean;
}

/** Who did what, when and from where. */
export interface AuditEvent {
  id: number;
  time: string | null;
  server: boolean;
  user: string;
  action: AuditAction;
  subject: string;
  address: string;
  details: Record<string, unknown>;
}

/** The sign-in of a command line. The server knows the address; the requester states the rest. */
export interface DeviceSignIn {
  user_code: string;
  state: string;
  address: string;
  host: string;
  label: string;
  scopes: string[];
}

/** Preferences of an account; 0 days or bytes means the server's default. */
export interface AccountPreferences {
  visibility: "public" | "private";
  keep_rows_days: number;
  keep_sums_days: number;
  keep_rows_nbytes: number;
  core_hour: number;
  gib_hour: number;
  price_overrides: Record<string, Record<string, number>>;
}
