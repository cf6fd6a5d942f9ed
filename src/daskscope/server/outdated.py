"""Documents of earlier versions that readers were shown, to be built anew in the background."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

#: Maximum documents remembered. Readers of the others are shown the earlier version, and remember it again.
MAX_OUTDATED = 1_000

S = TypeVar("S", bound=Hashable)


class Outdated(Generic[S]):
    """A queue without duplicates, oldest first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subjects: dict[S, None] = {}

    def add(self, subject: S) -> None:
        with self._lock:
            if len(self._subjects) < MAX_OUTDATED:
                self._subjects.setdefault(subject)

    def pop(self) -> S | None:
        with self._lock:
            subject = next(iter(self._subjects), None)
            if subject is not None:
                del self._subjects[subject]
            return subject
