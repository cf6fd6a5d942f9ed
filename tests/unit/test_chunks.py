"""The chunks of coffea and uproot, with packages of the same shape: four functions are wrapped, and only while somebody listens."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from daskscope.collector.aliases import Aliases
from daskscope.collector.worker import chunks
from daskscope.collector.worker.chunks import MAX_CHUNKS, ChunkLog, hook, without_credentials

SOURCES = {
    "coffea/__init__.py": "",
    "coffea/nanoevents/__init__.py": "",
    "coffea/nanoevents/factory.py": """
class NanoEventsFactory:
    @classmethod
    def from_root(cls, file, *, treepath="Events", entry_start=None, entry_stop=None, metadata=None, access_log=None):
        made = cls()
        made.access_log = access_log
        return made

    def events(self):
        return self
""",
    "uproot/__init__.py": "",
    "uproot/reading.py": """
class Source:
    def __init__(self):
        self.num_requested_bytes, self.num_requests = 0, 0

class File:
    def __init__(self, path):
        self.file_path, self.source = path, Source()

class ReadOnlyDirectory:
    def __init__(self, path):
        self._file = File(path)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._file.source = None
        return None
""",
    "uproot/_dask.py": """
class UprootReadMixin:
    common_keys = frozenset(("b", "a"))

    def read_tree(self, tree, start, stop):
        return "events", tree.counters
