"""Times of threads and processes, read from the kernel."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from daskscope.collector.worker.kernel import ProcessReader, ThreadTimes, peak_memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's statistics are read on Linux only")


def test_a_threads_cpu_time_is_what_the_thread_itself_measures() -> None:
    measured: list[float] = []
    begin, stop = threading.Event(), threading.Event()

    def work() -> None:
        begin.wait()
        before = time.thread_time()
        while time.thread_time() - before < 0.1:
            sum(range(1_000))
        measured.append(time.thread_time() - before)
        stop.wait()

    thread = threading.Thread(target=work)
    thread.start()
    times = ThreadTimes()
    assert thread.ident is not None
    before = times.read(thread.ident)
    begin.set()
    while not measured:
        time.sleep(0.01)
    after = times.read(thread.ident)
    stop.set()
    thread.join()
    assert before is not None
    assert after is not None
    assert after.cpu_us - before.cpu_us == pytest.approx(measured[0] * 1e6, rel=0.2)
    assert after.wall_us - before.wall_us >= after.cpu_us - before.cpu_us
    assert after.switches > before.switches
    # A thread that has ended is not known, and its file is closed. The kernel may take a moment to end it.
    while times.read(thread.ident) is not None:
        time.sleep(0.01)
    assert len(times) == 0


def test_an_unknown_thread() -> None:
    times = ThreadTimes()
    assert times.read(1) is None
    times.close()
    assert len(times) == 0


def test_a_process_is_read_as_increases() -> None:
    reader = ProcessReader()
    before = time.process_time()
    while time.process_time() - before < 0.2:
        sum(range(1_000))
    used = time.process_time() - before
    row = reader.read(whole=True)
    assert row is not None
    # The kernel counts in steps of 10 ms.
    assert row["cpu_us"] == pytest.approx(used * 1e6, abs=60_000)
    assert row["host_cpu_us"] >= row["cpu_us"] - 50_000
    assert row["host_cores"] >= row["cores"] >= 1
    assert row["peak_memory"] == peak_memory() > 1_000_000


def test_cpu_of_event_loops_and_helpers_is_separate() -> None:
    def burn(seconds: float) -> None:
        stop = time.thread_time() + seconds
        while time.thread_time() < stop:
            sum(range(1_000))
        burned.wait()
        done.wait()

    reader = ProcessReader()
    burned, done = threading.Barrier(3), threading.Event()
    for name, seconds in (("IO loop", 0.2), ("someone-else", 0.4)):
        threading.Thread(target=burn, args=(seconds,), name=name, daemon=True).start()
    burned.wait(30)
    row = reader.read(whole=True)
    done.set()
    assert row is not None
    assert 200_000 <= row["own_cpu_us"] < row["cpu_us"] - 250_000


def test_a_quiet_process_is_not_read_until_it_is_asked_for() -> None:
    reader = ProcessReader()
    time.sleep(0.3)
    assert reader.read(whole=False) is None
    row = reader.read(whole=True)
    assert row is not None
    assert row["wall_us"] >= 300_000
