// Written by scripts/gen-types from src/daskscope/server/contract.py. Change it there.

export type ClusterState = "running" | "idle" | "finished" | "lost";

export type ComputationState = "running" | "done" | "erred" | "cancelled" | "lost";

export type ErrorState = "open" | "resolved" | "ignored" | "regressed";

export type Role = "viewer" | "member" | "owner";

export type Scope = "ingest" | "read" | "write" | "admin";

/** What something cost, by which formula. */
export interface Money {
  total: number;
  busy: number;
  idle: number;
  per_hour: number;
  currency: string;
  estimate: boolean;
  formula: string;
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
  state: ClusterState;
  status: string;
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
  cost: Money;
  url: string;
}

/** A part of an account's clusters, and how many there are in each state. */
export interface ClusterList {
  items: Cluster[];
  next: string | null;
  states: Record<string, number>;
  busy: Record<string, number[]>;
}

/** Executions of one prefix, added up; lengths in seconds. */
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
}

/** A worker's life. */
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
  state: ClusterState;
  status: string;
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
  cost: Money;
  url: string;
  config: Record<string, unknown>;
  idle_timeout: number;
  worker_list: Worker[];
  clients: ConnectedClient[];
  prefixes: Prefix[];
}

/** A cluster over time, in steps of the same length; workers, threads and busy threads are averages over each. */
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
  state: ClusterState;
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

/** One compute, persist or submit wave. */
export interface Computation {
  id: string;
  cluster_id: string;
  scheduler_id: string;
  cluster_name: string;
  user: string;
  state: ComputationState;
  code: string;
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

/** A computation with its prefixes and earlier runs of the same code. */
export interface OneComputation {
  id: string;
  cluster_id: string;
  scheduler_id: string;
  cluster_name: string;
  user: string;
  state: ComputationState;
  code: string;
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

/** Failures that are the same. */
export interface ErrorGroup {
  fingerprint: string;
  type: string;
  message: string;
  first_seen: string | null;
  last_seen: string | null;
  count: number;
  n_clusters: number;
  users: string[];
  state: ErrorState;
  state_since: string | null;
  state_by: string;
  url: string;
}

/** A group with its failures in each of the last hours, oldest first. */
export interface ListedError {
  fingerprint: string;
  type: string;
  message: string;
  first_seen: string | null;
  last_seen: string | null;
  count: number;
  n_clusters: number;
  users: string[];
  state: ErrorState;
  state_since: string | null;
  state_by: string;
  url: string;
  hours: number[];
}

/** A group with its latest failures, and by package the versions it was seen with. */
export interface OneError {
  fingerprint: string;
  type: string;
  message: string;
  first_seen: string | null;
  last_seen: string | null;
  count: number;
  n_clusters: number;
  users: string[];
  state: ErrorState;
  state_since: string | null;
  state_by: string;
  url: string;
  traceback: string;
  versions: Record<string, string[]>;
  latest: Failure[];
}

/** A report at the server. */
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
  status: string;
  cluster_id: string;
  tags: string[];
}

/** An account somebody belongs to. */
export interface Membership {
  name: string;
  role: Role;
}

/** Who asks. */
export interface Me {
  user: string;
  kind: "token" | "session" | "local";
  admin: boolean;
  account: string | null;
  scopes: ("ingest" | "read" | "write" | "admin")[];
  accounts: Membership[];
}

/** Somebody who belongs to an account. */
export interface Member {
  name: string;
  email: string;
  role: Role;
  since: string | null;
}

/** A token without its secret, and how many recorders write with one made from it. */
export interface Token {
  id: number;
  hint: string;
  label: string;
  scopes: ("ingest" | "read" | "write" | "admin")[];
  user: string;
  expired: boolean;
  recorders: number;
  created: string | null;
  expires: string | null;
  used: string | null;
  revoked: string | null;
}

/** What an account decides for itself; 0 days or bytes: as the server says. */
export interface AccountPreferences {
  visibility: "public" | "private";
  keep_rows_days: number;
  keep_sums_days: number;
  keep_rows_nbytes: number;
  core_hour: number;
  gib_hour: number;
  price_overrides: Record<string, Record<string, number>>;
}

/** A cluster that computes, and how far it is. */
export interface Running {
  cluster: Cluster;
  done: number;
  total: number;
}

/** What an account used on one day (UTC). */
export interface Day {
  day: string;
  tasks: number;
  errors: number;
  compute_seconds: number;
  thread_seconds: number;
  cost: number;
  cost_idle: number;
}

/** Compute time of a member in a week, which begins on a Monday. */
export interface WeekCell {
  user: string;
  week: string;
  compute_seconds: number;
}

/** What a team wants to know first. */
export interface Overview {
  states: Record<string, number>;
  running: Running[];
  failed: Computation[];
  n_failed: number;
  n_finished: number;
  idle: Cluster[];
  idle_per_hour: number;
  days: Day[];
  weeks: WeekCell[];
  reports: HostedReport[];
}

/** What one day, user, cluster or prefix used; a prefix has a share of what busy threads cost, and no threads of its own. */
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

/** What an account used in some days. */
export interface Usage {
  by: "day" | "user" | "cluster" | "prefix";
  items: UsageLine[];
  total: UsageLine;
  clusters: number;
  estimate: boolean;
}
