"""Nothing of ours may hurt the host.

A hook that raises makes the scheduler's state machine 14 times slower, because every exception is logged with its traceback,
five times a task. So every hook catches its own exceptions and reports them here; too many of them in a short time, and the
breaker opens: the collector takes itself out. Each place that fails is logged once, not once per failure.

With ``DASKSCOPE_STRICT=1`` exceptions are raised again, so that the guard never hides a bug of ours from our own tests.
"""

from __future__ import annotations

import functools
import logging
import os
import traceback
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

logger = logging.getLogger("daskscope")

#: This many failures within the window open the breaker.
LIMIT = 20
WINDOW_S = 60.0
#: Places that are told apart; more are counted only.
PLACES = 50

F = TypeVar("F", bound=Callable[..., Any])
A = TypeVar("A", bound=Callable[..., Awaitable[Any]])


def strict() -> bool:
    """Whether failures are raised again: in our own tests, which say so, and never in those of a user."""
    return os.environ.get("DASKSCOPE_STRICT") == "1"


class Guard:
    """Counts failures, opens once."""

    def __init__(self, clock: Callable[[], float], on_open: Callable[[str], None]) -> None:
        self.clock = clock
        self.on_open = on_open
        self.open = False
        self.failures = 0
        self.first: dict[str, str] = {}
        self._recent: deque[float] = deque(maxlen=LIMIT)

    def caught(self, place: str, error: BaseException) -> None:
        """Take note of a failure; never raises (but see ``strict``)."""
        self.failures += 1
        if place not in self.first and len(self.first) < PLACES:
            self.first[place] = _traceback(error)
            logger.warning(
                "daskscope: recording %s failed (%s). The computation is not affected; part of the recording is missing.",
                place,
                _text(error),
            )
        now = self.clock()
        self._recent.append(now)
        if not self.open and len(self._recent) == LIMIT and now - self._recent[0] <= WINDOW_S:
            self.open = True
            logger.warning(
                "daskscope: %d failures within a minute, recording is switched off on this scheduler.", LIMIT
            )
            try:
                self.on_open(place)
            except Exception as failure:  # noqa: BLE001 (taking ourselves out must not fail the host either)
                self.first["switching off"] = _traceback(failure)
        if strict():
            raise error


def guarded(hook: F) -> F:
    """Make a method of an object with a ``guard`` harmless."""

    @functools.wraps(hook)
    def harmless(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.guard.open:
            return None
        try:
            return hook(self, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 (this is the guard)
            self.guard.caught(hook.__name__, error)
            return None

    return harmless  # type: ignore[return-value]


def guarded_async(hook: A) -> A:
    """The same for a coroutine method."""

    @functools.wraps(hook)
    async def harmless(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return await hook(self, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 (this is the guard)
            self.guard.caught(hook.__name__, error)
            return None

    return harmless  # type: ignore[return-value]


def _text(error: BaseException) -> str:
    """A short text, also of an exception whose ``repr`` raises."""
    try:
        return repr(error)[:200]
    except Exception:  # noqa: BLE001 (an exception class of the user's may do anything here)
        return type(error).__name__


def _traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(type(error), error, error.__traceback__))[-4000:]
    except Exception:  # noqa: BLE001 (as above)
        return type(error).__name__
