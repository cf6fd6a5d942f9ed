"""Makes Dask send the code around each call along with the work, while somebody records.

Dask does so where ``distributed.diagnostics.computations.nframes`` is not 0. The setting is the process's, so recordings
that overlap share one change of it, and the last of them takes it back.
"""

from __future__ import annotations

import threading
from importlib.metadata import version

import dask.config
import distributed

NFRAMES = "distributed.diagnostics.computations.nframes"


#: Versions before this one cannot take the code from a client in the scheduler's own process: the second call fails.
TAKES_CODE_IN_PROCESS = (2025, 3)


def can_send(client: distributed.Client) -> bool:
    """Whether the client's scheduler takes code without harm."""
    address = str(getattr(client.scheduler, "address", ""))
    return not address.startswith("inproc:") or _version() >= TAKES_CODE_IN_PROCESS


def _version() -> tuple[int, ...]:
    return tuple(int(part) for part in version("distributed").split(".")[:2] if part.isdigit())


class CallingCode:
    """Counts who needs the code."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._change: dask.config.set | None = None

    def acquire(self) -> None:
        with self._lock:
            self._users += 1
            # A user who chose a number of frames keeps it.
            if self._change is None and not dask.config.get(NFRAMES, 0):
                self._change = dask.config.set({NFRAMES: 1})

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users and self._change is not None:
                self._change.__exit__(None, None, None)
                self._change = None


calling_code = CallingCode()
