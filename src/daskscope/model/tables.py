"""Every table and column of a recording, defined once.

The recorder, the wire format, the reader, the docs page and the tests all read this module; nothing repeats it.
A column is never renamed or re-typed. A reader fills a column that an older file lacks with the kind's empty value.

Two sorts of table exist. A *fact* table is appended to (``tasks``: one row per execution). An *entity* table names its ``key``:
the recorder repeats an entity's row whenever it changed, and the reader keeps the last row per key (``workers``: one row per
worker). Times are integer microseconds since the epoch on the scheduler's clock; 0 means "not known" or "not yet".
"""

from __future__ import annotations

from .columns import Column, TableDef, define_table

#: Bumped whenever a table or column is added. Readers accept every version up to this one.
SCHEMA_VERSION = 2

C = Column

#: File of the frame between a task's wait for another thread and the frames of that thread; its function is one of the following:
#: the thread computes, it waits or is blocked, or it is an event loop without a connection to wait for.
OTHER_THREAD = "<other thread>"
COMPUTING, WAITING, RESTING = "computing", "waiting", "resting event loop"

CLUSTERS = define_table(
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
    C("tasks_executing", "int", "tasks that workers were executing at their last heartbeats"),
    C("workers_paused", "int", "workers that are paused because of their memory"),
    C(
        "stalled_since_us",
        "time",
        "since when tasks wait and no worker executes, finishes or fetches anything; 0 if not long enough to tell",
    ),
    C("longest_running", "str", "JSON array: the longest-running tasks: key, prefix, computation, worker, start"),
    time="seen_us",
    key=("cluster",),
)

