"""What the API answers: the contract between the server and its pages, and anybody else who asks.

``scripts/gen-types`` writes ``web/src/api/server.gen.ts`` from these definitions. Moments are ISO 8601 in UTC, None where they are
not known; lengths are seconds, sizes bytes, money US dollars and always an estimate.
"""

from __future__ import annotations

from typing import Literal, TypedDict

ClusterState = Literal["running", "idle", "finished", "lost"]
ComputationState = Literal["running", "done", "erred", "cancelled", "lost"]
ErrorState = Literal["open", "resolved", "ignored", "regressed"]
Role = Literal["viewer", "member", "owner"]
Scope = Literal["ingest", "read", "write", "admin"]


class Money(TypedDict):
    """What something cost, by which formula."""

    total: float
    busy: float
    idle: float
    per_hour: float
    currency: str
    estimate: bool
    formula: str


class Cluster(TypedDict):
    """A cluster as lists show it."""

    id: str
    scheduler_id: str
    name: str
    user: str
    host: str
    address: str
    account: str
    state: ClusterState
    status: str
    reason: str
    created: str | None
    start: str | None
    end: str | None
    last_seen: str | None
    last_work: str | None
    idle_since: str | None
    duration: float
    workers: int
    threads: int
    memory: int
    #: What it has, or, once it is over, the most it had.
    memory_limit: int
    peak_workers: int
    peak_threads: int
    peak_memory_limit: int
    #: Seconds the server's clock is ahead of the scheduler's, at most; 0 where it is not known.
    clock_offset: float
    #: At the last word of it: computed now, waiting for a thread, and asking for what no worker has.
    tasks_processing: int
    tasks_queued: int
    tasks_unrunnable: int
    n_tasks: int
    n_errors: int
    n_exceptions: int
    n_computations: int
    thread_seconds: float
    compute_seconds: float
    transfer_seconds: float
    disk_seconds: float
    idle_seconds: float
    nbytes: int
    tags: list[str]
    versions: dict[str, str]
    platform: dict[str, str]
    dropped: dict[str, int]
    cost: Money
    url: str


class ClusterList(TypedDict):
    """A part of an account's clusters, and how many there are in each state."""

    items: list[Cluster]
    next: str | None
    states: dict[str, int]
    #: Where it was asked for: by id, which share of the threads was busy in the last hour of its life, oldest first.
    busy: dict[str, list[float]]


class Prefix(TypedDict):
    """Executions of one prefix, added up; lengths in seconds."""

    prefix: str
    tasks: int
    errors: int
    retried: int
    killed: int
    nbytes: int
    compute: float
    transfer: float
    disk: float
    deserialize: float
    longest: float
    mean: float


class Worker(TypedDict):
    """A worker's life."""

    server_id: str
    worker: str
    name: str
    host: str
    nthreads: int
    memory_limit: int
    verdict: str
    evidence: str
    start: str | None
    end: str | None
    memory: int
    cpu_percent: float
    lost_results: int
    processing_at_end: int


class ConnectedClient(TypedDict):
    """A client of a cluster."""

    client: str
    connected: str | None
    last_seen: str | None
    disconnected: str | None
    held_keys: int
    held_nbytes: int


class OneCluster(Cluster):
    """A cluster with its workers, clients and prefixes."""

    config: dict[str, object]
    idle_timeout: float
    worker_list: list[Worker]
    clients: list[ConnectedClient]
    prefixes: list[Prefix]


class History(TypedDict):
    """A cluster over time, in steps of the same length; workers, threads and busy threads are averages over each."""

    start: str | None
    step: float
    #: Seconds since the start at which each step begins, and at which the last ends.
    edges: list[float]
    workers: list[float]
    threads: list[float]
    busy: list[float]
    tasks: list[int]
    errors: list[int]
    #: The most adaptive scaling asked for in each step; None before it asked, and always where it is not used.
    wanted: list[int | None]


class Explanation(TypedDict):
    """Why a cluster is still running."""

    cluster_id: str
    state: ClusterState
    answer: str
    evidence: list[str]
    advice: list[str]
    tasks_processing: int
    tasks_queued: int
    tasks_unrunnable: int
    idle_since: str | None
    idle_timeout: float
    clients: list[ConnectedClient]
    cost_per_hour: float
    cost_so_far: float


