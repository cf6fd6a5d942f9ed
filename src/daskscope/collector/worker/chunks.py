"""Record the chunks of coffea and uproot: which events of which dataset a task processed, what it read, and how long it took.

Four functions of coffea and uproot are wrapped, once for the whole process, when they are imported or if they are imported
already. coffea itself is never imported here. The wrappers read the names below and nothing else: not the processor, not the
events, not a result, and no other metadata. The result and the exception of a wrapped function are passed through unchanged.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from ...model.tables import CHUNKS
from ..aliases import PLAIN, Aliases
from ..rows import Columns, empty
from .kernel import runqueue_us

#: Chunks between two pushes; the oldest are dropped and counted.
MAX_CHUNKS = 5_000
#: Columns recorded of one chunk. Files of the LHC experiments have about 2,000 branches.
MAX_COLUMNS = 5_000
UNKNOWN = -1


@dataclass
class Chunk:
    """One row of ``chunks``, except its worker; unknown numbers are -1."""

    key: str
    kind: str
    dataset: str = ""
    file: str = ""
    entry_start: int = UNKNOWN
    entry_stop: int = UNKNOWN
    bytes_read: int = UNKNOWN
    requests: int = UNKNOWN
    columns: tuple[str, ...] = ()
    open_us: int = UNKNOWN
    open_cpu_us: int = UNKNOWN
    process_us: int = UNKNOWN
    process_cpu_us: int = UNKNOWN
    stalled_us: int = UNKNOWN
    failed: int = 0
    time_us: int = 0


@dataclass(frozen=True)
class Reading:
    """The clocks of the current thread, in microseconds."""

    wall_us: int
    cpu_us: int

    @classmethod
    def now(cls) -> Reading:
        return cls(time.perf_counter_ns() // 1000, time.thread_time_ns() // 1000)


@dataclass
class Begun:
    """A chunk that a thread processes now."""

    chunk: Chunk
    #: coffea's list of the columns that were read; it grows while ``process`` runs.
    access_log: Any
    #: The file, to tell it from one that the user opens inside ``process``.
    file: Any
    began: Reading
    stalled_us: int | None
    events_made: Reading | None = field(default=None)


class ChunkLog:
    """The chunks of one worker since the last drain. ``clock`` returns seconds on the scheduler's clock."""

    def __init__(
        self, worker: Any, *, clock: Callable[[], float], files: bool = False, aliases: Aliases = PLAIN
    ) -> None:
        self.dropped = 0
        #: The chunk that each thread processes.
        self.begun: dict[int, Begun] = {}
        self._worker = weakref.ref(worker)
        self._clock = clock
        self._files = files
        self._aliases = aliases
        self._chunks: deque[Chunk] = deque()

    def current_key(self) -> str | None:
        """Return the key of the task that the current thread executes for this worker; None if it executes none."""
        worker = self._worker()
        key = None if worker is None else worker.active_threads.get(threading.get_ident())
        return None if key is None else str(key)

    def add(self, chunk: Chunk) -> None:
        chunk.time_us = round(self._clock() * 1e6)
        if len(self._chunks) >= MAX_CHUNKS:
            self._chunks.popleft()
            self.dropped += 1
        self._chunks.append(chunk)

    def drain(self, worker: str) -> Columns:
        hook.wrap_imported()
        rows = empty(CHUNKS)
        aliases = self._aliases
        while self._chunks:
            chunk = self._chunks.popleft()
            for name in CHUNKS.names:
                if name not in ("worker", "file_id"):
                    rows[name].append(getattr(chunk, name))
            rows["worker"].append(worker)
            file = without_credentials(chunk.file)
            rows["file_id"].append(aliases.digest(file) if file else "")
            rows["file"][-1] = file if self._files else ""
            if not aliases.keys:
                rows["key"][-1] = aliases.key(chunk.key)
                rows["dataset"][-1] = aliases.key(chunk.dataset) if chunk.dataset else ""
                rows["columns"][-1] = tuple(map(aliases.key, chunk.columns))
        return rows


