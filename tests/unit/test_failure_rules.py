"""The rules about retries that never succeed, and results that were recomputed."""

from __future__ import annotations

from typing import Any

import pytest
from tests.helpers.rule_rows import WORKERS, S, T, by_rule, task


class TestRetriesInVain:
    def failures(self, *will_retry: int) -> list[dict[str, Any]]:
        common = {"fingerprint": "f", "type": "ValueError", "message": "no", "prefix": "add"}
        return [{**common, "time_us": T + n, "will_retry": again} for n, again in enumerate(will_retry)]

    def test_retries_that_all_fail(self) -> None:
        finding = by_rule(exceptions=self.failures(1, 1, 0))["retries-in-vain"]
        assert finding.evidence == "2 retries did not prevent 1 final failure: ValueError: no."

    def test_retries_that_help_most_tasks(self) -> None:
        tasks = [task(0, 1, key="k", status="retried"), task(1, 2, key="k")]
        assert "retries-in-vain" not in by_rule(exceptions=self.failures(1, 1, 0), tasks=tasks)

    @pytest.mark.parametrize("will_retry", [(0, 0), (1, 1), (1, 0, 0)])
    def test_failures_without_retries_and_retries_that_help(self, will_retry: tuple[int, ...]) -> None:
        assert "retries-in-vain" not in by_rule(exceptions=self.failures(*will_retry))


class TestRecomputedResults:
    def closed(self, verdict: str) -> list[dict[str, Any]]:
        left = {"verdict": verdict, "evidence": "it was closing", "end_us": T + 30 * S}
        return [{**WORKERS[0], **left}, WORKERS[1]]

    def test_results_of_a_closed_worker(self) -> None:
        tasks = [task(0, 25, key="k"), task(40, 65, key="k", worker="b")]
        finding = by_rule(tasks=tasks, workers=self.closed("closed"))["recomputed-results"]
        assert finding.title == "1 result was recomputed after a worker left"
        assert finding.evidence == "25.0 s of compute time was wasted. a left: it was closing."

    def test_results_of_a_lost_worker_are_part_of_that_finding(self) -> None:
        tasks = [task(0, 25, key="k"), task(40, 65, key="k", worker="b")]
        assert by_rule(tasks=tasks, workers=self.closed("vanished")).keys() >= {"lost-workers"}
        assert "recomputed-results" not in by_rule(tasks=tasks, workers=self.closed("vanished"))

    def test_nothing_was_recomputed(self) -> None:
        tasks = [task(0, 25, key="k"), task(40, 65, key="m", worker="b")]
        assert "recomputed-results" not in by_rule(tasks=tasks, workers=self.closed("closed"))
