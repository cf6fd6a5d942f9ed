"""A few workloads of ``scripts/bench accuracy``: what daskscope says about them is what their own observers measured."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import dask
import pytest
from benchmarks import observed_workloads
from benchmarks.accuracy import WORKLOADS, Statement, measure, measure_apart

#: Workloads whose truth does not depend on how busy the machine is. Durations of the others are for the bench.
NAMES = [
    observed_workloads.bytes_of_a_shuffle,
]


@pytest.fixture(autouse=True)
def own_environment() -> Iterator[None]:
    """Start new worker processes: forked ones would write to the log of the first workload."""
    with dask.config.set({"distributed.worker.multiprocessing-method": "spawn"}):
        yield


@pytest.mark.parametrize("name", [function.__name__.replace("_", " ") for function in NAMES])
def test_statements_are_right(name: str) -> None:
    statements = measure(name, *WORKLOADS[name])
    assert [statement for statement in statements if not statement.is_right] == []
    assert any(not statement.is_internal for statement in statements)


def wrong(workload: str, said: str) -> Statement:
    return Statement(workload, "the workload ends", "yes", said, "", "", is_right=False)


def test_a_workload_that_does_not_end_is_a_wrong_statement() -> None:
    assert measure_apart("one long task", deadline_s=1) == [wrong("one long task", "no end after 1 s")]


def test_a_workload_that_fails_is_a_wrong_statement() -> None:
    assert measure_apart("no such task") == [wrong("no such task", "KeyError: 'no such task'")]


def test_workers_import_little() -> None:
    """A worker with a memory limit of 350 MB is killed again and again if it imports daskscope and its server."""
    code = "import sys, benchmarks.tasks, benchmarks.accuracy_workload as _; print({'daskscope', 'pandas'} & {*sys.modules})"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"
