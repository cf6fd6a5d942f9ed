"""Keep errors of the collector away from its host.

A hook that raises makes the scheduler's state machine 14 times slower, because every exception is logged with its traceback,
five times per task. So every hook catches its own exceptions and reports them here. After too many within a short time the
breaker opens and the collector removes itself. Each failing place is logged once, not once per failure.

With ``DASKSCOPE_STRICT=1`` exceptions are raised again, so that the guard does not hide bugs from daskscope's own tests.
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
MAX_FAILURES = 20
WINDOW_S = 60.0
#: Places that are logged and kept with a traceback; failures at further places are only counted.
MAX_PLACES = 50

F = TypeVar("F", bound=Callable[..., Any])
A = TypeVar("A", bound=Callable[..., Awaitable[Any]])


def is_strict() -> bool:
    """Return whether failures are raised again, as in daskscope's own tests."""
    return os.environ.get("DASKSCOPE_STRICT") == "1"


class Guard:
    """Counts failures, and opens the breaker once there are too many."""

    def __init__(self, clock: Callable[[], float], on_open: Callable[[str], None]) -> None:
        self.clock = clock
        self.on_open = on_open
        self.is_open = False
        self.failures = 0
        self.first: dict[str, str] = {}
        self._recent: deque[float] = deque(maxlen=MAX_FAILURES)

    def caught(self, place: str, error: BaseException) -> None:
        """Count and log a failure. Never raises, except in strict mode."""
        self.failures += 1
        if place not in self.first and len(self.first) < MAX_PLACES:
            self.first[place] = _traceback(error)
            logger.warning(
                "daskscope: recording %s failed (%s). The computation is not affected; part of the recording is missing.",
                place,
                _text(error),
            )
        now = self.clock()
        self._recent.append(now)
        if not self.is_open and len(self._recent) == MAX_FAILURES and now - self._recent[0] <= WINDOW_S:
            self.is_open = True
            logger.warning(
                "daskscope: %d failures within a minute. Recording is switched off on this scheduler.", MAX_FAILURES
            )
            try:
                self.on_open(place)
            except Exception as failure:  # noqa: BLE001 (removing the collector must not harm the host either)
                self.first["switching off"] = _traceback(failure)
        if is_strict():
            raise error


def guarded(hook: F) -> F:
    """Make a method of an object with a ``guard`` catch its exceptions, and do nothing once the breaker is open."""

    @functools.wraps(hook)
    def harmless(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.guard.is_open:
            return None
        try:
            return hook(self, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 (this is the guard)
            self.guard.caught(hook.__name__, error)
            return None

    return harmless  # type: ignore[return-value]


def guarded_async(hook: A) -> A:
    """Make a coroutine method of an object with a ``guard`` catch its exceptions."""

    @functools.wraps(hook)
    async def harmless(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return await hook(self, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 (this is the guard)
            self.guard.caught(hook.__name__, error)
            return None

    return harmless  # type: ignore[return-value]


def _text(error: BaseException) -> str:
    """Return a short text of any exception, even if its ``repr`` raises."""
    try:
        return repr(error)[:200]
    except Exception:  # noqa: BLE001 (the ``__repr__`` of a user's exception may raise anything)
        return type(error).__name__


def _traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(type(error), error, error.__traceback__))[-4000:]
    except Exception:  # noqa: BLE001 (as above)
        return type(error).__name__
