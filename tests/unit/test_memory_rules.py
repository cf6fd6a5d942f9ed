"""The rules about memory that grows, and memory that is hardly used."""

from __future__ import annotations

from typing import Any

import pytest
from tests.helpers.rule_rows import S, T, by_rule, task


class TestMemory:
    def samples(self, unmanaged: list[int], managed: int = 0) -> list[dict[str, Any]]:
        step = 100 / len(unmanaged)
        return [
            {"worker": "a", "time_us": T + round(n * step * S), "memory": value + managed, "managed": managed}
            for n, value in enumerate(unmanaged)
        ]

    def test_unmanaged_memory_that_grows(self) -> None:
        tasks = [task(start, start + 15) for start in range(0, 90, 15)]
        finding = by_rule(tasks=tasks, samples=self.samples(list(range(100, 500, 20))))["memory-growth"]
        assert finding.title == "Unmanaged memory grew on 1 worker"
        assert finding.evidence.startswith("On worker a, by ")

    def test_memory_of_imports_and_first_results_is_no_growth(self) -> None:
        """Memory jumps when the first task runs, after 40 s, and stays: imports, and what the allocator keeps."""
        tasks = [task(start, start + 5) for start in range(40, 90, 5)]
        values = [66] * 8 + [210, 227, 228, 228, 252, 252, 278, 276, 276, 276, 276, 276]
        assert "memory-growth" not in by_rule(tasks=tasks, samples=self.samples(values))

    @pytest.mark.parametrize("tasks", [[task(0, 95)], [*(task(n, n + 1) for n in range(8)), task(10, 95)], []])
    def test_memory_that_one_task_needs(self, tasks: list[dict[str, Any]]) -> None:
        assert "memory-growth" not in by_rule(tasks=tasks, samples=self.samples(list(range(100, 500, 20))))

    @pytest.mark.parametrize(
        "values", [[100] * 20, [100] * 10 + [500] * 10, [500, 100] * 10, list(range(500, 100, -20))]
    )
    def test_unmanaged_memory_that_does_not_grow_steadily(self, values: list[int]) -> None:
        tasks = [task(start, start + 15) for start in range(0, 90, 15)]
        assert "memory-growth" not in by_rule(tasks=tasks, samples=self.samples(values))

    def test_memory_to_spare(self) -> None:
        finding = by_rule(tasks=[task(0, 50)], samples=self.samples([200] * 20))["spare-memory"]
        assert finding.title == "No worker used more than 20 % of its memory"

    def test_workers_that_share_their_memory(self) -> None:
        """Workers of one process have the same memory and limit."""
        samples = [{**row, "worker": name} for row in self.samples([200] * 20) for name in ("a", "b")]
        tasks = [task(0, 50, worker=name) for name in ("a", "b")]
        assert (
            by_rule(tasks=tasks, samples=samples)["spare-memory"].title == "No worker used more than 20 % of its memory"
        )

    def test_no_memory_to_spare(self) -> None:
        assert "spare-memory" not in by_rule(tasks=[task(0, 50)], samples=self.samples([200] * 19 + [400]))
