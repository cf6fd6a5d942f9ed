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
  span: string;
  client: string;
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

/** Failures that are the same. */
export interface ErrorGroup {
  fingerprint: string;
  type: string;
  message: string;
  traceback: string;
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
