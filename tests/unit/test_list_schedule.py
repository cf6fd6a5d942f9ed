"""Independent tasks on some threads, in their order."""

from __future__ import annotations

import pytest

from daskscope.analysis.what_if.chunks import makespan_us


@pytest.mark.parametrize(("threads", "expected"), [(0, 9.0), (1, 9.0), (2, 6.0), (3, 4.0), (2**40, 4.0)])
def test_each_task_goes_to_the_thread_that_is_free_first(threads: int, expected: float) -> None:
    assert makespan_us([3.0, 2.0, 4.0], threads) == expected


def test_no_tasks_take_no_time() -> None:
    assert makespan_us([], 4) == 0.0
