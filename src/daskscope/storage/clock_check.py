"""The clock of retention: the database's, and only while it is plausible.

A clock that jumps ahead by 100 days makes every run look old. So a pass compares the time with what it should be: the time of the
last pass plus the time that has passed since on the monotonic clock. If it is ahead by more than a day, nothing is deleted. A clock
that still says so a day later was right: the server was off, or its clock was wrong before.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import sqlalchemy as sa

from daskscope import units
from daskscope.storage import schema
from daskscope.storage.archive import Archive, Transaction
from daskscope.storage.database import StorageError, insert

DAY_S = 24 * 3600
#: How far the clock may be ahead, and how long it must stay so to be believed.
MAX_AHEAD_S = BELIEVED_AFTER_S = DAY_S
#: The fact with the time of the last pass of any server.
LAST_PASS = "last retention"


class ClockJump(StorageError):
    """The clock is far ahead of where it should be. The message can be shown to anyone."""


class ClockCheck:
    """Tells the time to the passes of one server."""

    def __init__(self, archive: Archive, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.archive = archive
        self.monotonic = monotonic
        #: The time of the last pass on both clocks: microseconds since the epoch, monotonic seconds.
        self._last: tuple[int, float] | None = None
        #: When the jump was noticed, on the monotonic clock; None while there is none.
        self._noticed: float | None = None

    def now_us(self) -> int:
        """Return the time of the database; raise ``ClockJump`` if it is implausible."""
        here = self.monotonic()
        with self.archive.write() as tx:
            now_us = time_of(tx)
            ahead_s = (now_us - self._expected_us(tx, here, now_us)) / 1e6
            if ahead_s > MAX_AHEAD_S:
                self._noticed = here if self._noticed is None else self._noticed
                left_s = BELIEVED_AFTER_S - (here - self._noticed)
                if left_s > 0:
                    raise ClockJump(
                        f"the clock is {units.duration(int(ahead_s * 1e6))} ahead of where it should be, so nothing is deleted. "
                        f"Correct the clock, or wait: deletion resumes in {units.duration(int(left_s * 1e6))}"
                    )
            self._noticed = None
            statement = insert(tx.connection, schema.facts).values(name=LAST_PASS, value=str(now_us))
            tx.execute(statement.on_conflict_do_update(index_elements=["name"], set_={"value": str(now_us)}))
        self._last = now_us, here
        return now_us

    def _expected_us(self, tx: Transaction, here: float, now_us: int) -> int:
        """Return what the time should be; before the first pass of this server, the time of the last event in the database."""
        if self._last is not None:
            wall_us, then = self._last
            return wall_us + int((here - then) * 1e6)
        facts, runs = schema.facts, schema.runs
        stored = tx.execute(sa.select(facts.c.value).where(facts.c.name == LAST_PASS)).scalar()
        if stored is not None:
            return int(stored)
        return int(tx.execute(sa.select(sa.func.max(runs.c.received_us))).scalar() or now_us)


def time_of(tx: Transaction) -> int:
    """Return the time in microseconds: PostgreSQL's, which all servers share, or that of the only server on SQLite."""
    if tx.connection.dialect.name == "sqlite":
        return tx.now_us
    return int(tx.execute(sa.text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")).scalar_one())