CLIENTS = define_table(
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

WORKERS = define_table(
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

COMPUTATIONS = define_table(
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
    C("abandoned", "int", "tasks that never ran because no client wanted them any longer"),
    C(
        "graph_us",
        "int",
        "time from the arrival of its graphs at the scheduler until their tasks existed; 0 before distributed 2024.12",
    ),
    C("graph_nbytes", "int", "bytes of its graphs as they arrived at the scheduler"),
    C("prefix_states", "str", "JSON object while it runs: tasks by state of each task prefix"),
    time="seen_us",
    key=("computation",),
)

GROUPS = define_table(
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

SPANS = define_table(
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

TASKS = define_table(
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
    C("interval_action", "str[]", "activities besides compute: transfer, disk-read, disk-write, deserialize"),
    C("interval_start_us", "time[]", "start of each interval"),
    C("interval_stop_us", "time[]", "end of each interval"),
    C("interval_source", "str[]", "worker that sent a transfer; empty for other activities"),
    C("labels", "str", "JSON object set by an integration"),
    time="stop_us",
    raw=True,
)

EDGES = define_table(
    "edges",
    "a dependency between two executions",
    C("task", "int", "id of the execution that needed the result"),
    C("dependency", "int", "id of the execution that produced it; -1 if it ran before recording began"),
    C("seen_us", "time", "when the batch with the dependent execution was closed"),
    time="seen_us",
    raw=True,
)

ACTIVITIES = define_table(
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

SAMPLES = define_table(
    "samples",
    "a sample of the scheduler, or of a worker that sent a heartbeat since its previous sample",
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
    C("status", "str", "status of the worker: running, paused, closing_gracefully …"),
    C("heartbeat_age_us", "int", "age of the worker's values: time since its last heartbeat"),
    C("unrunnable", "int", "tasks that no connected worker can run; scheduler only"),
    time="time_us",
    raw=True,
)

PROCESSES = define_table(
    "processes",
    "a reading of a worker's process by its agent",
    C("time_us", "time", "when"),
    C("worker", "str", "address of the worker"),
    C("wall_us", "int", "time since the previous reading"),
    C("cpu_us", "int", "CPU time of the process, with all its threads, since the previous reading"),
    C("host_cpu_us", "int", "CPU time of all processes of the host since the previous reading"),
    C("host_cores", "int", "cores of the host"),
    C("cores", "int", "cores that the process may use"),
    C("peak_memory", "int", "peak resident memory of the process since its start; 0 if not known"),
    C("own_cpu_us", "int", "part of cpu_us in event loops and helper threads of Dask and daskscope; 0 if not known"),
    time="time_us",
    raw=True,
)

PROFILES = define_table(
    "profiles",
    "the count of one stack in a time slice",
    C("start_us", "time", "start of the slice"),
    C("stop_us", "time", "end of the slice"),
    C("worker", "str", "worker; 'scheduler' for the scheduler"),
    C("kind", "str", "compute, worker event loop, scheduler"),
    C("source", "str", "daskscope (own sampler) or dask (Dask's profiler)"),
    C("prefix", "str", "prefix of the task on the thread"),
    C("span", "str", "span of the task on the thread"),
    C(
        "stack",
        "str[]",
        "frames, outermost first, each 'file<TAB>function<TAB>line'; if a task waits for a thread of a pool or an event loop, the "
        "frames of that thread follow a frame of '<other thread>'",
    ),
    C("count", "int", "samples with exactly this stack"),
    C("ticks", "int", "samples taken in this slice"),
    C("ticks_expected", "int", "samples that should have been taken"),
    C("wall_us", "int", "time between these samples and the previous ones of the same execution"),
    C("cpu_us", "int", "CPU time of the thread in wall_us"),
    C("runqueue_us", "int", "time in wall_us in which the thread was ready to run but had no core"),
    C("switches", "int", "how often the thread was put on a core in wall_us"),
    C("looping", "int", "samples at a backward jump of the innermost frame: in a loop of Python code"),
    time="start_us",
    raw=True,
)

STACKS = define_table(
    "stacks",
    "the stack of a thread that was executing a task when a user asked for it",
    C("time_us", "time", "when the stack was taken"),
    C("request", "int", "the request: when the user asked, in microseconds on the server's clock"),
    C("worker", "str", "address of the worker; 'scheduler' in the last row of a request"),
    C("key", "str", "task; the name of its group if keys are not recorded"),
    C("prefix", "str", "task prefix"),
    C("thread", "int", "thread identifier on the worker"),
    C("start_us", "time", "when the task started; 0 if not known"),
    C("stack", "str[]", "frames, outermost first, each 'file<TAB>function<TAB>line'"),
    C("note", "str", "JSON object in the last row of a request: how many workers were asked and answered"),
    time="time_us",
)

TRANSFERS = define_table(
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
    C("first_keys", "str[]", "keys of the results: the first 20, or 2,000 characters of them"),
    time="stop_us",
    raw=True,
)

ACTOR_CALLS = define_table(
    "actor_calls",
    "one call of an actor's method, on the worker's thread for actors",
    C("start_us", "time", "start"),
    C("stop_us", "time", "end"),
    C("worker", "str", "address of the worker"),
    C("key", "str", "key of the actor; empty if keys are not recorded"),
    C("prefix", "str", "task prefix of the actor, usually the name of its class"),
    C("method", "str", "name of the method"),
    C("thread", "int", "thread identifier on the worker"),
    C("cpu_us", "int", "CPU time of the thread during the call"),
    C("status", "str", "ok or error"),
    time="stop_us",
    raw=True,
)

CHUNKS = define_table(
    "chunks",
    "a range of events that a task read with coffea or uproot",
    C("time_us", "time", "end"),
    C("key", "str", "task"),
    C("worker", "str", "address of the worker"),
    C(
        "kind",
        "str",
        "process (a chunk of a coffea processor), read (a partition of dask-awkward) or open (any other file)",
    ),
    C("dataset", "str", "dataset of the chunk; empty if unknown"),
    C("file", "str", "path or URL of the file; empty unless files are recorded"),
    C("file_id", "str", "hash of the file's path, the same for every chunk of the file"),
    C("entry_start", "int", "first event; -1 if unknown, as in all columns below"),
    C("entry_stop", "int", "end of the range: the first event after it"),
    C("bytes_read", "int", "compressed bytes requested from the file, with its metadata"),
    C("requests", "int", "requests for these bytes"),
    C("columns", "str[]", "branches that were read"),
    C("open_us", "int", "wall time until the events were available; of a partition, until it was read"),
    C("open_cpu_us", "int", "CPU time of the thread in open_us"),
    C("process_us", "int", "wall time of the processor's process()"),
    C("process_cpu_us", "int", "CPU time of the thread in process_us"),
    C("stalled_us", "int", "time in which the thread was ready to run but had no core"),
    C("failed", "int", "1 if the chunk raised an exception"),
    time="time_us",
    raw=True,
)

EXCEPTIONS = define_table(
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
    C("traceback", "str", "traceback, head and tail if it is long; empty for repeats of a fingerprint"),
    C("cause_type", "str", "type of the innermost cause; same as type if there is none"),
    C("cause_message", "str", "message of the innermost cause"),
    C("fingerprint", "str", "hash of the innermost cause: type, normalised message, frames without line numbers"),
    C("will_retry", "int", "1 if Dask retries the task"),
    C("blamed_key", "str", "task that failed, if this one only depended on it"),
    C("count", "int", "number of failures in this row; above 1 only if rows were merged"),
    time="time_us",
)

EVENTS = define_table(
    "events",
    "something that happened",
    C("time_us", "time", "when"),
    C("topic", "str", "topic of the event"),
    C("kind", "str", "what happened"),
    C("worker", "str", "worker concerned; empty if none"),
    C("detail", "str", "JSON object with the details, limited in size"),
    time="time_us",
)

LOGS = define_table(
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

METRICS = define_table(
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

WINDOWS = define_table(
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
        STACKS,
        TRANSFERS,
        ACTOR_CALLS,
        CHUNKS,
        EXCEPTIONS,
        EVENTS,
        LOGS,
        METRICS,
        WINDOWS,
    )
}
