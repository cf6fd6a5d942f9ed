"""Large values by name: loaded once however many ask, shared while in use, and kept for a while."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator


class Sized(Protocol):
    """A value with a size in memory."""

    @property
    def nbytes(self) -> int: ...


V = TypeVar("V", bound=Sized)


class OneAtATime:
    """Locks by name, for work that must not be done twice at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: A lock, and the number of threads that hold it or wait for it.
        self._locks: dict[Hashable, tuple[threading.Lock, int]] = {}

    @contextmanager
    def __call__(self, name: Hashable) -> Iterator[None]:
        with self._lock:
            lock, users = self._locks.get(name, (threading.Lock(), 0))
            self._locks[name] = lock, users + 1
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, users = self._locks[name]
                if users == 1:
                    del self._locks[name]
                else:
                    self._locks[name] = lock, users - 1


class Shared(Generic[V]):
    """Values that never change, by the path of their blob."""

    def __init__(self, max_nbytes: int) -> None:
        self.max_nbytes = max_nbytes
        self._lock = threading.Lock()
        #: Recently used values, up to the limit.
        self._kept: OrderedDict[str, V] = OrderedDict()
        self._nbytes = 0
        #: Every value that some request still uses.
        self._used: weakref.WeakValueDictionary[str, V] = weakref.WeakValueDictionary()
        self._loading = OneAtATime()

    def get(self, path: str) -> V | None:
        with self._lock:
            if path in self._kept:
                self._kept.move_to_end(path)
            return self._used.get(path)

    def put(self, path: str, value: V) -> None:
        with self._lock:
            self._used[path] = value
            if path in self._kept or value.nbytes > self.max_nbytes:
                return
            self._kept[path] = value
            self._nbytes += value.nbytes
            while self._nbytes > self.max_nbytes:
                self._nbytes -= self._kept.popitem(last=False)[1].nbytes

    def load(self, path: str, read: Callable[[], V]) -> V:
        """Return the value of a path. If several threads need it, one reads it."""
        known = self.get(path)
        if known is not None:
            return known
        with self._loading(path):
            known = self.get(path)
            if known is None:
                known = read()
                self.put(path, known)
        return known
