"""A few workloads of ``scripts/bench accuracy``: what daskscope says about them is what their own observers measured."""

from __future__ import annotations

from collections.abc import Iterator

import dask
import pytest
from benchmarks import observed_workloads
from benchmarks.accuracy import WORKLOADS, measure

#: Workloads whose truth does not depend on how busy the machine is. Durations of the others are for the bench.
NAMES = [
    observed_workloads.a_paused_worker,
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
