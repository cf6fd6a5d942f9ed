"""Comparisons of real runs: what the machine did meanwhile, and reports as sources."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest
from distributed import Client, LocalCluster

import daskscope
from daskscope.analysis.compare.measurements import measure
from daskscope.analysis.summary import extent
from daskscope.report.document import report_page

SPAWN = multiprocessing.get_context("spawn")


def spin(begun: Event, stop: Event, used: multiprocessing.sharedctypes.Synchronized[float]) -> None:
    """Use a core, and count the CPU time that the kernel gives."""
    begun.set()
    while not stop.is_set():
        sum(range(10_000))
        used.value = time.process_time()


def work(seconds: float) -> int:
    until, steps = time.thread_time() + seconds, 0
    while time.thread_time() < until:
        steps += 1
    return steps


@pytest.fixture
def client() -> Iterator[Client]:
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        yield client


def run(client: Client, path: Path) -> Path:
    with daskscope.record(path, client):
        client.gather(client.map(work, [0.1] * 20, pure=False))
    return path


def test_cores_used_by_another_program_are_measured(client: Client, tmp_path: Path) -> None:
    begun, stop, used = SPAWN.Event(), SPAWN.Event(), SPAWN.Value("d", 0.0)
    other = SPAWN.Process(target=spin, args=(begun, stop, used), daemon=True)
    other.start()
    assert begun.wait(60)
    before_s, start = used.value, time.monotonic()
    recording = daskscope.open_recording(run(client, tmp_path / "busy.daskscope"))
    cores = (used.value - before_s) / (time.monotonic() - start)
    stop.set()
    other.join(30)
    found = measure(recording, *extent(recording)).other_cores
    # Other programs of this machine add to it; the readings miss up to a second at the ends.
    assert found > 0.7 * cores


def test_cpu_time_per_task_is_that_of_the_tasks(client: Client, tmp_path: Path) -> None:
    recording = daskscope.open_recording(run(client, tmp_path / "run.daskscope"))
    measured = measure(recording, *extent(recording)).prefixes["work"]
    assert measured.count == 20
    # Each task used 0.1 s by its own clock.
    assert measured.cpu_us == pytest.approx(100_000, rel=0.1)


def test_a_report_is_compared_with_its_recording(client: Client, tmp_path: Path) -> None:
    path = run(client, tmp_path / "run.daskscope")
    page = tmp_path / "run.html"
    page.write_bytes(report_page(daskscope.open_recording(path), title="run"))
    found = daskscope.compare(path, page)
    assert not found.is_shown
    (prefix,) = found.changes.prefixes
    assert (prefix.count.before, prefix.count.after) == (20, 20)
    # A report has durations to three digits.
    assert prefix.time.after == pytest.approx(prefix.time.before, rel=0.01)
