"""Hostile queries, through the real process with real limits: none leaves the recorded tables, and all end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
from tests.helpers.sql_corpus import CORPUS, Outcome

from daskscope.server.processes import sql as process_module
from daskscope.server.processes.child import ChildProcesses
from daskscope.server.processes.sql import TOO_MUCH, SqlProcess, SqlReply
from daskscope.storage.runs.parquet import to_parquet
from daskscope.storage.sql.check import SqlError
from daskscope.storage.sql.query import SqlFiles, SqlLimits
from daskscope.testing import make_recording

LIMITS = SqlLimits(seconds=0.5, memory_nbytes=64 * 1024 * 1024, rows=100, nbytes=1024 * 1024)
#: Parts of paths and of Python's and DuckDB's stack traces.
LEAKS = ("Traceback", "Stack Trace", ".py", ".parquet", "place=", "root:")
#: Parts of the messages of queries that used up their memory or time, or ended the process.
EXHAUSTED = ("memory", "longer than", TOO_MUCH)


@dataclass
class Asker:
    """Asks one process until a query ends it, and then the next."""

    directory: Path
    files: SqlFiles
    processes: ChildProcesses = field(default_factory=ChildProcesses)
    _context: AbstractContextManager[SqlProcess] | None = None
    _process: SqlProcess | None = None

    def ask(self, query: str) -> tuple[Outcome, SqlReply | str]:
        """Return what became of a query, and its result or message."""
        if self._process is None:
            self._context = process_module.sql_process(self.processes, self.directory, LIMITS)
            self._process = self._context.__enter__()
        outcome: Outcome = "refused"
        try:
            self._process.tables_of(query)
            outcome = "error"
            return "bounded", self._process.run(self.directory, self.files)
        except SqlError as error:
            if any(word in str(error) for word in EXHAUSTED):
                # Too little memory may be left for the next query. After other errors, a new process would be 0.4 s of CPU time.
                self.close()
            return outcome, str(error)

    def close(self) -> None:
        if self._context is not None:
            self._context.__exit__(None, None, None)
        self._context = self._process = None


@pytest.fixture(scope="module")
def asker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    directory, files = tmp_path_factory.mktemp("corpus"), SqlFiles()
    for table in ("tasks", "samples"):
        path = directory / files.add(table, "one")
        path.parent.mkdir(parents=True)
        path.write_bytes(to_parquet(make_recording({table: [{"worker": "w"}]})[table]))
    asker = Asker(directory, files)
    with pytest.MonkeyPatch.context() as patch:
        # One process for many queries.
        patch.setattr(process_module, "START_S", 60.0)
        yield asker
    asker.close()


def _name(case: tuple[str, Outcome]) -> str:
    return f"{case[1]}-{case[0][:60]}"


@pytest.mark.parametrize("case", CORPUS, ids=_name)
def test_a_hostile_query_is_refused_or_ends(asker: Asker, case: tuple[str, Outcome]) -> None:
    query, expected = case
    before = sorted(asker.directory.rglob("*"))
    outcome, found = asker.ask(query)
    assert outcome == expected or expected == "bounded", found
    text = found if isinstance(found, str) else repr(found.rows)
    assert str(asker.directory) not in text
    assert not [leak for leak in LEAKS if leak in text and leak not in query], text
    assert sorted(asker.directory.rglob("*")) == before


def test_the_corpus_is_large_and_has_no_query_twice() -> None:
    assert len(CORPUS) >= 200
    assert len({query for query, _ in CORPUS}) == len(CORPUS)


def test_times_with_a_zone_are_results(asker: Asker) -> None:
    query = "select timestamptz '2026-01-02 03:04:05+01', [timestamptz '2026-01-02 03:04:05+00']"
    outcome, found = asker.ask(query)
    assert isinstance(found, SqlReply), found
    assert (outcome, msgspec.json.decode(found.rows)) == (
        "bounded",
        [["2026-01-02T02:04:05+00:00", ["2026-01-02T03:04:05+00:00"]]],
    )


def test_a_cluster_with_a_damaged_file_is_skipped(tmp_path: Path) -> None:
    files = SqlFiles()
    for cluster, rows in (("whole", 2), ("damaged", 3), ("missing", 4)):
        path = tmp_path / files.add("tasks", cluster)
        path.parent.mkdir(parents=True)
        data = to_parquet(make_recording({"tasks": [{"key": str(n)} for n in range(rows)]})["tasks"])
        path.write_bytes(data[:-9] if cluster == "damaged" else data)
    path.unlink()
    with process_module.sql_process(ChildProcesses(), tmp_path, SqlLimits()) as process:
        process.tables_of("select cluster, count(*) from tasks group by 1")
        found = process.run(tmp_path, files)
    assert (msgspec.json.decode(found.rows), found.skipped) == ([["whole", 2]], ("damaged", "missing"))
