"""Fixtures for tests with real clusters: the clusters, and a check that the collector did not hide a failure."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import distributed
import pytest

from daskscope import Recording, open_recording

# Untyped in distributed.
LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client

#: The guard logs this when one of our hooks fails.
FAILURES = ("failed (", "switched off", "are missing", "is not recorded (")


class Heard(logging.Handler):
    """Collects daskscope's log messages."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        #: Set by tests that break the collector on purpose.
        self.may_fail = False

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    @property
    def failures(self) -> list[str]:
        return [line for line in self.lines if any(mark in line for mark in FAILURES)]


@pytest.fixture(autouse=True, scope="session")
def importable_by_workers() -> Iterator[None]:
    """Give worker processes our path, so that they import the functions of test modules by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2]))
        yield


@pytest.fixture(autouse=True, scope="session")
def quick_workers() -> Iterator[None]:
    """Fork worker processes from one that has imported distributed: a start takes 0.1 s of CPU time instead of 1 s.

    They have the environment of the test that starts the first cluster.
    """
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        yield


@pytest.fixture(autouse=True)
def heard() -> Iterator[Heard]:
    """All log messages of daskscope in this process; a failure of the collector fails the test."""
    handler = Heard()
    logger = logging.getLogger("daskscope")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
    assert handler.may_fail or handler.failures == []


@pytest.fixture
def opened() -> Callable[[Path], Recording]:
    """Open a recording and check that it is complete and that the collector did not disable itself."""

    def opened(path: Path) -> Recording:
        recording = open_recording(path)
        assert recording.damage == ""
        assert "collector-disabled" not in list(recording["events"]["kind"])
        assert not any(held.missing or held.dropped for held in recording.completeness.values())
        return recording

    return opened


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two workers in their own processes; the scheduler runs in this one."""
    with LocalCluster(
        n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None, memory_limit=0
    ) as made:
        yield made


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    with Client(cluster) as made:
        yield made
