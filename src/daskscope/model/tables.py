"""Every table and column of a recording, defined once.

The recorder, the wire format, the reader, the docs page and the tests all read this module; nothing repeats it.
A column is never renamed or re-typed. A later column says in ``since`` which schema version added it, and a reader fills
it with the kind's empty value when an older file lacks it.

Two sorts of table exist. A *fact* table is appended to (``tasks``: one row per execution). An *entity* table names its ``key``:
the recorder repeats an entity's row whenever it changed, and the reader keeps the last row per key (``workers``: one row per
worker). Times are integer microseconds since the epoch on the scheduler's clock; 0 means "not known" or "not yet".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: Bumped whenever a table or column is added. Readers accept every version up to this one.
SCHEMA_VERSION = 2

Kind = Literal["time", "int", "float", "str", "time[]", "int[]", "str[]"]


@dataclass(frozen=True)
class Column:
    """One column: its name carries the unit where it has one (``start_us``, ``nbytes``)."""

    name: str
    kind: Kind
    meaning: str
    since: int = 1


@dataclass(frozen=True)
class TableDef:
    """One table. ``time`` is the column that gives a batch its time range; ``raw`` rows may be dropped as a last resort."""

    name: str
    row: str
    columns: tuple[Column, ...]
    time: str
    key: tuple[str, ...] = ()
    raw: bool = False

    def column(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def _table(name: str, row: str, *columns: Column, time: str, key: tuple[str, ...] = (), raw: bool = False) -> TableDef:
    return TableDef(name, row, columns, time, key, raw)


C = Column

CLUSTERS = _table(
    "clusters",
    "a cluster",
    C("cluster", "str", "id of the scheduler"),
    C("name", "str", "name given by the user or the cluster manager"),
    C("user", "str", "who registered the cluster"),
    C("host", "str", "host the registering client runs on"),
    C("account", "str", "team the cluster belongs to"),
    C("address", "str", "address of the scheduler"),
    C("seen_us", "time", "when this row was written"),
    C("start_us", "time", "when the scheduler started"),
    C("recording_us", "time", "when recording began; earlier events are unknown"),
    C("end_us", "time", "when the scheduler closed or recording ended, 0 while it runs"),
    C("end_reason", "str", "closed, recording ended; empty while it runs"),
    C("clock_offset_us", "int", "server clock minus scheduler clock at the handshake"),
    C("versions", "str", "JSON object: package versions seen on the scheduler"),
    C("platform", "str", "JSON object: operating system, machine, Python implementation"),
    C("config", "str", "JSON object: allow-listed Dask configuration, without secrets"),
    C("prices", "str", "JSON object: prices per core-hour and GiB-hour given by the user"),
    C("idle_since_us", "time", "when the cluster became idle according to Dask, 0 while busy"),
    C("idle_timeout_s", "float", "the scheduler's idle timeout, 0 if not set"),
    C("tasks_queued", "int", "tasks waiting for a free thread"),
    C("tasks_processing", "int", "tasks assigned to workers"),
    C("tasks_unrunnable", "int", "tasks that no connected worker can run"),
    C("unrunnable_needs", "str", "JSON object: resources the unrunnable tasks ask for, with the number of tasks"),
    C("workers", "int", "workers connected"),
    C("threads", "int", "threads of all connected workers"),
    C("dropped", "str", "JSON object: rows dropped so far by table; empty if none"),
    C("tasks_executing", "int", "tasks that workers were executing at their last heartbeats", since=2),
    C("workers_paused", "int", "workers that are paused because of their memory", since=2),
    C(
        "stalled_since_us",
        "time",
        "since when tasks wait and no worker executes or fetches anything; 0 if not",
        since=2,
    ),
    time="seen_us",
    key=("cluster",),
)

CLIENTS = _table(
    "clients",
    "a connected client",
    C("client", "str", "id of the client"),
    C("seen_us", "time", "when this row was written"),
    C("connect_us", "time", "when the client connected, or when recording began if it was already connected"),
    C("last_seen_us", "time", "last heartbeat of the client"),
    C("disconnect_us", "time", "when the client left, 0 while connected"),
    C("held_keys", "int", "keys whose results the client asks the cluster to keep"),
    C("held_nbytes", "int", "bytes of those results in cluster memory; -1 (not computed) above 200,000 keys"),
    C("versions", "str", "JSON object: package versions of the client"),
    time="seen_us",
    key=("client",),
)

WORKERS = _table(
    "workers",
    "a worker",
    C("worker", "str", "address of the worker"),
    C("server_id", "str", "id of this worker process; an address can be reused"),
    C("seen_us", "time", "when this row was written"),
    C("name", "str", "name of the worker"),
    C("host", "str", "host part of the address"),
    C("pid", "int", "process id"),
    C("nthreads", "int", "threads"),
    C("memory_limit", "int", "memory limit in bytes, 0 if unlimited"),
    C("nanny", "str", "address of its nanny; empty if it has none"),
    C("start_us", "time", "when it joined, or when recording began if it was already connected"),
    C("end_us", "time", "when it left, 0 while connected"),
    C(
        "verdict",
        "str",
        "why it left: retired, memory kill, vanished, lost connection, closed, restarted; empty while connected",
    ),
    C("evidence", "str", "evidence for the verdict, as text"),
    C("processing", "str[]", "keys it was processing when it left (at most 100)"),
    C("processing_count", "int", "number of keys it was processing when it left"),
    C("lost_count", "int", "results that were lost with it"),
    C("agent", "str", "state of the agent: running, off, or why it was refused"),
    C("versions", "str", "JSON object: package versions of the worker"),
    time="seen_us",
    key=("server_id",),
)

COMPUTATIONS = _table(
    "computations",
    "one compute(), persist() or submit() call",
    C("computation", "str", "id"),
    C("seen_us", "time", "when this row was written"),
    C("start_us", "time", "when its graph arrived"),
    C("stop_us", "time", "when its last task finished, 0 while running"),
    C("state", "str", "running, done, erred, cancelled, lost"),
    C("client", "str", "client that submitted it"),
    C("span", "str", "id of the span of its first task group"),
    C("code", "str", "source code around the call; empty unless the client sends it"),
    C("code_line", "int", "line of the call in the code, from 0"),
    C("code_file", "str", "file the code comes from"),
    C("submissions", "int", "graphs merged into this computation"),
    C("groups", "int", "task groups"),
    C("tasks", "int", "tasks"),
    C("memory", "int", "tasks whose result is in memory"),
    C("erred", "int", "tasks that failed"),
    C("released", "int", "tasks done and released, or never needed"),
    C("forgotten", "int", "tasks done and forgotten"),
    C("unfinished", "int", "tasks waiting, queued, processing or without worker"),
    C("abandoned", "int", "tasks that never ran because no client wanted them any longer", since=2),
    C(
        "graph_us",
        "int",
        "time from the arrival of its graphs at the scheduler until their tasks existed; 0 before distributed 2024.12",
        since=2,
    ),
    time="seen_us",
    key=("computation",),
)

GROUPS = _table(
    "groups",
    "a task group of a computation, with Dask's own counters",
    C("group", "str", "name of the task group"),
    C("start_us", "time", "start of its first task, 0 if no task has finished"),
    C("computation", "str", "computation it belongs to"),
    C("seen_us", "time", "when this row was written"),
    C("prefix", "str", "task prefix"),
    C("span", "str", "span of its tasks"),
    C("stop_us", "time", "end of its last finished task"),
    C("states", "str", "JSON object: tasks by state"),
    C("durations_us", "str", "JSON object: microseconds by action, as counted by Dask"),
    C("nbytes", "int", "bytes its tasks produced, as counted by Dask"),
    C("types", "str[]", "result types"),
    C("dependencies", "str[]", "names of the groups it depends on"),
    time="seen_us",
    key=("computation", "group"),
)

SPANS = _table(
    "spans",
    "a distributed.span",
    C("span", "str", "id"),
    C("seen_us", "time", "when this row was written"),
    C("tags", "str[]", "tags of the span and its parents, outermost first"),
    C("parent", "str", "id of the enclosing span, empty at the top"),
    C("enqueued_us", "time", "when its first task arrived"),
    C("start_us", "time", "when its first finished task started"),
    C("stop_us", "time", "when its last task finished, 0 while running"),
    C("active_cpu_us", "int", "threads of the cluster × wall time of the span, as defined by Dask"),
    time="seen_us",
    key=("span",),
)

TASKS = _table(
    "tasks",
    "one execution of one task",
    C("id", "int", "number of the execution in this recording"),
    C("key", "str", "key of the task; a tuple key as its Python repr"),
    C("group", "str", "task group"),
    C("prefix", "str", "task prefix"),
    C("span", "str", "span of the task's group"),
    C("computation", "str", "computation that was running"),
    C("worker", "str", "address of the worker"),
    C("thread", "int", "thread identifier on the worker, 0 if unknown"),
    C("queued_us", "time", "when the task became runnable"),
    C("assigned_us", "time", "when it was assigned to a worker"),
    C("start_us", "time", "start of the compute time"),
    C("stop_us", "time", "end of the compute time"),
    C("nbytes", "int", "size of the result"),
    C("type", "str", "type of the result"),
    C(
        "status",
        "str",
        "ok, error, retried, killed (with its worker) or cancelled; the last two stop when the scheduler noticed",
    ),
    C(
        "interval_action",
        "str[]",
        "activities besides compute: transfer, disk-read, disk-write, deserialize",
    ),
    C("interval_start_us", "time[]", "start of each interval"),
    C("interval_stop_us", "time[]", "end of each interval"),
    C("interval_source", "str[]", "worker that sent a transfer; empty for other activities"),
    C("labels", "str", "JSON object set by an integration"),
    time="stop_us",
    raw=True,
)

EDGES = _table(
    "edges",
    "a dependency between two executions",
    C("task", "int", "id of the execution that needed the result"),
    C("dependency", "int", "id of the execution that produced it; -1 if it ran before recording began"),
    C("seen_us", "time", "when the batch with the dependent execution was closed"),
    time="seen_us",
    raw=True,
)

ACTIVITIES = _table(
    "activities",
    "a fine-performance-metric delta",
    C("time_us", "time", "end of the time bucket"),
    C("context", "str", "execute, gather-dep, get-data, memory-monitor, p2p, or any other context"),
    C("span", "str", "span; empty if Dask attributes the activity to none"),
    C("prefix", "str", "task prefix, or the second label of other contexts"),
    C("activity", "str", "label of the activity (any text)"),
    C("unit", "str", "seconds, bytes, count, or any other unit"),
    C("value", "float", "increase since the previous bucket"),
    time="time_us",
)

SAMPLES = _table(
    "samples",
    "a sample of a worker or the scheduler",
    C("time_us", "time", "when"),
    C("worker", "str", "address of the worker; 'scheduler' for the scheduler process"),
    C("cpu_percent", "float", "CPU of the process, 100 = one core"),
    C("memory", "int", "resident memory of the process"),
    C("managed", "int", "bytes of task results in memory"),
    C("unmanaged_old", "int", "memory that is not results, for at least 30 s"),
    C("unmanaged_recent", "int", "memory that is not results, for less than 30 s"),
    C("spilled", "int", "bytes of task results spilled to disk"),
    C("net_read_bps", "float", "bytes per second received by the host"),
    C("net_write_bps", "float", "bytes per second sent by the host"),
    C("disk_read_bps", "float", "bytes per second read from disks of the host"),
    C("disk_write_bps", "float", "bytes per second written to disks of the host"),
    C("executing", "int", "tasks being computed"),
    C("ready", "int", "tasks waiting on the worker for a thread"),
    C("processing", "int", "tasks assigned by the scheduler"),
    C("stored", "int", "results held"),
    C("loop_lag_us", "int", "interval of the event loop's tick; of the scheduler, how late its event loop runs"),
    C("gil_contention", "float", "share of time in which threads waited for the GIL; -1 if not measured"),
    C("fds", "int", "open file descriptors"),
    C("occupancy_us", "int", "estimated duration of the assigned tasks"),
    C("children", "int", "number of child processes; -1 if not recorded"),
    C("children_cpu_percent", "float", "CPU of all child processes"),
    C("children_memory", "int", "resident memory of all child processes"),
    C("status", "str", "status of the worker: running, paused, closing_gracefully …", since=2),
    C("heartbeat_age_us", "int", "age of the worker's values: time since its last heartbeat", since=2),
    C("unrunnable", "int", "tasks that no connected worker can run; scheduler only", since=2),
    time="time_us",
    raw=True,
)

PROCESSES = _table(
    "processes",
    "a reading of a worker's process by its agent",
    C("time_us", "time", "when", since=2),
    C("worker", "str", "address of the worker", since=2),
    C("wall_us", "int", "time since the previous reading", since=2),
    C("cpu_us", "int", "CPU time of the process, with all its threads, since the previous reading", since=2),
    C("host_cpu_us", "int", "CPU time of all processes of the host since the previous reading", since=2),
    C("host_cores", "int", "cores of the host", since=2),
    C("cores", "int", "cores that the process may use", since=2),
    C("peak_memory", "int", "peak resident memory of the process since its start; 0 if not known", since=2),
    time="time_us",
    raw=True,
)

PROFILES = _table(
    "profiles",
    "the count of one stack in a time slice",
    C("start_us", "time", "start of the slice"),
    C("stop_us", "time", "end of the slice"),
    C("worker", "str", "worker; 'scheduler' for the scheduler"),
    C("kind", "str", "compute, worker event loop, scheduler"),
    C("source", "str", "daskscope (own sampler) or dask (Dask's profiler)"),
    C("prefix", "str", "prefix of the task on the thread"),
    C("span", "str", "span of the task on the thread"),
    C("stack", "str[]", "frames, outermost first, each 'file<TAB>function<TAB>line'"),
    C("count", "int", "samples with exactly this stack"),
    C("ticks", "int", "samples taken in this slice"),
    C("ticks_expected", "int", "samples that should have been taken"),
    C("wall_us", "int", "time between these samples and the previous ones of the same execution", since=2),
    C("cpu_us", "int", "CPU time of the thread in wall_us", since=2),
    C("runqueue_us", "int", "time in wall_us in which the thread was ready to run but had no core", since=2),
    C("switches", "int", "how often the thread was put on a core in wall_us", since=2),
    time="start_us",
    raw=True,
)

TRANSFERS = _table(
    "transfers",
    "a transfer between two workers",
    C("start_us", "time", "start"),
    C("stop_us", "time", "end"),
    C("source", "str", "worker that sent"),
    C("destination", "str", "worker that received"),
    C("direction", "str", "side that reported it: incoming or outgoing"),
    C("nbytes", "int", "bytes of the results"),
    C("compressed_nbytes", "int", "bytes on the network, 0 if unknown"),
    C("keys", "int", "number of results"),
    C("first_keys", "str[]", "keys of the first three results, if the receiver reported it", since=2),
    time="stop_us",
    raw=True,
)

ACTOR_CALLS = _table(
    "actor_calls",
    "one call of an actor's method, on the worker's thread for actors",
    C("start_us", "time", "start", since=2),
    C("stop_us", "time", "end", since=2),
    C("worker", "str", "address of the worker", since=2),
    C("key", "str", "key of the actor; empty if keys are not recorded", since=2),
    C("prefix", "str", "task prefix of the actor, usually the name of its class", since=2),
    C("method", "str", "name of the method", since=2),
    C("thread", "int", "thread identifier on the worker", since=2),
    C("cpu_us", "int", "CPU time of the thread during the call", since=2),
    C("status", "str", "ok or error", since=2),
    time="stop_us",
    raw=True,
)

EXCEPTIONS = _table(
    "exceptions",
    "a failed execution",
    C("time_us", "time", "when the scheduler received the error"),
    C("key", "str", "task"),
    C("group", "str", "task group"),
    C("prefix", "str", "task prefix"),
    C("span", "str", "span"),
    C("computation", "str", "computation that was running"),
    C("worker", "str", "worker it failed on"),
    C("type", "str", "exception type as raised"),
    C("message", "str", "message of the exception"),
    C(
        "traceback",
        "str",
        "traceback, head and tail if it is long; empty for repeats of a fingerprint",
    ),
    C("cause_type", "str", "type of the innermost cause; same as type if there is none"),
    C("cause_message", "str", "message of the innermost cause"),
    C("fingerprint", "str", "hash of the innermost cause: type, normalised message, frames without line numbers"),
    C("will_retry", "int", "1 if Dask retries the task"),
    C("blamed_key", "str", "task that failed, if this one only depended on it"),
    C("count", "int", "number of failures in this row; above 1 only if rows were merged"),
    time="time_us",
)

EVENTS = _table(
    "events",
    "something that happened",
    C("time_us", "time", "when"),
    C("topic", "str", "topic of the event"),
    C("kind", "str", "what happened"),
    C("worker", "str", "worker concerned; empty if none"),
    C("detail", "str", "JSON object with the details, limited in size"),
    time="time_us",
)

LOGS = _table(
    "logs",
    "a log line of level WARNING or above",
    C("time_us", "time", "when"),
    C("worker", "str", "worker; 'scheduler' for the scheduler"),
    C("level", "int", "logging level: 30 warning, 40 error, 50 critical"),
    C("logger", "str", "name of the logger"),
    C("message", "str", "text, at most 4,000 characters"),
    C("repeats", "int", "number of identical lines in this row"),
    time="time_us",
    raw=True,
)

METRICS = _table(
    "metrics",
    "a number logged by the user",
    C("time_us", "time", "when"),
    C("name", "str", "name"),
    C("value", "float", "value"),
    C("unit", "str", "unit"),
    C("labels", "str", "JSON object of labels"),
    C("computation", "str", "computation that was running"),
    C("span", "str", "span given by the user"),
    C("window", "str", "window given by the user"),
    time="time_us",
)

WINDOWS = _table(
    "windows",
    "a named stretch of time",
    C("window", "str", "id"),
    C("kind", "str", "record, report, memory, benchmark"),
    C("name", "str", "name given by the user"),
    C("seen_us", "time", "when this row was written"),
    C("start_us", "time", "start on the scheduler's clock"),
    C("stop_us", "time", "end on the scheduler's clock, 0 while open"),
    C("status", "str", "open, ok, error"),
    C("error", "str", "exception that ended it"),
    C("labels", "str", "JSON object"),
    time="seen_us",
    key=("window",),
)

TABLES: dict[str, TableDef] = {
    table.name: table
    for table in (
        CLUSTERS,
        CLIENTS,
        WORKERS,
        COMPUTATIONS,
        GROUPS,
        SPANS,
        TASKS,
        EDGES,
        ACTIVITIES,
        SAMPLES,
        PROCESSES,
        PROFILES,
        TRANSFERS,
        ACTOR_CALLS,
        EXCEPTIONS,
        EVENTS,
        LOGS,
        METRICS,
        WINDOWS,
    )
}
