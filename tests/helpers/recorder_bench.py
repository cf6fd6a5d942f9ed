"""A recorder over a fake scheduler."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from daskscope.collector.privacy import Scrubber
from daskscope.collector.scheduler.recorder import Recorder
from daskscope.collector.settings import Settings

T0 = 1_700_000_000
US = T0 * 1_000_000


class FakeGroup:
    def __init__(self, prefix: str) -> None:
        self.name = f"{prefix}-group"
        self.prefix = SimpleNamespace(name=prefix)
        self.span_id = "s1"


class FakeTask:
    def __init__(self, key: str) -> None:
        self.key = key
        self.group = FakeGroup(key.partition("-")[0])
        self.run_id = 4
        self.retries = 0
        self.suspicious = 0
        self.state = "processing"
        self.priority: tuple[int, ...] = ()
        self.exception_blame: FakeTask | None = None
        self.exception_text = ""
        self.dependencies: set[FakeTask] = set()


class FakeWorker:
    """The attributes of a worker that a sample reads."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.metrics: dict[str, Any] = {"cpu": 5.0, "task_counts": {"executing": 1}}
        self.memory = SimpleNamespace(process=1, managed=2, unmanaged_old=3, unmanaged_recent=4, spilled=5)
        self.processing: dict[str, float] = {}
        self.has_what: dict[str, None] = {}
        self.occupancy = 0.5


class Bench:
    def __init__(self, **settings: Any) -> None:
        self.now_ns = T0 * 10**9
        self.step_ns = 0
        self.errors: list[tuple[str, BaseException]] = []
        self.scheduler = SimpleNamespace(
            id="Scheduler-1",
            address="tcp://10.0.0.9:8786",
            time_started=float(T0 - 100),
            tasks={},
            workers={},
            clients={},
            computations=[],
            extensions={},
            cumulative_worker_metrics={},
            unrunnable={},
            queued=[],
            idle_since=None,
            idle_timeout=None,
            total_nthreads=0,
            allowed_failures=3,
            monitor=None,
        )
        self.recorder = Recorder(
            self.scheduler, Settings(**settings), Scrubber(["hunter2hunter2"]), self.clock, self.caught
        )

    def clock(self) -> int:
        self.now_ns += self.step_ns
        return self.now_ns

    def caught(self, place: str, error: BaseException) -> None:
        self.errors.append((place, error))

    def task(self, key: str) -> FakeTask:
        made = self.scheduler.tasks[key] = FakeTask(key)
        return made

    def round(self) -> None:
        self.recorder.begin_round(self.now_ns // 1000)
        while self.recorder.advance():
            pass

    def rows(self, table: str) -> list[dict[str, Any]]:
        self.recorder.failures.flush_ready(self.now_ns // 1000, everything=True)
        found: list[dict[str, Any]] = []
        for name, columns, count, _ in self.recorder.rows.drain():
            if name == table:
                made = columns()
                found = [{column: values[row] for column, values in made.items()} for row in range(count)]
        return found


def add_worker(bench: Bench, nthreads: int = 1, executing: dict[Any, float] | None = None) -> None:
    """Add a worker whose last heartbeat came a second ago."""
    bench.scheduler.workers["w1"] = SimpleNamespace(
        server_id="s1", name=0, host="h", nthreads=nthreads, memory_limit=0, nanny="", versions={}, processing=(),
        executing=executing or {}, last_seen=bench.now_ns / 1e9 - 1,
    )  # fmt: skip
    bench.recorder.members.add_worker("w1", bench.now_ns // 1000)


def remove_worker(bench: Bench, keys: Iterable[str], **known: Any) -> None:
    message = {"action": "remove-worker", "worker": "w1", "processing-tasks": set(keys), **known}
    bench.recorder.event("all", message)
