"""Wait for other threads and processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

#: Seconds between two looks at a condition: the first ones soon, because most conditions hold within milliseconds. After a second,
#: a look follows each twentieth of the time so far: many looks are requests, which take processor time from what is waited for.
FIRST_S, LONGEST_S, SHARE = 0.005, 0.05, 0.05


def until(condition: Callable[[], Any], what: str = "it", seconds: float = 90.0) -> None:
    """Wait until a condition holds; raise ``AssertionError`` if it does not in time."""
    start, pause = time.monotonic(), FIRST_S
    while not condition():
        waited = time.monotonic() - start
        if waited >= seconds:
            raise AssertionError(f"{what} did not happen within {seconds:.0f} s")
        time.sleep(pause)
        pause = min(1.3 * pause, max(LONGEST_S, SHARE * waited))
