"""Responses of the API: the contract between the server, its pages and other clients.

``scripts/gen-types`` writes ``web/src/api/server.gen.ts`` from these definitions. Times are ISO 8601 in UTC, None if
unknown; durations are seconds, sizes bytes, money US dollars and always an estimate.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from daskscope.model.states import AuditAction, ErrorState, Role, RunState, Scope
from daskscope.server.live_contract import UsualDuration


class Money(TypedDict):
    """A cost and its formula."""

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
    state: RunState
    #: Whether it is alive, for programs that know this field.
    status: Literal["running", "stopped"]
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
    #: Current values; the peak once the cluster has ended.
    memory_limit: int
    peak_workers: int
    peak_threads: int
    peak_memory_limit: int
    #: Seconds the server's clock is ahead of the scheduler's, at most; 0 if unknown.
    clock_offset: float
    #: At the last update: tasks assigned to workers, queued, and without a worker that can run them.
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
    #: Rows in files that the server has lost.
    missing_rows: int
    cost: Money
    url: str


class ListedCluster(Cluster):
    """A cluster, and what went wrong in it."""

    #: Workers that left unexpectedly.
    lost_workers: int
    #: The error that failed it, or how it lost workers; empty if nothing went wrong.
    problem: str


class ClusterList(TypedDict):
    """A page of an account's clusters, and the number of clusters in each state."""

    items: list[ListedCluster]
    next: str | None
    states: dict[str, int]


class Prefix(TypedDict):
    """Executions of one prefix, summed; durations in seconds."""

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
    #: Position in the order in which the prefixes of the cluster first ran; colours follow it.
    order: int


class Worker(TypedDict):
    """A worker."""

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


class RecentRun(TypedDict):
    """A run as a dot in the row of its name."""

    id: str
    start: str | None
    duration: float
    state: RunState
    lost_workers: int


class OneCluster(Cluster):
    """A cluster with its workers, clients and prefixes."""

    config: dict[str, object]
    idle_timeout: float
    worker_list: list[Worker]
    clients: list[ConnectedClient]
    prefixes: list[Prefix]
    #: The last runs of its name, oldest first; empty without a name.
    recent: list[RecentRun]


class History(TypedDict):
    """A cluster over time, in equal steps; workers, threads and busy threads are averages per step."""

    start: str | None
    step: float
    #: Start of each step in seconds since the start, and the end of the last.
    edges: list[float]
    workers: list[float]
    threads: list[float]
    busy: list[float]
    tasks: list[int]
    errors: list[int]
    #: The maximum number of workers that adaptive scaling requested per step; None before a request and without
    #: scaling.
    wanted: list[int | None]


class Explanation(TypedDict):
    """Why a cluster is still running."""

    cluster_id: str
    state: RunState
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
    """A computation: one ``compute()``, ``persist()`` or ``submit()`` call."""

    id: str
    cluster_id: str
    scheduler_id: str
    cluster_name: str
    user: str
    state: RunState
    code: str
    #: The line of the code that made the call.
    call: str
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
    #: Graphs that Dask merged because they were submitted while others ran; the code belongs to the first graph.
    n_submissions: int
    span: str
    client: str
    url: str


class OneComputation(Computation):
    """A computation with its prefixes and earlier runs of the same code."""

    prefixes: list[Prefix]
    earlier: list[Computation]
    #: None unless it is running and has earlier runs.
    usual: UsualDuration | None


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
    """An error group: errors with the same fingerprint."""

    fingerprint: str
    type: str
    message: str
    first_seen: str | None
    last_seen: str | None
    count: int
    #: Errors that were not retried, and the computations they failed.
    n_fatal: int
    n_computations: int
    n_clusters: int
    users: list[str]
    #: Where it is raised: the innermost frame of the user's code, else of any code; empty if unknown.
    function: str
    file: str
    line: int
    state: ErrorState
    state_since: str | None
    state_by: str
    url: str


class HostedReport(TypedDict):
    """A report on the server."""

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
    state: str
    cluster_id: str
    tags: list[str]


class Membership(TypedDict):
    """An account of the caller."""

    name: str
    role: Role


class Me(TypedDict):
    """The caller."""

    user: str
    kind: Literal["token", "session", "local"]
    admin: bool
    account: str | None
    scopes: list[Scope]
    #: When the token of the request expires; None if never, or without a token.
    expires: str | None
    accounts: list[Membership]
    #: What the operator should change; only for administrators of the server.
    warnings: list[str]


class Member(TypedDict):
    """A member of an account."""

    name: str
    email: str
    role: Role
    since: str | None


class Token(TypedDict):
    """A token without its secret, and the numbers of recorder tokens and other tokens created with it."""

    id: int
    hint: str
    label: str
    scopes: list[Scope]
    user: str
    expired: bool
    #: Within two weeks.
    expires_soon: bool
    recorders: int
    children: int
    created: str | None
    expires: str | None
    used: str | None
    revoked: str | None


class Opened(TypedDict):
    """A new browser session. Its cookie works only together with the page secret."""

    user: str
    page_secret: str


class ServerUser(TypedDict):
    """A user of the server, as its administrators see it."""

    name: str
    email: str
    admin: bool
    created: str | None
    #: None if enabled.
    disabled: str | None


class SignInLink(TypedDict):
    """A link that works once."""

    url: str
    expires: str | None


class BrowserSession(TypedDict):
    """A browser session of the caller."""

    id: str
    agent: str
    address: str
    created: str | None
    expires: str | None
    current: bool


class AuditEvent(TypedDict):
    """Who did what, when and from where."""

    id: int
    time: str | None
    #: Whether it concerns the server instead of the account.
    server: bool
    user: str
    action: AuditAction
    subject: str
    address: str
    details: dict[str, object]


class DeviceSignIn(TypedDict):
    """The sign-in of a command line. The server knows the address; the requester states the rest."""

    user_code: str
    state: str
    address: str
    host: str
    label: str
    scopes: list[str]


class AccountPreferences(TypedDict):
    """Preferences of an account; 0 days or bytes means the server's default."""

    visibility: Literal["public", "private"]
    keep_rows_days: int
    keep_sums_days: int
    keep_rows_nbytes: int
    core_hour: float
    gib_hour: float
    price_overrides: dict[str, dict[str, float]]


class UsageLine(TypedDict):
    """Usage of one day, user, cluster or prefix. A prefix has a share of the cost of busy threads, but no threads."""

    name: str
    #: Display name of a cluster; otherwise the name again.
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
    """Usage of an account over some days."""

    by: Literal["day", "user", "cluster", "prefix"]
    items: list[UsageLine]
    total: UsageLine
    clusters: int
    estimate: bool
