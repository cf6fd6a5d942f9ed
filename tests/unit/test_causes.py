"""The innermost cause of a failed task is recorded, and Dask's own message is unchanged."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import distributed.worker
import pytest
from distributed.exceptions import Reschedule

from daskscope.collector.privacy import Scrubber
from daskscope.collector.worker.causes import MAX_FULL_TEXTS, MAX_PENDING, MAX_TRACEBACK, CauseLog, ErrorMessageHook


class FakeWorker:
    """A worker that executes one task on the thread of the test."""

    def __init__(self, key: object = "load-1") -> None:
        self.active_threads = {threading.get_ident(): key}


class Bench:
    """A hook over a fake module, and one worker's log."""

    def __init__(self, **options: Any) -> None:
        self.now = 1000.0
        self.notified = 0
        self.worker = FakeWorker()
        self.module = SimpleNamespace(error_message=lambda e, status="error": {"status": status, "text": repr(e)})
        self.original = self.module.error_message
        self.hook = ErrorMessageHook(self.module)
        self.log = CauseLog(
            self.worker, Scrubber(["hunter2hunter2"]), clock=lambda: self.now, notify=self._count, **options
        )
        self.hook.add(self.log)

    def _count(self) -> None:
        self.notified += 1

    def fail(self, exc: BaseException) -> Any:
        try:
            raise exc
        except BaseException as caught:  # noqa: BLE001 - any exception type is tested
            return self.module.error_message(caught)


def chained(message: str = "could not load") -> BaseException:
    try:
        try:
            raise KeyError("column 7")
        except KeyError as inner:
            raise RuntimeError(message) from inner
    except RuntimeError as outer:
        return outer


def test_the_innermost_cause_is_kept_with_the_key() -> None:
    bench = Bench()
    bench.fail(chained())
    (record,) = bench.log.drain()
    assert {name: record[name] for name in ("key", "type", "message", "cause_type", "cause_message")} == {
        "key": "load-1",
        "type": "RuntimeError",
        "message": "could not load",
        "cause_type": "KeyError",
        "cause_message": "'column 7'",
    }


def test_the_traceback_shows_the_whole_chain() -> None:
    bench = Bench()
    bench.fail(chained())
    (record,) = bench.log.drain()
    assert "KeyError: 'column 7'" in record["traceback"]
    assert "direct cause" in record["traceback"]
    assert "RuntimeError: could not load" in record["traceback"]


def test_dasks_own_message_is_returned_unchanged() -> None:
    bench = Bench()
    exc = ValueError("x")
    assert bench.fail(exc) == bench.original(exc)


def test_an_exception_in_the_hook_does_not_reach_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    monkeypatch.setattr(bench.log, "add", None)
    assert bench.fail(ValueError("x"))["status"] == "error"


def test_an_exception_of_dasks_own_function_passes() -> None:
    bench = Bench()
    with pytest.raises(TypeError):
        bench.module.error_message(ValueError("x"), unknown=1)


def test_a_tuple_key_is_written_as_python_writes_it() -> None:
    bench = Bench()
    bench.worker.active_threads[threading.get_ident()] = ("x", 0)
    bench.fail(ValueError("x"))
    assert bench.log.drain()[0]["key"] == "('x', 0)"


def test_a_failure_outside_of_a_task_is_not_kept() -> None:
    bench = Bench()
    bench.worker.active_threads.clear()
    bench.fail(ValueError("x"))
    assert bench.log.drain() == []


def test_rescheduling_a_task_is_not_a_failure() -> None:
    bench = Bench()
    bench.fail(Reschedule())
    assert bench.log.drain() == []


def test_each_worker_of_a_process_gets_its_own_failures() -> None:
    bench = Bench()
    other_worker = FakeWorker("other-1")
    other_worker.active_threads = {-1: "other-1"}
    other = CauseLog(other_worker, Scrubber(), clock=lambda: 0.0)
    bench.hook.add(other)
    bench.fail(ValueError("x"))
    assert (len(other.drain()), len(bench.log.drain())) == (0, 1)


