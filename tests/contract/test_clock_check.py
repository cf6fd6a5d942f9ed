"""Retention believes a clock that moves like the monotonic one, and a jump only after a day; on SQLite and on PostgreSQL."""

from __future__ import annotations

import time

import pytest
from tests.helpers.archive import DAY, Archive, numbered, task

from daskscope.storage.base import archive as archive_module
from daskscope.storage.base.archive import DAY_S, ClockCheck, ClockJump, time_of


class Clocks:
    """Both clocks of a server, as a test moves them."""

    def __init__(self, archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
        self.archive = archive
        self.seconds = 0.0
        monkeypatch.setattr(archive_module, "time_of", lambda _: archive.now_us)

    def check(self) -> ClockCheck:
        return ClockCheck(self.archive, lambda: self.seconds)

    def pass_time(self, *, days: float) -> None:
        self.seconds += days * DAY_S
        self.archive.now_us += int(days * DAY)

    def jump(self, *, days: float) -> None:
        self.archive.now_us += int(days * DAY)


@pytest.fixture
def clocks(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(archive, monkeypatch)


def test_time_that_passes_is_believed(clocks: Clocks) -> None:
    check = clocks.check()
    for days in (0.0, 0.04, 100.0, 1.0):
        clocks.pass_time(days=days)
        assert check.now_us() == clocks.archive.now_us


def test_a_jump_is_refused_until_the_clock_is_corrected(clocks: Clocks) -> None:
    check = clocks.check()
    check.now_us()
    clocks.jump(days=100)
    # A batch that arrives now has the wrong time too.
    clocks.archive.ingest(numbered([[task(0)]]))
    for _ in range(3):
        with pytest.raises(ClockJump, match=r"100.* ahead"):
            check.now_us()
        clocks.pass_time(days=0.1)
    clocks.jump(days=-100)
    assert check.now_us() == clocks.archive.now_us


def test_a_jump_is_believed_after_a_day(clocks: Clocks) -> None:
    check = clocks.check()
    check.now_us()
    clocks.jump(days=100)
    with pytest.raises(ClockJump):
        check.now_us()
    clocks.pass_time(days=0.99)
    with pytest.raises(ClockJump):
        check.now_us()
    clocks.pass_time(days=0.02)
    assert check.now_us() == clocks.archive.now_us
    assert check.now_us() == clocks.archive.now_us


def test_a_jump_while_the_server_was_off_is_noticed(clocks: Clocks) -> None:
    clocks.check().now_us()
    clocks.jump(days=0.5)
    assert clocks.check().now_us() == clocks.archive.now_us
    clocks.jump(days=100)
    with pytest.raises(ClockJump):
        clocks.check().now_us()


def test_the_first_pass_ever_compares_with_the_newest_batch(clocks: Clocks) -> None:
    clocks.archive.ingest(numbered([[task(0)]]))
    clocks.jump(days=100)
    with pytest.raises(ClockJump):
        clocks.check().now_us()


def test_an_empty_server_believes_its_clock(clocks: Clocks) -> None:
    assert clocks.check().now_us() == clocks.archive.now_us


def test_the_time_is_that_of_the_database(archive: Archive) -> None:
    with archive.read() as tx:
        found = time_of(tx)
    if archive.database.is_sqlite:
        assert found == archive.now_us
    else:
        # Its own clock, and not the one of the server, which is years ahead in tests.
        assert abs(found / 1e6 - time.time()) < DAY_S
