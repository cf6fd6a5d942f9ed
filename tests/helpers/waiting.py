"""Wait for other threads and processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

#: Seconds between two looks at a condition: the first ones soon, because most conditions hold within milliseconds.
FIRST_S, LONGEST_S = 0.005, 0.05


def until(condition: Callable[[], Any], what: str = "it", seconds: float = 30.0) -> None:
    """Wait until a condition holds; raise ``AssertionError`` if it does not in time."""
    deadline, pause = time.monotonic() + seconds, FIRST_S
    while not condition():
        if time.monotonic() >= deadline:
            raise AssertionError(f"{what} did not happen within {seconds:.0f} s")
        time.sleep(pause)
        pause = min(1.3 * pause, LONGEST_S)
