"""Hook calls in, rows out: the collector's logic without any I/O.

The recorder reads the scheduler's state, but it owns no thread, socket, file or timer; the plugin around it does. Everything
here runs on the scheduler's event loop and is bounded: what may grow with the cluster is looked at a part at a time.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from .activity import Activities
from .compat import current_computation, known_since, runs_again, spans
from .eventlog import Plain, event_row
from .executions import Chunk, Execution, executions
from .failures import Failure, Failures
from .members import Members
from .privacy import Scrubber
from .rows import Rows
from .samples import scheduler_sample, worker_sample
from .schedulererror import exception_text
from .settings import Settings
from .waves import Waves

#: Workers sampled per tick; above this they take turns.
SAMPLES_PER_TICK = 500
#: The cluster's row is written at least this often.
REPEAT_US = 10_000_000
#: Configuration worth knowing later; an allow-list, so that nobody's token is ever among it.
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
#: How long a round of looking at everything may hold up the event loop before it goes on at the next tick.
ROUND_BUDGET_NS = 3_000_000
#: Windows that may be open; the oldest is forgotten.
WINDOWS = 1_000
#: Executions written when a worker is lost (3 µs each); it rarely has more than a few times its threads.
LOST_PER_WORKER = 1_000
METRIC_TOPIC = "daskscope-metric"
WINDOW_TOPIC = "daskscope-window"
#: What a task that was processing is released by when nobody wants it any more: its future was dropped or cancelled, its client
#: left, or a client restarted the cluster. Workers that die, retire or are restarted alone ("client-restart-workers") only send
#: their tasks elsewhere.
GIVEN_UP = ("client-releases-keys-", "cancel-key-", "remove-client-", "client-restart-")
WORKERS_RESTARTED = "client-restart-workers-"


class Recorder:
    """Everything known of one scheduler, as rows."""

    def __init__(
        self,
        scheduler: Any,
        settings: Settings,
        scrubber: Scrubber,
        clock_ns: Callable[[], int],
        on_error: Callable[[str, BaseException], None],
    ) -> None:
        self.scheduler = scheduler
        self.settings = settings
        self.scrubber = scrubber
        self.clock_ns = clock_ns
        self.rows = Rows()
        self.failures = Failures(scrubber, self.rows.later, texts=settings.exception_text)
        self.waves = Waves(scheduler, self.rows.add, scrubber, code=settings.code)
        self.members = Members(scheduler, self.rows.add, hostnames=settings.hostnames, keys=settings.keys)
        self.activities = Activities(scheduler.cumulative_worker_metrics, spans=spans(scheduler) is not None)
        self.executions = executions(
            scheduler.tasks,
            clock_ns,
            self.other_transition,
            lambda error: on_error("transition", error),
            edges=settings.edges,
        )
        self.children: dict[str, dict[str, Any]] = {}
        #: Rows dropped so far by table; whoever writes the rows counts them.
        self.dropped: Mapping[str, int] = {}
        self._next_worker = 0
        self._cluster: dict[str, Any] = {}
        self._last_cluster: tuple[Any, ...] = ()
        self._cluster_us = 0
        self._windows: dict[str, dict[str, Any]] = {}
        self._round: Iterator[None] | None = None
        self._plain = Plain(scrubber)
        self._wanted = -1

    # -- life ------------------------------------------------------------------------------------------------------

    def now_us(self) -> int:
        return self.clock_ns() // 1000

    def begin(self, versions: Mapping[str, Any], config: Mapping[str, Any]) -> None:
        """Write down what is there when recording begins."""
        now, scheduler = self.now_us(), self.scheduler
        settings = self.settings
        self._cluster = {
            "cluster": scheduler.id,
            "name": settings.name,
            "user": settings.user,
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
            self.members.joined(address, now, _since(scheduler, address, "add-worker", now))
        for client in list(scheduler.clients):
            self.members.connected(client, now, _since(scheduler, client, "add-client", now))

    def repeat_entities(self) -> None:
        """Write every living entity again, for a reader that joins now."""
        now = self.now_us()
        self._last_cluster = ()
        # The end may have been written for a reader that leaves at this moment.
        self._cluster.update(end_us=0, end_reason="")
        self.cluster_state(now)
        for member in self.members.workers.values():
            self.rows.add("workers", seen_us=now, **member.row)
        for row in self.members.clients.values():
            self.rows.add("clients", seen_us=now, **row)
        for row in self._windows.values():
            self.rows.add("windows", seen_us=now, **row)
        self.waves.repeat()

    def closing(self) -> None:
        """The scheduler begins to close."""
        last = current_computation(self.scheduler)
        worked_us = int(max(last.start, last.stop) * 1e6) if last is not None else 0
        self.members.cluster_closes(self.now_us(), worked_us)

    def end(self, reason: str) -> None:
        """Write the last rows of everything that is still open; what changed was written just before, in rounds."""
        now = self.now_us()
        self.failures.ripen(now, everything=True)
        self._cluster.update(end_us=now, end_reason=reason)
        self.cluster_state(now)

    # -- hooks -----------------------------------------------------------------------------------------------------

    def graph(self, client: str, keys: Sequence[Any] = ()) -> None:
        self.executions.computation(self.waves.submitted(client, keys))

    def other_transition(self, key: Any, start: str, finish: str, stimulus: str, kw: Mapping[str, Any]) -> None:
        """A transition that is no plain success."""
        if finish == "erred":
            self.erred(key, start, kw)
        elif stimulus.startswith(GIVEN_UP) and not stimulus.startswith(WORKERS_RESTARTED):
            task = self.scheduler.tasks.get(key)
            if task is not None:
                self.waves.cancelled(task.group, self.now_us())

    def erred(self, key: Any, start: str, kw: Mapping[str, Any]) -> None:
        """A task failed for good: it raised, its worker died too often, or something it depends on failed."""
        task = self.scheduler.tasks[key]
        blame = task.exception_blame
        if "exception_text" in kw:
            self._execution(key, task, kw, "error")
            self._failure(key, task, kw.get("worker", ""), str(kw["exception_text"]), str(kw.get("traceback_text", "")))
        elif "exception" in kw:
            # Made by the scheduler itself (KilledWorker, NoValidWorkerError), so unpickling it is safe.
            if start == "processing":
                # Its worker died like those before, but this time it is not run again: a failure, where "killed" is a detour.
                self._execution(key, task, kw, "error")
            self._failure(key, task, kw.get("worker") or "", exception_text(kw["exception"]), "")
        elif blame is not None and blame.key != key:
            blamed = _text(blame.key) if self.settings.keys else blame.group.name
            self._failure(key, task, "", blame.exception_text or "", "", blamed=blamed)
        # Last: the computation must not end before the rows just made do.
        self.waves.failed(task.group, self.now_us())

    def before_task_erred(self, message: Mapping[str, Any]) -> None:
        """A worker reports a failure; where retries are left this is the only trace of it."""
        key = message["key"]
        task = self.scheduler.tasks.get(key)
        if task is None or task.state != "processing" or not task.retries:
            return
        if "run_id" in message and getattr(task, "run_id", None) != message["run_id"]:
            return
        self._execution(key, task, message, "retried")
        texts = str(message.get("exception_text", "")), str(message.get("traceback_text", ""))
        self._failure(key, task, message.get("worker", ""), *texts, will_retry=True)
        self.waves.troubled(task.group, self.now_us())

    def event(self, topic: str, message: Any) -> None:
        """Something was logged; the same event arrives once per topic, so worker topics only feed the verdicts."""
        now, settings = self.now_us(), self.settings
        # Exactly a dict: what Dask sends is one, and a user's own mapping may do anything.
        if type(message) is dict:
            self.members.event(topic, message)
            if topic == "all" and message.get("action") == "remove-worker":
                self._executions_lost(message)
            if topic == METRIC_TOPIC:
                self._metric(now, message)
                return
            if topic == WINDOW_TOPIC:
                self.window(message)
                return
        if topic in settings.topics or "*" in settings.topics:
            row = event_row(topic, message, self.scrubber, keys=settings.keys, exception_text=settings.exception_text)
            if row is not None:
                self.rows.add("events", time_us=now, **row)

    def wanted(self, workers: Any) -> None:
        """Adaptive scaling asked how many workers there should be: it does so every second, and seldom hears anything new."""
        if type(workers) is int and workers != self._wanted:
            self._wanted = workers
            detail = json.dumps({"wanted": workers, "workers": len(self.scheduler.workers)})
            self.rows.add("events", time_us=self.now_us(), topic="adaptive", kind="wanted-workers", detail=detail)

    def _executions_lost(self, message: Mapping[Any, Any]) -> None:
        """A worker is gone with what it was processing; the tasks run again elsewhere, but these executions end here."""
        keys, worker = message.get("processing-tasks"), message.get("worker")
        if not isinstance(keys, (set, frozenset, list, tuple, dict)) or not isinstance(worker, str):
            return
        for key in islice(keys, LOST_PER_WORKER):
            task = self.scheduler.tasks.get(key)
            # Those that fail for good because of it are written as such.
            if task is not None and runs_again(self.scheduler, task, message):
                self._execution(key, task, {"worker": worker}, "killed")
                self.waves.troubled(task.group, self.now_us())

    def window(self, message: Mapping[str, Any]) -> None:
        """A named stretch of time begins or ends: ``window`` (its id), ``done`` at its end, and what else is known."""
        now, id_ = self.now_us(), self._plain.text(message.get("window", ""))
        row = self._windows.setdefault(id_, {"window": id_, "start_us": now, "status": "open"})
        if len(self._windows) > WINDOWS:
            self._windows.pop(next(iter(self._windows)))
        for name in ("kind", "name", "error"):
            if name in message:
                row[name] = self._plain.text(message[name])
        if "labels" in message:
            row["labels"] = self._labels(message["labels"])
        if not self.settings.exception_text and "error" in row:
            # Its type only.
            row["error"] = row["error"].partition(":")[0]
        if message.get("done"):
            row.update(stop_us=now, status="error" if row.get("error") else "ok")
            self._windows.pop(id_, None)
        self.rows.add("windows", seen_us=now, **row)

    # -- ticks -----------------------------------------------------------------------------------------------------

    def rotate(self) -> Chunk:
        """Hand over the executions so far."""
        chunk = self.executions.rotate()
        self.waves.touched(chunk)
        return chunk

    def begin_round(self, now_us: int) -> None:
        """Write what changed of computations, activities, clients and the cluster; a round that is under way goes on.

        ``advance`` does the work.
        """
        if self._round is None:
            self._round = self._state(now_us)

    def begin_last_round(self, now_us: int) -> None:
        """Write what will never be seen to finish, after a round that wrote everything else."""
        self._round = self.waves.lost(now_us)

    def advance(self) -> bool:
        """Work on the round for a few milliseconds; True while there is more to do."""
        if self._round is None:
            return False
        # Not kept while it runs: one that fails is given up, and the next begins anew.
        current, self._round = self._round, None
        deadline = self.clock_ns() + ROUND_BUDGET_NS
        for _ in current:
            if self.clock_ns() >= deadline:
                self._round = current
                return True
        return False

    def _state(self, now_us: int) -> Iterator[None]:
        yield from self.waves.round(now_us)
        yield from self.activities.round(now_us, self.rows.add)
        yield from self.members.round(now_us)
        self.cluster_state(now_us)

    def tick_samples(self, now_us: int, lag_us: int) -> None:
        """Sample the scheduler and its workers; beyond 500 workers they take turns."""
        workers = list(self.scheduler.workers.values())
        if len(self.children) > len(workers):
            # The last push of a worker may come after it was removed.
            self.children = {name: known for name, known in self.children.items() if name in self.scheduler.workers}
        if len(workers) > SAMPLES_PER_TICK:
            first = self._next_worker % len(workers)
            self._next_worker = first + SAMPLES_PER_TICK
            workers = (workers + workers)[first : first + SAMPLES_PER_TICK]
        for worker in workers:
            if worker.metrics:
                self.rows.add("samples", **worker_sample(worker, now_us, self.children.get(worker.address)))
        self.rows.add("samples", **scheduler_sample(self.scheduler, now_us, lag_us))

    def cluster_state(self, now_us: int) -> None:
        """The cluster's row, written again when what it says has changed, and every ten seconds: its time is the last at which
        somebody knows that all of it still held, workers that are paid for among it."""
        scheduler = self.scheduler
        unrunnable = scheduler.unrunnable
        facts = {
            "idle_since_us": int((scheduler.idle_since or 0) * 1e6),
            "idle_timeout_s": float(scheduler.idle_timeout or 0),
            "tasks_queued": len(scheduler.queued),
            "tasks_processing": sum(len(worker.processing) for worker in scheduler.workers.values()),
            "tasks_unrunnable": len(unrunnable),
            "unrunnable_needs": _needs(unrunnable),
            "workers": len(scheduler.workers),
            "threads": scheduler.total_nthreads,
            # A frame tells it of its own table only, and there may come none any more. Copied: threads count, too.
            "dropped": json.dumps(dict(self.dropped), sort_keys=True) if self.dropped else "",
            "end_us": self._cluster.get("end_us", 0),
        }
        if tuple(facts.values()) != self._last_cluster or now_us - self._cluster_us >= REPEAT_US:
            self._last_cluster, self._cluster_us = tuple(facts.values()), now_us
            self.rows.add("clusters", **{**self._cluster, "seen_us": now_us, **facts})

    # -- rows ------------------------------------------------------------------------------------------------------

    def _execution(self, key: Any, task: Any, message: Mapping[str, Any], status: str) -> None:
        self.executions.add(
            Execution(
                key=key,
                group=task.group,
                worker=message.get("worker") or "",
                thread=message.get("thread") or 0,
                startstops=message.get("startstops") or (),
                status=status,
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
        blamed: str = "",
    ) -> None:
        group = task.group
        wave = self.waves.of(group)
        name = _text(key)
        if not self.settings.keys:
            # Dask's own exceptions name the task.
            exception_text = exception_text.replace(name, group.name)
        self.failures.failed(
            Failure(
                time_us=self.now_us(),
                key=name if self.settings.keys else group.name,
                known_as=name,
                group=group.name,
                prefix=group.prefix.name,
                span=getattr(group, "span_id", None) or "",
                computation=wave.id if wave is not None else "",
                worker=worker or "",
                exception_text=exception_text,
                traceback_text=traceback_text,
                will_retry=will_retry,
                blamed_key=blamed,
            )
        )

    def _metric(self, now_us: int, message: Mapping[str, Any]) -> None:
        """Anybody may log one: what is no number is not kept."""
        wave, text, value = self.waves.current, self._plain.text, message.get("value")
        if type(value) not in (int, float, bool):
            return
        self.rows.add(
            "metrics",
            time_us=now_us,
            name=text(message.get("name", ""))[:200],
            value=_float(value),
            unit=text(message.get("unit", ""))[:50],
            labels=self._labels(message.get("labels")),
            computation=wave.id if wave is not None else "",
            span=text(message.get("span", ""))[:200],
            window=text(message.get("window", ""))[:200],
        )

    def _labels(self, labels: Any) -> str:
        return self._plain.json(labels.items(), 2_000) if type(labels) is dict else "{}"


def _since(scheduler: Any, name: str, action: str, now_us: int) -> int:
    """Since when a worker or a client is there that was there before us; where that cannot be told, since now."""
    return min(int(known_since(scheduler, name, action) * 1e6) or now_us, now_us)


def _needs(unrunnable: Any) -> str:
    """What up to 1,000 of the unrunnable tasks ask for."""
    needs: dict[str, int] = {}
    for task, _ in zip(unrunnable, range(1000)):
        wants = [f"{name}={amount}" for name, amount in (task.resource_restrictions or {}).items()]
        if task.worker_restrictions or task.host_restrictions:
            wants.append("certain workers")
        name = ", ".join(sorted(wants)) or "any worker"
        needs[name] = needs.get(name, 0) + 1
    return json.dumps(needs) if needs else ""


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _text(key: Any) -> str:
    return key if isinstance(key, str) else str(key)