class ChunkHook:
    """Wraps the functions of coffea and uproot, and adds each chunk to the log of its worker."""

    def __init__(self) -> None:
        self._logs: list[ChunkLog] = []
        self._lock = threading.Lock()
        self._finder: ImportFinder | None = None
        #: Of each wrapped function: its class, its name, the original and the wrapper.
        self._wrapped: dict[str, list[tuple[type, str, Any, Any]]] = {}

    def add(self, log: ChunkLog) -> None:
        with self._lock:
            self._logs = [*self._logs, log]
            if self._finder is None:
                self._finder = ImportFinder(self)
                sys.meta_path.insert(0, self._finder)
        self.wrap_imported()

    def remove(self, log: ChunkLog) -> None:
        """Remove a log, and restore all functions after the last one."""
        with self._lock:
            self._logs = [other for other in self._logs if other is not log]
            if self._logs:
                return
            for functions in self._wrapped.values():
                for owner, name, original, wrapper in functions:
                    # If other code has wrapped our wrapper since, it stays in place and only passes calls through.
                    if owner.__dict__.get(name) is wrapper:
                        setattr(owner, name, original)
            self._wrapped = {}
            if self._finder in sys.meta_path:
                sys.meta_path.remove(self._finder)
            self._finder = None

    def wrap_imported(self) -> None:
        """Wrap the functions of modules that are imported and not wrapped yet."""
        for name in WRAPPERS:
            module = sys.modules.get(name)
            if module is not None and name not in self._wrapped:
                self.wrap(module)

    def wrap(self, module: ModuleType) -> None:
        """Wrap the functions of a module. A class that does not exist in this version, or not yet, is left out."""
        with self._lock:
            if not self._logs or module.__name__ in self._wrapped:
                return
            class_name, functions = WRAPPERS[module.__name__]
            owner = getattr(module, class_name, None)
            if not isinstance(owner, type):
                return
            done = self._wrapped[module.__name__] = []
            for name, make in functions.items():
                original = owner.__dict__.get(name)
                if original is None:
                    continue
                function = getattr(original, "__func__", original)
                wrapper: Any = functools.wraps(function)(make(self, function))
                if isinstance(original, (classmethod, staticmethod)):
                    wrapper = type(original)(wrapper)
                setattr(owner, name, wrapper)
                done.append((owner, name, original, wrapper))

    def current(self) -> tuple[ChunkLog, str] | None:
        """Return the log and the key of the task that the current thread executes."""
        for log in self._logs:
            key = log.current_key()
            if key is not None:
                return log, key
        return None


Function = Callable[..., Any]