def test_the_agent_is_notified_at_once() -> None:
    bench = Bench()
    bench.fail(ValueError("x"))
    assert bench.notified == 1


def test_secrets_are_masked() -> None:
    bench = Bench()
    bench.fail(ValueError("login hunter2hunter2"))
    (record,) = bench.log.drain()
    assert record["message"] == record["cause_message"] == "login ***"
    assert "hunter2" not in record["traceback"]


def test_without_exception_text_type_and_fingerprint_remain() -> None:
    bench = Bench(exception_text=False)
    bench.fail(chained())
    (record,) = bench.log.drain()
    assert (record["message"], record["cause_message"], record["traceback"]) == ("", "", "")
    assert (record["type"], record["cause_type"]) == ("RuntimeError", "KeyError")
    assert record["fingerprint"]


def test_long_tracebacks_are_cut() -> None:
    bench = Bench()
    bench.fail(ValueError("x" * 1_000_000))
    assert len(bench.log.drain()[0]["traceback"]) <= MAX_TRACEBACK


def test_only_the_first_of_a_fingerprint_have_a_traceback() -> None:
    bench = Bench()
    for _ in range(MAX_FULL_TEXTS + 2):
        bench.fail(ValueError("x"))
    assert [bool(record["traceback"]) for record in bench.log.drain()] == [True] * MAX_FULL_TEXTS + [False] * 2


def test_a_minute_later_tracebacks_are_written_again() -> None:
    bench = Bench()
    for _ in range(MAX_FULL_TEXTS + 1):
        bench.fail(ValueError("x"))
    bench.log.drain()
    bench.now += 60
    bench.fail(ValueError("x"))
    assert bench.log.drain()[0]["traceback"]


def test_the_oldest_failures_are_dropped_first_and_counted() -> None:
    bench = Bench()
    for _ in range(MAX_PENDING + 3):
        bench.fail(ValueError("x"))
    assert (len(bench.log.drain()), bench.log.dropped) == (MAX_PENDING, 3)


def test_an_exception_whose_text_raises_is_kept() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

        __repr__ = __str__

    bench = Bench()
    bench.module.error_message = bench.original
    bench.log.add("k", Mute())
    assert bench.log.drain()[0]["type"] == "Mute"


def test_dasks_function_is_restored_after_the_last_log_is_removed() -> None:
    bench = Bench()
    other = CauseLog(FakeWorker(), Scrubber(), clock=lambda: 0.0)
    bench.hook.add(other)
    bench.hook.remove(bench.log)
    assert bench.module.error_message is not bench.original
    bench.hook.remove(other)
    assert bench.module.error_message is bench.original


def test_a_later_wrapper_by_other_code_is_left_in_place() -> None:
    bench = Bench()
    ours = bench.module.error_message

    def theirs(e: BaseException) -> Any:
        return ours(e)

    bench.module.error_message = theirs
    bench.hook.remove(bench.log)
    assert bench.module.error_message is theirs
    assert bench.fail(ValueError("x"))["status"] == "error"


def test_the_hook_does_not_keep_a_worker_in_memory() -> None:
    bench = Bench()
    del bench.worker
    assert bench.log.key_on_thread(threading.get_ident()) is None


def test_a_coroutine_is_found_by_the_frame_that_ran_it(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.worker.active_threads.clear()
    monkeypatch.setattr(distributed.worker, "get_worker", lambda: bench.worker)

    async def _run_task_async(task: Any) -> None:
        try:
            raise ValueError("in a coroutine")
        except ValueError as exc:
            bench.module.error_message(exc)

    asyncio.run(_run_task_async(SimpleNamespace(key="fetch-1")))
    assert bench.log.drain()[0]["key"] == "fetch-1"