class Computation(TypedDict):
    """One compute, persist or submit wave."""

    id: str
    cluster_id: str
    scheduler_id: str
    cluster_name: str
    user: str
    state: ComputationState
    code: str
    code_file: str
    code_line: int
    start: str | None
    stop: str | None
    duration: float
    n_tasks: int
    states: dict[str, int]
    n_executions: int
    n_errors: int
    durations: dict[str, float]
    nbytes: int
    n_groups: int
    #: Graphs that Dask put together, because they came while others ran; the code is that of the first.
    n_submissions: int
    span: str
    client: str
    url: str


class OneComputation(Computation):
    """A computation with its prefixes and earlier runs of the same code."""

    prefixes: list[Prefix]
    earlier: list[Computation]


class Failure(TypedDict):
    """A failed execution."""

    id: int
    time: str | None
    cluster_id: str
    scheduler_id: str
    cluster_name: str
    user: str
    type: str
    message: str
    traceback: str
    cause_type: str
    cause_message: str
    key: str
    prefix: str
    computation_id: str
    worker: str
    fingerprint: str
    will_retry: bool
    count: int
    url: str


class ErrorGroup(TypedDict):
    """Failures that are the same."""

    fingerprint: str
    type: str
    message: str
    first_seen: str | None
    last_seen: str | None
    count: int
    n_clusters: int
    users: list[str]
    state: ErrorState
    state_since: str | None
    state_by: str
    url: str


class ListedError(ErrorGroup):
    """A group with its failures in each of the last hours, oldest first."""

    hours: list[int]


class OneError(ErrorGroup):
    """A group with its latest failures, and by package the versions it was seen with."""

    traceback: str
    versions: dict[str, list[str]]
    latest: list[Failure]


class HostedReport(TypedDict):
    """A report at the server."""

    id: int
    filename: str
    title: str
    private: bool
    url: str
    kind: Literal["recording", "html"]
    account: str
    user: str | None
    created: str | None
    expires: str | None
    size: int
    duration: float
    n_tasks: int
    n_errors: int
    status: str
    cluster_id: str
    tags: list[str]


class Membership(TypedDict):
    """An account somebody belongs to."""

    name: str
    role: Role


class Me(TypedDict):
    """Who asks."""

    user: str
    kind: Literal["token", "session", "local"]
    admin: bool
    account: str | None
    scopes: list[Scope]
    accounts: list[Membership]


class Member(TypedDict):
    """Somebody who belongs to an account."""

    name: str
    email: str
    role: Role
    since: str | None


class Token(TypedDict):
    """A token without its secret, and how many recorders write with one made from it."""

    id: int
    hint: str
    label: str
    scopes: list[Scope]
    user: str
    expired: bool
    recorders: int
    created: str | None
    expires: str | None
    used: str | None
    revoked: str | None


class AccountPreferences(TypedDict):
    """What an account decides for itself; 0 days or bytes: as the server says."""

    visibility: Literal["public", "private"]
    keep_rows_days: int
    keep_sums_days: int
    keep_rows_nbytes: int
    core_hour: float
    gib_hour: float
    price_overrides: dict[str, dict[str, float]]


class Running(TypedDict):
    """A cluster that computes, and how far it is."""

    cluster: Cluster
    done: int
    total: int


class Day(TypedDict):
    """What an account used on one day (UTC)."""

    day: str
    tasks: int
    errors: int
    compute_seconds: float
    thread_seconds: float
    cost: float
    cost_idle: float


class WeekCell(TypedDict):
    """Compute time of a member in a week, which begins on a Monday."""

    user: str
    week: str
    compute_seconds: float


class Overview(TypedDict):
    """What a team wants to know first."""

    states: dict[str, int]
    running: list[Running]
    failed: list[Computation]
    n_failed: int
    n_finished: int
    idle: list[Cluster]
    idle_per_hour: float
    days: list[Day]
    weeks: list[WeekCell]
    reports: list[HostedReport]


class UsageLine(TypedDict):
    """What one day, user, cluster or prefix used; a prefix has a share of what busy threads cost, and no threads of its own."""

    name: str
    #: What a cluster is called; of others the name again.
    label: str
    tasks: int
    errors: int
    compute_seconds: float
    transfer_seconds: float
    nbytes: int
    thread_seconds: float
    cost: float
    cost_busy: float
    cost_idle: float


class Usage(TypedDict):
    """What an account used in some days."""

    by: Literal["day", "user", "cluster", "prefix"]
    items: list[UsageLine]
    total: UsageLine
    clusters: int
    estimate: bool
