"""Earlier runs are looked up once in a while, not with every request."""

from __future__ import annotations

import pytest

from daskscope.analysis.running.progress import EarlierRun
from daskscope.server import caches
from daskscope.server.caches import EARLIER_S, EarlierRuns


class Bench:
    def __init__(self) -> None:
        self.now, self.finds = 100.0, 0
        self.earlier_runs = EarlierRuns(lambda: self.now)

    def get(self, run: int = 1, computation: str = "c") -> list[EarlierRun]:
        return self.earlier_runs.get(run, computation, self.find)

    def find(self) -> list[EarlierRun]:
        self.finds += 1
        return [EarlierRun(self.finds, 1)]


def test_they_are_remembered_for_a_while() -> None:
    bench = Bench()
    assert bench.get() == bench.get() == [EarlierRun(1, 1)]
    assert bench.get(2) == [EarlierRun(2, 1)]
    assert bench.get(1, "d") == [EarlierRun(3, 1)]
    bench.now += EARLIER_S
    assert bench.get() == [EarlierRun(4, 1)]


def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "MAX_EARLIER", 3)
    bench = Bench()
    for run in range(10):
        bench.get(run)
    assert bench.finds == 10
    assert len(bench.earlier_runs._known) <= 3
