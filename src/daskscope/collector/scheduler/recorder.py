"""Turn the scheduler's hook calls into rows, without any I/O.

The recorder reads the scheduler's state, but has no thread, socket, file or timer; the plugin around it has those. Everything
here runs on the scheduler's event loop and is bounded: anything that grows with the cluster is processed in small steps.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from ..aliases import Aliases
from ..compat import current_computation, results_so_far, spans
from ..privacy import Scrubber
from ..rows import Rows
from ..settings import Settings
from .activities import Activities
from .computations import Computations
from .earlier import Earlier
from .events import METRIC_TOPIC, WINDOW_TOPIC, Windows, event_row, metric_row, status_row
from .executions import Executed, Execution, build_executions
from .failures import Failure, Failures, Interrupted, exception_text
from .members import Members, Work, known_since_us
from .open_computation import Arrival
from .samples import Heartbeats, scheduler_sample, unrunnable_needs, worker_sample, worker_status
from .workload import Stall, longest_running

#: Workers sampled per tick; with more workers, each tick samples the next 500.
SAMPLES_PER_TICK = 500
#: The cluster's row is written at least this often, changed or not.
REPEAT_US = 10_000_000
#: Configuration recorded with the cluster; an allow-list, so that it never contains a token.
CONFIG_KEYS = (
    "distributed.scheduler.allowed-failures",
    "distributed.scheduler.worker-saturation",
    "distributed.scheduler.work-stealing",
    "distributed.scheduler.worker-ttl",
    "distributed.scheduler.idle-timeout",
    "distributed.scheduler.no-workers-timeout",
    "distributed.worker.memory.target",
    "distributed.worker.memory.spill",
    "distributed.worker.memory.pause",
    "distributed.worker.memory.terminate",
    "distributed.worker.profile.interval",
    "distributed.worker.profile.cycle",
    "distributed.comm.compression",
    "array.chunk-size",
    "dataframe.shuffle.method",
)
#: How long a round may hold the event loop before it pauses until the next tick.
ROUND_BUDGET_NS = 3_000_000
#: Stimuli that release a processing task because no client wants it: its future was dropped or cancelled, its client left, or a
#: client restarted the cluster. When workers die, retire or are restarted alone ("client-restart-workers"), their tasks run
#: on other workers.
CANCELLED_BY = ("client-releases-keys-", "cancel-key-", "remove-client-", "client-restart-")
WORKERS_RESTARTED = "client-restart-workers-"
#: The graph whose tasks the scheduler is making. Graphs of several clients may arrive meanwhile, each in its own context.
_arrival: ContextVar[Arrival | None] = ContextVar("arrival", default=None)


class Recorder:
    """Collects the rows of one scheduler."""

    def __init__(
        self,
        scheduler: Any,
        settings: Settings,
        scrubber: Scrubber,
        clock_ns: Callable[[], int],
        on_error: Callable[[str, BaseException], None],
        earlier: Earlier | None = None,
    ) -> None:
        self.scheduler = scheduler
        self.settings = settings
        self.scrubber = scrubber
        self.clock_ns = clock_ns
        self.rows = Rows()
        self.aliases = Aliases(keys=settings.keys, names=settings.names, account=settings.account)
        self.failures = Failures(scrubber, self.rows.add_lazy, texts=settings.exception_text, aliases=self.aliases)
        self.computations = Computations(scheduler, self.rows.add, scrubber, code=settings.code, aliases=self.aliases)
        self.members = Members(scheduler, self.rows.add, hostnames=settings.hostnames, aliases=self.aliases)
        self.windows = Windows(self.rows.add, scrubber, settings)
        totals = scheduler.cumulative_worker_metrics
        self.activities = Activities(totals, spans=spans(scheduler) is not None, aliases=self.aliases)
        self.executions = build_executions(
            scheduler.tasks,
            clock_ns,
            self.other_transition,
            lambda error: on_error("transition", error),
            edges=settings.edges,
            first_id=earlier.next_id if earlier is not None else 0,
        )
        self.children: dict[str, dict[str, Any]] = {}
        #: Rows dropped so far by table; the outbox counts them.
        self.dropped: Mapping[str, int] = {}
        self._next_worker = 0
        self._cluster: dict[str, Any] = {}
        self._last_cluster: tuple[Any, ...] = ()
        self._cluster_us = 0
        self._round: Iterator[None] | None = None
        self._wanted = -1
        self._stall = Stall(scheduler)
        self._heartbeats = Heartbeats()
        self.interrupted = Interrupted(scheduler, self._execution, self.executions)

    # -- lifecycle -------------------------------------------------------------------------------------------------

    def now_us(self) -> int:
        return self.clock_ns() // 1000

    def begin(self, versions: Mapping[str, Any], config: Mapping[str, Any]) -> None:
        """Write the cluster, and the workers and clients that are connected when recording begins."""
        now, scheduler = self.now_us(), self.scheduler
        settings = self.settings
        self._cluster = {
            "cluster": scheduler.id,
            "name": settings.name if settings.names else "",
            "user": settings.user if settings.names else "",
            "host": settings.host if settings.hostnames else "",
            "account": settings.account,
            "address": str(getattr(scheduler, "address", "") or ""),
            "start_us": int(scheduler.time_started * 1e6),
            "recording_us": now,
            "versions": json.dumps(dict(versions), default=str),
            "platform": json.dumps(
                {
                    "system": platform.system(),
                    "release": platform.release(),
                    "machine": platform.machine(),
                    "python": platform.python_implementation() + " " + platform.python_version(),
                }
            ),
            "config": json.dumps(dict(config), default=str),
            "prices": json.dumps(settings.prices),
        }
        self.cluster_state(now)
        for address in list(scheduler.workers):
            self.members.add_worker(address, now, known_since_us(scheduler, address, "add-worker", now))
        for client in list(scheduler.clients):
            self.members.add_client(client, now, known_since_us(scheduler, client, "add-client", now))

    def add_versions(self, versions: Mapping[str, str]) -> None:
        """Add versions of packages to the cluster's row; those that Dask reported stay."""
        known = json.loads(self._cluster["versions"])
        self._cluster["versions"] = json.dumps({**versions, **known})
        self._last_cluster = ()
        self.cluster_state(self.now_us())

    def continue_recording(self, earlier: Earlier | None) -> None:
        """Make this recording the continuation of an earlier one, and record the gap between them."""
        if earlier is None:
            return
        now = self.now_us()
        self._cluster["recording_us"] = earlier.began_us
        detail = json.dumps({"start_us": min(earlier.ended_us, now), "stop_us": now})
        self.rows.add("events", time_us=now, topic="daskscope", kind="recording-gap", detail=detail)
        self._last_cluster = ()
        self.cluster_state(now)

    def ended(self) -> Earlier:
        """Return the state that the next recorder needs, after the end of this recording was written."""
        times = (self._cluster["recording_us"], self._cluster.get("end_us") or self.now_us())
        return Earlier(*times, self.executions.rotate().first_id)

    def repeat_entities(self) -> None:
        """Write the cluster and all current workers, clients, windows and computations again, for a reader that joins now."""
        now = self.now_us()
        self._last_cluster = ()
        # The end may just have been written for a reader that is leaving.
        self._cluster.update(end_us=0, end_reason="")
        self.cluster_state(now)
        for member in self.members.workers.values():
            self.rows.add("workers", seen_us=now, **member.row)
        for row in self.members.clients.values():
            self.rows.add("clients", seen_us=now, **row)
        self.windows.repeat(now)
        self.computations.mark_unwritten()

    def remove_worker(self, address: str, stimulus: str) -> None:
        """Record that a worker left."""
        self.members.remove_worker(address, stimulus, self.now_us(), self._work())
        self.children.pop(address, None)

    def note_closing(self) -> None:
        """Note that the scheduler begins to close."""
        self.members.note_closing(self.now_us(), self._work())

    def _work(self) -> Work:
        last = current_computation(self.scheduler)
        return results_so_far(self.scheduler), None if last is None else str(last.id)

    def end(self, reason: str) -> None:
        """Write pending failures and the end of the cluster. The caller has just written all other changes, in rounds."""
        now = self.now_us()
        self.failures.flush_ready(now, everything=True)
        self._cluster.update(end_us=now, end_reason=reason)
        self.cluster_state(now)

    # -- hooks -----------------------------------------------------------------------------------------------------

    def before_graph(self, message: Mapping[str, Any]) -> None:
        """Note when a graph arrived, and its size. The scheduler makes its tasks in the same context."""
        _arrival.set(Arrival.of(message, self.now_us()))

    def graph(self, client: str, keys: Sequence[Any] = ()) -> None:
        arrival = _arrival.get()
        _arrival.set(None)
        self.executions.set_computation(self.computations.add_graph(client, keys, arrival))

    def other_transition(self, key: Any, start: str, finish: str, stimulus: str, kw: Mapping[str, Any]) -> None:
        """Record a transition other than success: a failure or a cancelled task."""
        if finish == "erred":
            self.erred(key, start, kw)
        elif stimulus.startswith(CANCELLED_BY) and not stimulus.startswith(WORKERS_RESTARTED):
            task = self.scheduler.tasks.get(key)
            if task is None:
                return
            # A task that waits again, because its result was lost, has the number of its last run.
            has_run = getattr(task, "run_id", None) is not None
            if start == "processing":
                self.computations.note_cancelled(task.group, self.now_us())
                has_run = self.interrupted.cancelled(key, task, stimulus)
            if not has_run:
                self.computations.count_abandoned(task.group, self.now_us())

    def erred(self, key: Any, start: str, kw: Mapping[str, Any]) -> None:
        """Record a task that failed for good: it raised, its worker died too often, or a dependency failed."""
        task = self.scheduler.tasks[key]
        blame = task.exception_blame
        if "exception_text" in kw:
            self._execution(key, task, kw, "error")
            self._failure(key, task, kw.get("worker", ""), str(kw["exception_text"]), str(kw.get("traceback_text", "")))
        elif "exception" in kw:
            # The scheduler made this exception itself (KilledWorker, NoValidWorkerError), so unpickling it is safe.
            if start == "processing":
                # Its worker died, as in earlier attempts, but this time the task does not run again: an error, not "killed".
                # Whether the task was executing is decided once the removal of the worker is logged.
                self.interrupted.died.append((kw.get("worker") or "", key, task))
            self._failure(key, task, kw.get("worker") or "", exception_text(kw["exception"]), "")
        elif blame is not None and blame.key != key:
            self._failure(key, task, "", blame.exception_text or "", "", blame=blame)
        # Last, so that the computation does not end before the times of the rows just written.
        self.computations.count_failure(task.group, self.now_us())

    def before_task_erred(self, message: Mapping[str, Any]) -> None:
        """Record a failure that will be retried: the worker's message is the only trace of it."""
        key = message["key"]
        task = self.scheduler.tasks.get(key)
        if task is None or task.state != "processing" or not task.retries:
            return
        if "run_id" in message and getattr(task, "run_id", None) != message["run_id"]:
            return
        self._execution(key, task, message, "retried")
        texts = str(message.get("exception_text", "")), str(message.get("traceback_text", ""))
        self._failure(key, task, message.get("worker", ""), *texts, will_retry=True)
        self.computations.note_failure(task.group, self.now_us())

    def before_seceding(self, message: Mapping[str, Any]) -> None:
        """Record that a task left its worker's threads, from where it continues on a thread of its own."""
        task = self.scheduler.tasks.get(message["key"])
        if task is not None:
            key = self._shown_key(task.key, task.group)
            worker = str(message.get("worker") or "")
            self.rows.add("events", time_us=self.now_us(), topic="worker", kind="seceded", worker=worker, detail=key)

    def event(self, topic: str, message: Any) -> None:
        """Record a logged event. Dask logs the same event once per topic, so worker topics only serve as evidence for verdicts."""
        now, settings = self.now_us(), self.settings
        # Exactly a dict, as Dask sends it: a user's own mapping type may run arbitrary code.
        if type(message) is dict:
            self.members.note_event(topic, message)
            if topic == "all" and message.get("action") == "remove-worker":
                self._add_killed_executions(message)
            if topic == "scheduler" and message.get("action") == "update-graph":
                self.computations.note_graph_time(message.get("metrics"))
            if message.get("action") == "worker-status-change" and topic in self.scheduler.workers:
                self.rows.add("events", time_us=now, **status_row(topic, message))
                return
            if topic == METRIC_TOPIC:
                row = metric_row(message, self.scrubber, aliases=self.aliases, names=settings.names)
                if row is not None:
                    current = self.computations.current
                    self.rows.add("metrics", time_us=now, computation="" if current is None else current.id, **row)
                return
            if topic == WINDOW_TOPIC:
                self.window(message)
                return
        if topic in settings.topics or "*" in settings.topics:
            row = event_row(topic, message, self.scrubber, aliases=self.aliases, exception_text=settings.exception_text)
            if row is not None:
                self.rows.add("events", time_us=now, **row)

    def set_worker_target(self, workers: Any) -> None:
        """Record how many workers adaptive scaling wants, if that changed: it asks every second."""
        if type(workers) is int and workers != self._wanted:
            self._wanted = workers
            detail = json.dumps({"wanted": workers, "workers": len(self.scheduler.workers)})
            self.rows.add("events", time_us=self.now_us(), topic="adaptive", kind="wanted-workers", detail=detail)

    def _add_killed_executions(self, message: Mapping[Any, Any]) -> None:
        """Record the executions that ended with a removed worker; their tasks run again on other workers."""
        for task in self.interrupted.worker_removed(message, self.members.workers):
            self.computations.note_failure(task.group, self.now_us())

    def window(self, message: Mapping[str, Any]) -> None:
        """Record that a named window begins or ends."""
        self.windows.record(self.now_us(), message)

    # -- ticks -----------------------------------------------------------------------------------------------------

    def rotate(self) -> Executed:
        """Return the executions so far and begin a new chunk."""
        chunk = self.executions.rotate()
        self.computations.reopen_executed(chunk)
        return chunk

    def begin_round(self, now_us: int) -> None:
        """Begin to write changed computations, activities, clients and the cluster, unless a round is under way.

        ``advance`` does the work.
        """
        if self._round is None:
            self._round = self._write_changes(now_us)

    def begin_last_round(self, now_us: int) -> None:
        """Begin to write open computations as lost, after a round that wrote everything else."""
        self._round = self.computations.write_lost(now_us)

    def advance(self) -> bool:
        """Work on the round for a few milliseconds; return True while there is more to do."""
        if self._round is None:
            return False
        # Clear it while it runs: a round that raises is abandoned, and the next one starts over.
        current, self._round = self._round, None
        deadline = self.clock_ns() + ROUND_BUDGET_NS
        for _ in current:
            if self.clock_ns() >= deadline:
                self._round = current
                return True
        return False

    def _write_changes(self, now_us: int) -> Iterator[None]:
        yield from self.computations.write_changes(now_us)
        yield from self.activities.write_changes(now_us, self.rows.add)
        yield from self.members.write_changes(now_us)
        # A round may take several ticks, and the state is the one of this moment.
        self.cluster_state(self.now_us())

    def forget_heartbeats(self) -> None:
        """Let the next samples include workers without a new heartbeat."""
        self._heartbeats = Heartbeats()

    def tick_samples(self, now_us: int, lag_us: int) -> None:
        """Sample the scheduler and up to 500 workers; with more workers, each tick samples the next 500."""
        workers = list(self.scheduler.workers.values())
        self.interrupted.flush_died()
        if len(self.children) > len(workers):
            # A worker's last push may arrive after it was removed.
            self.children = {name: values for name, values in self.children.items() if name in self.scheduler.workers}
        if len(workers) > SAMPLES_PER_TICK:
            first = self._next_worker % len(workers)
            self._next_worker = first + SAMPLES_PER_TICK
            workers = (workers + workers)[first : first + SAMPLES_PER_TICK]
        self._heartbeats.keep_only(self.scheduler.workers)
        for worker in workers:
            if worker.metrics and self._heartbeats.is_new(worker):
                self.rows.add("samples", **worker_sample(worker, now_us, self.children.get(worker.address)))
        self.rows.add("samples", **scheduler_sample(self.scheduler, now_us, lag_us))

    def cluster_state(self, now_us: int) -> None:
        """Write the cluster's row if it changed, and at least every ten seconds.

        Its ``seen_us`` is the last time its values, such as the number of workers to pay for, are known to have been true.
        """
        scheduler = self.scheduler
        unrunnable = scheduler.unrunnable
        workers = list(scheduler.workers.values())
        processing = sum(len(worker.processing) for worker in workers)
        executing = sum(len(getattr(worker, "executing", ())) for worker in workers)
        facts = {
            "idle_since_us": int((scheduler.idle_since or 0) * 1e6),
            "idle_timeout_s": float(scheduler.idle_timeout or 0),
            "tasks_queued": len(scheduler.queued),
            "tasks_processing": processing,
            "tasks_unrunnable": len(unrunnable),
            "unrunnable_needs": unrunnable_needs(unrunnable, self.aliases),
            "workers": len(workers),
            "threads": scheduler.total_nthreads,
            "tasks_executing": executing,
            "workers_paused": sum(worker_status(worker) == "paused" for worker in workers),
            "stalled_since_us": self._stall.since_us(now_us, self.executions.total()),
            "longest_running": longest_running(workers, self.computations.find, self.aliases),
            # A frame reports drops of its own table only, and that table may get no more frames. Copied, because other threads
            # count drops too.
            "dropped": json.dumps(dict(self.dropped), sort_keys=True) if self.dropped else "",
            "end_us": self._cluster.get("end_us", 0),
        }
        if tuple(facts.values()) != self._last_cluster or now_us - self._cluster_us >= REPEAT_US:
            self._last_cluster, self._cluster_us = tuple(facts.values()), now_us
            self.rows.add("clusters", **{**self._cluster, "seen_us": now_us, **facts})

    # -- rows ------------------------------------------------------------------------------------------------------

    def _execution(self, key: Any, task: Any, message: Mapping[str, Any], status: str, start_us: int = 0) -> None:
        self.executions.add(
            Execution(
                key=key,
                group=task.group,
                worker=message.get("worker") or "",
                thread=message.get("thread") or 0,
                startstops=message.get("startstops") or (),
                status=status,
                start_us=start_us,
            )
        )

    def _failure(
        self,
        key: Any,
        task: Any,
        worker: str,
        exception_text: str,
        traceback_text: str,
        *,
        will_retry: bool = False,
        blame: Any = None,
    ) -> None:
        group = task.group
        computation = self.computations.find(group)
        # Dask's own exceptions contain the key.
        keys = (key,) if blame is None else (key, blame.key)
        self.failures.add(
            Failure(
                time_us=self.now_us(),
                key=self._shown_key(key, group),
                real_key=_text(key),
                group=self.aliases.group(group.name),
                prefix=self.aliases.group(group.prefix.name),
                span=getattr(group, "span_id", None) or "",
                computation=computation.id if computation is not None else "",
                worker=worker or "",
                exception_text=self.aliases.hide(exception_text, *keys),
                traceback_text=self.aliases.hide(traceback_text, *keys),
                will_retry=will_retry,
                blamed_key="" if blame is None else self._shown_key(blame.key, blame.group),
            )
        )

    def _shown_key(self, key: Any, group: Any) -> str:
        return _text(key) if self.settings.keys else self.aliases.group(group.name)


def _text(key: Any) -> str:
    return key if isinstance(key, str) else str(key)
