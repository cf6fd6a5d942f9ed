"""The guard counts failures, logs each place once, and switches the collector off after too many."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from daskscope.collector.guard import MAX_FAILURES, MAX_PLACES, WINDOW_S, Guard, guarded, guarded_async, is_strict


@pytest.fixture(autouse=True)
def production(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASKSCOPE_STRICT", "0")


class FakeClock:
    """Replaces ``time.time`` and ``time.sleep``: call it to read the time, ``sleep`` to advance it."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Advance the clock without waiting."""
        self.now += seconds


class Host:
    """An object with guarded hooks, like the plugin."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.opened: list[str] = []
        self.guard = Guard(self.clock, self.opened.append)
        self.calls = 0

    @guarded
    def hook(self, error: BaseException | None = None) -> str:
        self.calls += 1
        if error is not None:
            raise error
        return "fine"

    @guarded
    def other(self) -> None:
        raise ValueError("other")

    @guarded_async
    async def closing(self) -> None:
        raise ValueError("closing")


class Mute(Exception):
    def __repr__(self) -> str:
        raise RuntimeError("no text")

    __str__ = __repr__


def test_a_hook_that_works_is_left_alone() -> None:
    host = Host()
    assert host.hook() == "fine"
    assert host.guard.failures == 0


def test_a_hook_that_fails_returns_nothing() -> None:
    host = Host()
    assert host.hook(ValueError("x")) is None
    assert (host.guard.failures, host.guard.is_open) == (1, False)


def test_a_coroutine_that_fails_returns_nothing() -> None:
    host = Host()
    assert asyncio.run(host.closing()) is None
    assert host.guard.failures == 1


def test_the_first_traceback_of_a_place_is_kept() -> None:
    host = Host()
    host.hook(ValueError("first"))
    host.hook(ValueError("second"))
    assert list(host.guard.first) == ["hook"]
    assert "ValueError: first" in host.guard.first["hook"]


def test_each_place_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    host = Host()
    for _ in range(5):
        host.hook(ValueError("x"))
        host.other()
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
    assert {record.args[0] for record in caplog.records if isinstance(record.args, tuple)} == {"hook", "other"}


def test_the_breaker_opens_after_twenty_failures_within_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    host = Host()
    for _ in range(MAX_FAILURES - 1):
        host.clock.sleep(WINDOW_S / MAX_FAILURES)
        host.hook(ValueError("x"))
    assert not host.guard.is_open
    host.hook(ValueError("x"))
    assert host.guard.is_open
    assert host.opened == ["hook"]
    assert len(caplog.records) == 2


def test_rare_failures_do_not_open_it() -> None:
    host = Host()
    for _ in range(10 * MAX_FAILURES):
        host.clock.sleep(WINDOW_S / (MAX_FAILURES - 2))
        host.hook(ValueError("x"))
    assert not host.guard.is_open


def test_an_open_breaker_does_not_call_the_hook() -> None:
    host = Host()
    for _ in range(MAX_FAILURES + 30):
        host.hook(ValueError("x"))
    assert host.calls == MAX_FAILURES
    assert host.opened == ["hook"]


def test_switching_off_may_fail_too() -> None:
    def broken(place: str) -> None:
        raise RuntimeError(place)

    host = Host()
    host.guard.on_open = broken
    for _ in range(MAX_FAILURES):
        assert host.hook(ValueError("x")) is None
    assert host.guard.is_open
    assert "RuntimeError" in host.guard.first["switching off"]


def test_an_exception_without_a_text_is_caught() -> None:
    host = Host()
    assert host.hook(Mute()) is None
    assert host.guard.failures == 1


def test_the_number_of_places_is_limited() -> None:
    host = Host()
    host.guard.clock = lambda: next(times)
    times = iter(range(0, 10**9, 1000))
    for number in range(3 * MAX_PLACES):
        host.guard.caught(f"place {number}", ValueError("x"))
    assert len(host.guard.first) == MAX_PLACES
    assert host.guard.failures == 3 * MAX_PLACES


def test_strict_mode_raises_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASKSCOPE_STRICT", "1")
    host = Host()
    with pytest.raises(ValueError, match="mine"):
        host.hook(ValueError("mine"))


@pytest.mark.parametrize(
    ("environ", "expected"), [({}, False), ({"DASKSCOPE_STRICT": "0"}, False), ({"DASKSCOPE_STRICT": "1"}, True)]
)
def test_strict_mode_must_be_requested_even_under_pytest(
    environ: dict[str, str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DASKSCOPE_STRICT")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert is_strict() is expected


def test_base_exceptions_pass() -> None:
    host: Any = Host()
    with pytest.raises(KeyboardInterrupt):
        host.hook(KeyboardInterrupt())