""",
}
MODULES = ("coffea.nanoevents.factory", "uproot.reading", "uproot._dask")


class Installed:
    """The modules of the made-up packages, imported when they are asked for."""

    def __getattr__(self, name: str) -> Any:
        path = {"factory": MODULES[0], "reading": MODULES[1], "dask": MODULES[2]}[name]
        return importlib.import_module(path)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installed]:
    for name, text in SOURCES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = {name for name in sys.modules if name.split(".")[0] in ("coffea", "uproot")}
    assert before == set(), "the packages of this test hide the real ones"
    yield Installed()
    for name in [name for name in sys.modules if name.split(".")[0] in ("coffea", "uproot")]:
        del sys.modules[name]


class Worker(SimpleNamespace):
    """A worker whose current thread executes a task."""

    def __init__(self, key: str | None = "Dimuon-1") -> None:
        super().__init__(active_threads={} if key is None else {threading.get_ident(): key})


@pytest.fixture
def worker() -> Worker:
    return Worker()


@pytest.fixture
def log(worker: Worker) -> Iterator[ChunkLog]:
    log = ChunkLog(worker, clock=lambda: 12.5, files=True)
    hook.add(log)
    yield log
    hook.remove(log)


def process_chunk(
    installed: Installed, *, path: str = "a.root", inside: Any = None, start: int = 0, stop: int = 100
) -> None:
    """Do what coffea does with a chunk."""
    with installed.reading.ReadOnlyDirectory(path) as file:
        log: list[Any] = []
        metadata = {"dataset": "ttbar", "filename": path, "secret": "s"}
        factory = installed.factory.NanoEventsFactory.from_root(
            file, entry_start=start, entry_stop=stop, metadata=metadata, access_log=log
        )
        factory.events()
        file._file.source.num_requested_bytes, file._file.source.num_requests = 4_000, 3
        log += ["nMuon", SimpleNamespace(branch="Muon_pt"), SimpleNamespace(branch="Muon_pt")]
        if inside is not None:
            inside()


def rows(log: ChunkLog) -> list[dict[str, Any]]:
    columns = log.drain("tcp://w")
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


TIMES = ("open_us", "open_cpu_us", "process_us", "process_cpu_us", "stalled_us")


def without_times(row: dict[str, Any]) -> dict[str, Any]:
    assert all(row[name] >= 0 for name in TIMES[:4])
    return {name: value for name, value in row.items() if name not in TIMES}


WHOLE = {
    "time_us": 12_500_000,
    "key": "Dimuon-1",
    "worker": "tcp://w",
    "kind": "process",
    "dataset": "ttbar",
    "file": "a.root",
    "file_id": Aliases().digest("a.root"),
    "entry_start": 0,
    "entry_stop": 100,
    "bytes_read": 4_000,
    "requests": 3,
    "columns": ("Muon_pt", "nMuon"),
    "failed": 0,
}


def test_a_chunk_is_recorded_with_its_events_bytes_and_columns(installed: Installed, log: ChunkLog) -> None:
    process_chunk(installed)
    (row,) = rows(log)
    assert without_times(row) == WHOLE
    assert rows(log) == []


def test_modules_that_were_imported_before_are_wrapped_too(installed: Installed, worker: Worker) -> None:
    process_chunk(installed)
    log = ChunkLog(worker, clock=lambda: 12.5, files=True)
    hook.add(log)
    process_chunk(installed)
    hook.remove(log)
    assert [without_times(row) for row in rows(log)] == [WHOLE]


def test_a_module_that_is_still_being_imported_is_wrapped_at_the_next_drain(
    installed: Installed, worker: Worker
) -> None:
    factory = installed.factory.NanoEventsFactory
    del installed.factory.NanoEventsFactory
    log = ChunkLog(worker, clock=lambda: 12.5)
    hook.add(log)
    installed.factory.NanoEventsFactory = factory
    assert rows(log) == []
    process_chunk(installed)
    hook.remove(log)
    assert [row["kind"] for row in rows(log)] == ["process"]


def test_nothing_stays_wrapped_after_the_last_log_is_removed(installed: Installed, worker: Worker) -> None:
    finders = list(sys.meta_path)
    first, second = (ChunkLog(worker, clock=lambda: 12.5) for _ in range(2))
    hook.add(first)
    hook.add(second)
    classes = [
        installed.factory.NanoEventsFactory,
        installed.reading.ReadOnlyDirectory,
        installed.dask.UprootReadMixin,
    ]
    hook.remove(first)
    assert [cls.__dict__[name].__module__ for cls, name in zip(classes[1:], ("__exit__", "read_tree"))] == list(
        MODULES[1:]
    )
    assert hasattr(classes[1].__exit__, "__wrapped__")
    hook.remove(second)
    assert sys.meta_path == finders
    for cls, names in zip(classes, (("from_root", "events"), ("__exit__",), ("read_tree",)), strict=True):
        assert not any(hasattr(getattr(cls, name), "__wrapped__") for name in names)
    assert all("exec_module" not in vars(sys.modules[name].__spec__.loader) for name in MODULES)  # type: ignore[union-attr]


def test_a_wrapper_of_other_code_is_left_in_place(installed: Installed, worker: Worker) -> None:
    log = ChunkLog(worker, clock=lambda: 12.5)
    hook.add(log)
    cls = installed.reading.ReadOnlyDirectory
    ours = cls.__exit__
    cls.__exit__ = theirs = lambda self, *exception: ours(self, *exception)
    hook.remove(log)
    assert cls.__exit__ is theirs
    process_chunk(installed)
    assert rows(log) == []


def test_a_file_that_the_user_opens_inside_process_is_not_the_chunk(installed: Installed, log: ChunkLog) -> None:
    def inside() -> None:
        with installed.reading.ReadOnlyDirectory("corrections.root") as other:
            other._file.source.num_requested_bytes = 7

    process_chunk(installed, inside=inside)
    opened, chunk = rows(log)
    assert (opened["kind"], opened["file"], opened["bytes_read"], opened["process_us"]) == (
        "open",
        "corrections.root",
        7,
        -1,
    )
    assert without_times(chunk) == WHOLE


def test_events_that_process_makes_of_another_file_do_not_replace_the_chunk(
    installed: Installed, log: ChunkLog
) -> None:
    def inside() -> None:
        other = installed.reading.ReadOnlyDirectory("other.root")
        installed.factory.NanoEventsFactory.from_root(other, entry_start=5, entry_stop=6).events()

    process_chunk(installed, inside=inside)
    assert [without_times(row) for row in rows(log)] == [WHOLE]


def test_a_chunk_that_fails_is_recorded_and_its_exception_passes_through(installed: Installed, log: ChunkLog) -> None:
    def inside() -> None:
        raise ValueError("bad chunk")

    with pytest.raises(ValueError, match="bad chunk"):
        process_chunk(installed, inside=inside)
    (row,) = rows(log)
    assert without_times(row) == {**WHOLE, "failed": 1}


def test_code_outside_of_a_task_is_not_recorded(installed: Installed) -> None:
    log = ChunkLog(Worker(None), clock=lambda: 12.5)
    hook.add(log)
    process_chunk(installed)
    hook.remove(log)
    assert rows(log) == []


def test_workers_in_one_process_get_their_own_chunks(installed: Installed) -> None:
    workers = [Worker(None), Worker("Dimuon-2")]
    logs = [ChunkLog(worker, clock=lambda: 12.5) for worker in workers]
    for log in logs:
        hook.add(log)
    process_chunk(installed)
    for log in logs:
        hook.remove(log)
    assert [[row["key"] for row in rows(log)] for log in logs] == [[], ["Dimuon-2"]]


def test_a_partition_of_dask_awkward_has_the_counters_of_uproot(installed: Installed, log: ChunkLog) -> None:
    tree = SimpleNamespace(
        file=SimpleNamespace(file_path="b.root"), counters=SimpleNamespace(num_requested_bytes=9, num_requests=2)
    )
    result = installed.dask.UprootReadMixin().read_tree(tree, 10, 20)
    assert result == ("events", tree.counters)
    (row,) = rows(log)
    assert row["open_us"] >= 0
    assert (row["process_us"], row["process_cpu_us"]) == (-1, -1)
    assert {name: row[name] for name in WHOLE} == {
        **WHOLE,
        "kind": "read",
        "dataset": "",
        "file": "b.root",
        "file_id": Aliases().digest("b.root"),
        "entry_start": 10,
        "entry_stop": 20,
        "bytes_read": 9,
        "requests": 2,
        "columns": ("a", "b"),
    }


def test_names_follow_the_switches(installed: Installed, worker: Worker) -> None:
    aliases = Aliases(keys=False, account="team")
    log = ChunkLog(worker, clock=lambda: 12.5, aliases=aliases)
    hook.add(log)
    process_chunk(installed, path="root://me:pass@host//store/a.root?sig=1")
    hook.remove(log)
    (row,) = rows(log)
    shown = {name: row[name] for name in ("key", "dataset", "columns", "file", "file_id")}
    assert shown == {
        "key": aliases.key("Dimuon-1"),
        "dataset": aliases.key("ttbar"),
        "columns": (aliases.key("Muon_pt"), aliases.key("nMuon")),
        "file": "",
        "file_id": aliases.digest("root://host//store/a.root"),
    }


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("/data/a.root", "/data/a.root"),
        ("root://host//store/a.root", "root://host//store/a.root"),
        ("https://me:pa@ss@host:80/a.root?X-Amz-Signature=1#x", "https://host:80/a.root"),
        ("https://[broken/a.root", ""),
    ],
)
def test_credentials_of_a_file_are_cut(file: str, expected: str) -> None:
    assert without_credentials(file) == expected


def test_chunks_above_the_limit_are_dropped_and_counted(worker: Worker) -> None:
    log = ChunkLog(worker, clock=lambda: 12.5)
    for number in range(MAX_CHUNKS + 3):
        log.add(chunks.Chunk(str(number), "open"))
    found = rows(log)
    assert (len(found), found[0]["key"], log.dropped) == (MAX_CHUNKS, "3", 3)


def test_values_of_unknown_types_are_not_recorded(installed: Installed, log: ChunkLog) -> None:
    with installed.reading.ReadOnlyDirectory("a.root") as file:
        made = installed.factory.NanoEventsFactory.from_root(
            file, entry_start="x", entry_stop=None, metadata=[("dataset", "ttbar")], access_log=7
        )
        made.events()
        file._file.source.num_requested_bytes = object()
    (row,) = rows(log)
    assert [row[name] for name in ("dataset", "entry_start", "entry_stop", "bytes_read", "columns")] == [
        "",
        -1,
        -1,
        -1,
        (),
    ]