def _from_root(hook: ChunkHook, original: Function) -> Function:
    def from_root(cls: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            _begin(hook, args, kwargs)
        except Exception:  # noqa: BLE001 - the user's call continues in any case
            pass
        return original(cls, *args, **kwargs)

    return from_root


def _begin(hook: ChunkHook, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    found = hook.current()
    if found is None:
        return
    log, key = found
    ident = threading.get_ident()
    present = log.begun.get(ident)
    if present is not None and present.chunk.key == key:
        return  # process() reads another file; the chunk is the outer one
    metadata = kwargs.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    file = getattr(args[0] if args else kwargs.get("file"), "_file", None)
    chunk = Chunk(
        key,
        "process",
        dataset=_text(metadata.get("dataset")),
        file=_text(getattr(file, "file_path", "")) or _text(metadata.get("filename")),
        entry_start=_number(kwargs.get("entry_start")),
        entry_stop=_number(kwargs.get("entry_stop")),
    )
    log.begun[ident] = Begun(chunk, kwargs.get("access_log"), file, Reading.now(), runqueue_us())


def _events(hook: ChunkHook, original: Function) -> Function:
    def events(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        try:
            found = hook.current()
            begun = None if found is None else found[0].begun.get(threading.get_ident())
            if begun is not None and begun.events_made is None:
                begun.events_made = Reading.now()
        except Exception:  # noqa: BLE001 - the user's call continues in any case
            pass
        return result

    return events


def _exit(hook: ChunkHook, original: Function) -> Function:
    def __exit__(self: Any, *exception: Any) -> Any:
        try:
            _end(hook, self._file, failed=bool(exception) and exception[0] is not None)
        except Exception:  # noqa: BLE001 - the user's call continues in any case
            pass
        return original(self, *exception)

    return __exit__


def _end(hook: ChunkHook, file: Any, *, failed: bool) -> None:
    found = hook.current()
    if found is None:
        return
    log, key = found
    ident = threading.get_ident()
    begun = log.begun.get(ident)
    if begun is not None and begun.file is file:
        del log.begun[ident]
        chunk = begun.chunk
        _measure(begun)
    else:
        chunk = Chunk(key, "open", file=_text(file.file_path))
    source = file.source
    chunk.bytes_read, chunk.requests = _number(source.num_requested_bytes), _number(source.num_requests)
    chunk.failed = int(failed)
    log.add(chunk)


def _measure(begun: Begun) -> None:
    """Write the times of a chunk that ends now, and its columns."""
    now, made, chunk = Reading.now(), begun.events_made, begun.chunk
    stalled = runqueue_us()
    if stalled is not None and begun.stalled_us is not None:
        chunk.stalled_us = stalled - begun.stalled_us
    opened = now if made is None else made
    chunk.open_us, chunk.open_cpu_us = opened.wall_us - begun.began.wall_us, opened.cpu_us - begun.began.cpu_us
    if made is not None:
        chunk.process_us, chunk.process_cpu_us = now.wall_us - made.wall_us, now.cpu_us - made.cpu_us
        chunk.columns = _columns(begun.access_log)


def _columns(access_log: Any) -> tuple[str, ...]:
    """Return the names of the branches in coffea's access log. Newer versions log one entry per buffer of a branch."""
    if not isinstance(access_log, (list, set, tuple)):
        return ()
    return tuple(sorted({str(getattr(entry, "branch", entry)) for entry in list(access_log)})[:MAX_COLUMNS])


def _read_tree(hook: ChunkHook, original: Function) -> Function:
    def read_tree(self: Any, tree: Any, start: Any, stop: Any, *args: Any, **kwargs: Any) -> Any:
        began, stalled = Reading.now(), runqueue_us()
        result = original(self, tree, start, stop, *args, **kwargs)
        try:
            found = hook.current()
            if found is not None:
                log, key = found
                log.add(_read_chunk(self, tree, (start, stop), result, key, began, stalled))
        except Exception:  # noqa: BLE001 - the user's call continues in any case
            pass
        return result

    return read_tree


def _read_chunk(
    reader: Any, tree: Any, entries: tuple[Any, Any], result: Any, key: str, began: Reading, stalled: int | None
) -> Chunk:
    now, stalled_now = Reading.now(), runqueue_us()
    counters = result[1]
    return Chunk(
        key,
        "read",
        file=_text(tree.file.file_path),
        entry_start=_number(entries[0]),
        entry_stop=_number(entries[1]),
        bytes_read=_number(counters.num_requested_bytes),
        requests=_number(counters.num_requests),
        columns=tuple(sorted(map(str, reader.common_keys))[:MAX_COLUMNS]),
        open_us=now.wall_us - began.wall_us,
        open_cpu_us=now.cpu_us - began.cpu_us,
        stalled_us=UNKNOWN if stalled is None or stalled_now is None else stalled_now - stalled,
    )


#: By module: the class, and its functions with the makers of their wrappers.
WRAPPERS: dict[str, tuple[str, dict[str, Callable[[ChunkHook, Function], Function]]]] = {
    "coffea.nanoevents.factory": ("NanoEventsFactory", {"from_root": _from_root, "events": _events}),
    "uproot.reading": ("ReadOnlyDirectory", {"__exit__": _exit}),
    "uproot._dask": ("UprootReadMixin", {"read_tree": _read_tree}),
}


class ImportFinder(MetaPathFinder):
    """Calls the hook after one of its modules was imported; the other finders find the module."""

    def __init__(self, hook: ChunkHook) -> None:
        self._hook = hook

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname not in WRAPPERS:
            return None
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(fullname, path, target) if find is not None else None
            if spec is not None:
                self._watch(spec)
                return spec
        return None

    def _watch(self, spec: ModuleSpec) -> None:
        loader: Any = spec.loader
        original = getattr(loader, "exec_module", None)
        if original is None:
            return

        def exec_module(module: ModuleType) -> None:
            vars(loader).pop("exec_module", None)
            original(module)
            try:
                self._hook.wrap(module)
            except Exception:  # noqa: BLE001 - the user's import continues in any case
                pass

        try:
            loader.exec_module = exec_module
        except AttributeError:  # a loader without attributes of its own: the next drain wraps the module
            pass


def without_credentials(file: str) -> str:
    """Return the path or URL of a file without user, password, query and fragment."""
    if "://" not in file:
        return file
    try:
        parts = urlsplit(file)
    except ValueError:
        return ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int:
    try:
        return UNKNOWN if value is None else int(value)
    except (TypeError, ValueError):
        return UNKNOWN


#: One per process, shared by the agents of all its workers.
hook = ChunkHook()
