"""A clock that only moves when it is told to."""

from __future__ import annotations


class FakeClock:
    """Seconds since the epoch, as ``time.time`` gives them: call it to read it, ``sleep`` to move it on."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Move on at once."""
        self.now += seconds
