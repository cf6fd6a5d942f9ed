"""The encoder's thread encodes in order, drops rows it cannot handle, and survives every failure."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from daskscope.collector.delivery import encoder as module
from daskscope.collector.delivery.encoder import MAX_FORWARD_BYTES, MAX_JOBS, Encoder
from daskscope.collector.delivery.outbox import Outbox, Sealed
from daskscope.testing import make_columns
from daskscope.wire.decode import read_frame
from daskscope.wire.encode import Body, encode_body


class Bench:
    def __init__(self) -> None:
        self.outbox = Outbox("c", 1)
        self.frames: list[Sealed] = []
        self.errors: list[tuple[str, BaseException]] = []
        self.outbox.subscribe("me", self.frames.append)
        self.encoder = Encoder(self.outbox, self.caught)
        self.gate = threading.Event()

    def caught(self, place: str, error: BaseException) -> None:
        self.errors.append((place, error))
        raise error  # as strict mode does

    def write(self, table: str = "tasks", rows: int = 1) -> None:
        self.encoder.write(table, lambda: make_columns(table, [{}] * rows), rows)

    def block(self) -> None:
        """Block the thread in the middle of a job."""
        inside = threading.Event()

        def columns() -> dict[str, Any]:
            inside.set()
            assert self.gate.wait(30)
            return make_columns("tasks", [{}])

        self.encoder.write("tasks", columns, 1)
        assert inside.wait(30)

    def finish(self) -> list[str]:
        self.gate.set()
        self.encoder.stop(30)
        return [frame.table for frame in self.frames]


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.encoder.start()
    return made


def test_jobs_are_published_in_order(bench: Bench) -> None:
    tables = ["tasks", "edges", "events"] * 5
    bench.block()
    for table in tables:
        bench.write(table)
    assert bench.finish() == ["tasks", *tables]


def test_a_failing_job_is_reported_and_counted_and_the_thread_goes_on(bench: Bench) -> None:
    bench.encoder.write("tasks", lambda: {"no": "columns"}, 12)
    bench.write()
    assert bench.finish() == ["tasks"]
    assert [(place, type(error)) for place, error in bench.errors] == [("encoding", ValueError)]
    header = read_frame(bench.frames[0].frame).header
    assert (header.kept, header.dropped) == (1, 12)


def test_a_subscriber_that_fails_drops_no_rows(bench: Bench) -> None:
    def broken(frame: Sealed) -> None:
        raise RuntimeError("no")

    bench.outbox.subscribe("broken", broken)
    bench.write()
    assert bench.finish() == ["tasks"]
    assert bench.outbox.dropped == {}
    assert len(bench.errors) == 1


def test_raw_rows_are_dropped_first_and_counted(bench: Bench) -> None:
    bench.block()
    for _ in range(3 * MAX_JOBS):
        bench.write("tasks", rows=2)
    for _ in range(3 * MAX_JOBS):
        bench.write("exceptions")
    assert bench.outbox.dropped == {"tasks": 2 * 2 * MAX_JOBS, "exceptions": 2 * MAX_JOBS}
    tables = bench.finish()
    assert (tables.count("tasks"), tables.count("exceptions")) == (MAX_JOBS + 1, MAX_JOBS)


def test_bodies_of_workers_are_limited_by_bytes(bench: Bench) -> None:
    bench.block()
    large = Body("profiles", 5, 0, 0, 10, bytes(MAX_FORWARD_BYTES // 4))
    for _ in range(6):
        bench.encoder.forward(large)
    assert bench.outbox.dropped == {"profiles": 10}
    assert bench.finish().count("profiles") == 4
    assert bench.encoder._forwarding == 0


def test_bodies_of_workers_are_limited_by_number(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_JOBS", 1)
    bench.block()
    small = encode_body("logs", make_columns("logs", [{}]))
    for _ in range(60):
        bench.encoder.forward(small)
    assert bench.outbox.dropped == {"logs": 10}
    bench.finish()


def test_a_barrier_is_reached_after_everything_before_it(bench: Bench) -> None:
    bench.block()
    bench.write()
    reached = bench.encoder.barrier()
    assert not reached.is_set()
    bench.gate.set()
    assert reached.wait(30)
    assert len(bench.frames) == 2
    bench.finish()


def test_a_barrier_does_not_wait_for_a_thread_that_is_not_running() -> None:
    assert Bench().encoder.barrier().is_set()


def test_after_stopping_everything_is_counted_as_dropped(bench: Bench) -> None:
    bench.finish()
    bench.write("tasks", rows=3)
    bench.encoder.forward(Body("logs", 4, 0, 0, 10, b"x"))
    assert bench.outbox.dropped == {"tasks": 3, "logs": 4}
    assert bench.encoder.barrier().is_set()


def test_stopping_an_encoder_that_never_started() -> None:
    Bench().encoder.stop(30)
