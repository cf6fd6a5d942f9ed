"""An agent survives whatever the reply to its push contains."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from daskscope.collector.worker import agent
from daskscope.collector.worker.agent import Agent, push_pause

GARBAGE: list[Any] = ["soon", "", None, [], {}, b"5", True, -1, 0, float("nan"), float("inf"), object()]


@pytest.mark.parametrize("asked", GARBAGE, ids=[type(one).__name__ + str(n) for n, one in enumerate(GARBAGE)])
def test_a_garbage_pause_is_the_configured_one(asked: object) -> None:
    assert push_pause(asked, 5.0) == 5.0


@pytest.mark.parametrize(
    ("asked", "pause"), [(4.9, 5.0), (5, 5.0), (20.0, 20.0), (3_600, 3_600.0), (3_601, 3_600.0), (10**400, 3_600.0)]
)
def test_a_pause_is_between_the_configured_one_and_an_hour(asked: float, pause: float) -> None:
    assert push_pause(asked, 5.0) == pause


class Probes:
    """Probes that have nothing to say."""

    def __init__(self, *_: Any) -> None:
        self.errors: dict[str, str] = {}
        self.causes_lost = 0

    def tables(self, *, whole: bool) -> dict[str, Any]:
        return {}

    def losses(self) -> dict[str, int]:
        return {}

    def causes(self) -> list[Any]:
        return []

    def children(self) -> dict[str, float]:
        return {}

    def quality(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        return


def test_an_agent_goes_on_pushing_after_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    replies = [{"status": "OK", "push_s": asked} for asked in GARBAGE]
    replies += [{"status": "OK", "push_s": 20.0}, ["no", "mapping"], "text", {}]  # type: ignore[list-item]
    left = iter(replies)

    async def daskscope(**_: Any) -> Any:
        return next(left)

    async def push_all() -> list[tuple[bool, float]]:
        worker = SimpleNamespace(scheduler=SimpleNamespace(daskscope=daskscope), address="tcp://w", plugins={})
        one = Agent(worker, {"push_interval_s": 5.0})
        found = [(await one.push(whole=True), one.push_s) for _ in replies]
        assert one.is_running
        one.close()
        return found

    monkeypatch.setattr(agent, "Probes", Probes)
    # A reply that is no mapping changes nothing.
    expected = [*[(True, 5.0)] * len(GARBAGE), (True, 20.0), (True, 20.0), (True, 20.0), (True, 5.0)]
    assert asyncio.run(push_all()) == expected
