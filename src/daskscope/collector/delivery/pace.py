"""Decide how often a recorder posts: often while a page of the cluster is open, seldom while the cluster is idle.

A post costs a server as much as two hundred rows, so recorders send few full bodies. Frames that wait for their turn are on disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable

#: Seconds between two posts: of a cluster that somebody watches or that was just registered, that works, and that is idle.
WATCHED_S, WORKING_S, IDLE_S = 1.0, 5.0, 30.0
#: The same while somebody has the live view of the cluster open: a post follows each hand-over of rows without another delay.
FOLLOWED_S = 0.03
#: Rows of a followed cluster are handed over as soon as ``HANDOVER_ROWS`` executions have ended, at most every ``HANDOVER_S``.
#: Fewer wait until ``FEW_S`` after the last hand-over: one costs the server 10 to 18 ms, however few rows it has. With ten a
#: second, 100 tasks per second took 17 % of a core.
HANDOVER_S, HANDOVER_ROWS, FEW_S = 0.1, 25, 0.4
#: The first seconds of a recorder count as watched: the user who registered the cluster opens its page.
FIRST_S = 10.0
#: A cluster counts as working for this long after its last work, so that the end of the work is sent within ``WORKING_S``.
LINGER_S = 10.0
#: Tables whose rows are sent without delay: failures, and workers that joined or left.
URGENT = frozenset({"exceptions", "workers"})


class Pace:
    """When the next post is due. The scheduler's event loop says whether the cluster works, replies whether it is watched."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.is_watched = True
        self.is_followed = False
        #: The longest silence after which the server still considers the cluster alive.
        self.max_silence_s = IDLE_S
        self._began = self._worked = clock()
        self._posted = float("-inf")
        self._is_urgent = False

    def note_work(self) -> None:
        """Note that the cluster has work at this moment."""
        self._worked = self.clock()

    def note_post(self) -> None:
        """Note that everything that was due is posted."""
        self._posted = self.clock()
        self._is_urgent = False

    def note_reply(self, header: str) -> None:
        """Follow the server's header, like ``watched=1, followed=0, silence=30``.

        A server that does not say who watches counts as watched: its pages must not become slower.
        """
        parts = (part.strip().partition("=") for part in header.split(","))
        given = {name: int(value[:9]) for name, _, value in parts if value.isascii() and value.isdigit()}
        self.is_watched = given.get("watched") != 0
        self.is_followed = given.get("followed") == 1
        self.max_silence_s = float(max(1, given.get("silence", IDLE_S)))

    def note_urgent(self) -> None:
        """Note that a row waits that must not wait."""
        self._is_urgent = True

    @property
    def is_idle(self) -> bool:
        """Whether the cluster has had no work for a while, and nobody watches it."""
        now = self.clock()
        return not self._is_lively(now) and now - self._worked > LINGER_S

    @property
    def interval_s(self) -> float:
        """Return the seconds between two posts at this moment."""
        now = self.clock()
        if self.is_followed:
            return FOLLOWED_S
        if self._is_urgent or self._is_lively(now):
            return WATCHED_S
        return min(IDLE_S if now - self._worked > LINGER_S else WORKING_S, self.max_silence_s)

    @staticmethod
    def is_handover_due(since_s: float, executions: int) -> bool:
        """Return whether a followed cluster hands over its rows, ``since_s`` after it last handed over executions."""
        return since_s >= (HANDOVER_S if executions >= HANDOVER_ROWS else FEW_S)

    @property
    def remaining_s(self) -> float:
        """Return the seconds until the next post is due; 0 if it is."""
        return max(0.0, self._posted + self.interval_s - self.clock())

    def _is_lively(self, now: float) -> bool:
        return self.is_watched or self.is_followed or now - self._began < FIRST_S


class NoPace(Pace):
    """Everything is due at once."""

    @property
    def remaining_s(self) -> float:
        return 0.0
