"""A few workloads of ``scripts/bench accuracy``: what daskscope says about them is what their own observers measured."""

from __future__ import annotations

import pytest
from benchmarks import observed_workloads, workloads
from benchmarks.accuracy import WORKLOADS, measure

#: Workloads whose truth does not depend on how busy the machine is, or is measured at the same time.
NAMES = [
    observed_workloads.a_chain_of_tasks,
    observed_workloads.a_paused_worker,
    observed_workloads.tasks_that_wait_for_files,
    observed_workloads.bytes_of_a_shuffle,
    observed_workloads.peak_memory_of_the_cluster,
    workloads.tasks_restricted_to_one_worker,
    workloads.an_actor_beside_tasks,
]


@pytest.mark.parametrize("name", [function.__name__.replace("_", " ") for function in NAMES])
def test_statements_are_right(name: str) -> None:
    statements = measure(name, *WORKLOADS[name])
    assert [statement for statement in statements if not statement.is_right] == []
    assert any(not statement.is_internal for statement in statements)
