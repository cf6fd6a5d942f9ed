"""Make Dask send the code around each call to the scheduler while a recording runs.

Dask does so if ``distributed.diagnostics.computations.nframes`` is not 0. Frames of libraries that call Dask for their users are
left out by ``ignore-modules``, which costs 8 µs per submission; each further frame would cost 70 to 100 µs. The settings are
global to the process, so overlapping recordings share one change of them, and the last of them reverts it.
"""

from __future__ import annotations

import functools
import threading
from importlib.metadata import version
from typing import Any

import dask.config
import distributed

from daskscope.model.libraries import module_patterns

NFRAMES = "distributed.diagnostics.computations.nframes"
IGNORED = "distributed.diagnostics.computations.ignore-modules"

#: Before this version, sending code to a scheduler in the same process fails at the second call.
MIN_IN_PROCESS_VERSION = (2025, 3)


def can_send(client: distributed.Client) -> bool:
    """Return whether the client can safely send code to its scheduler."""
    address = str(getattr(client.scheduler, "address", ""))
    return not address.startswith("inproc:") or _version() >= MIN_IN_PROCESS_VERSION


@functools.cache
def _version() -> tuple[int, ...]:
    # Once: the search goes over all of sys.path, to which distributed adds a directory per worker in this process.
    return tuple(int(part) for part in version("distributed").split(".")[:2] if part.isdigit())


def _changes() -> dict[str, Any]:
    changes: dict[str, Any] = {}
    # Keep a number of frames that the user chose.
    if not dask.config.get(NFRAMES, 0):
        changes[NFRAMES] = 1
    known = dask.config.get(IGNORED, None)
    # Dask refuses anything but a list at each submission.
    if isinstance(known, list):
        changes[IGNORED] = list(dict.fromkeys([*known, *module_patterns()]))
    return changes


class CallingCode:
    """Counts the recordings that need the code."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._change: dask.config.set | None = None

    def acquire(self) -> None:
        """Start sending code, unless another recording already did."""
        with self._lock:
            self._users += 1
            if self._change is None:
                self._change = dask.config.set(_changes())

    def release(self) -> None:
        """Stop sending code after the last recording."""
        with self._lock:
            self._users -= 1
            if not self._users and self._change is not None:
                self._change.__exit__(None, None, None)
                self._change = None


calling_code = CallingCode()
