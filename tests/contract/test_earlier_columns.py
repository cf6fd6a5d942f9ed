"""Files that lack columns of today are read, compacted, reported and queried like any other; those columns are empty."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.helpers.archive import NOW, Archive, frames_of_file, problem_texts
from tests.helpers.every_table import GOLDEN, any_frames, rows_of

from daskscope.analysis.summary import extent
from daskscope.model.columns import TableDef
from daskscope.model.recording import Table
from daskscope.model.tables import TABLES
from daskscope.report.document import build
from daskscope.storage.runs import compaction
from daskscope.storage.runs.ingest import SECRET
from daskscope.storage.runs.parquet import from_parquet, to_parquet
from daskscope.storage.sql.files import SqlFilter, place_files
from daskscope.storage.sql.query import SqlLimits, parse_query, run_query
from daskscope.wire.decode import read_frame
from daskscope.wire.layout import FILE_MAGIC


def earlier(definition: TableDef, share: float) -> set[str]:
    """Return the columns that a table had in a made-up earlier version: the first of them, its time and its key."""
    count = max(1, int(share * len(definition.names)))
    return {*definition.names[:count], definition.time, *definition.key}


def written_with(columns: Collection[str], table: Table) -> bytes:
    """Return the Parquet file of a table with these columns only."""
    read = pq.read_table(pa.BufferReader(to_parquet(table)))
    buffer = io.BytesIO()
    pq.write_table(read.select([name for name in read.column_names if name in columns]), buffer)
    return buffer.getvalue()


def sample(name: str) -> Table:
    """Return a table with values of every type."""
    frames = (read_frame(frame) for frame in any_frames())
    return next(read.table() for read in frames if read.header.table == name)


@pytest.mark.parametrize("name", TABLES)
def test_a_file_that_lacks_any_one_column_reads_with_that_column_empty(name: str) -> None:
    table = sample(name)
    names = set(table.definition.names)
    whole = from_parquet(name, to_parquet(table))
    for missing in names:
        data = written_with(names - {missing}, table)
        found = from_parquet(name, data)
        assert not any(found[missing].tolist()), missing
        others = sorted(names - {missing})
        assert [found[n].tolist() for n in others] == [whole[n].tolist() for n in others]
        # What the file does not say rules no row out.
        assert from_parquet(name, data, window=(NOW - 1, NOW + 10**9)).rows == table.rows


@pytest.fixture(params=[0.0, 0.5, 0.9])
def old_writer(request: pytest.FixtureRequest) -> Iterator[pytest.MonkeyPatch]:
    """Compact as an earlier version of the schema would have, until this is undone."""

    def write(table: Table) -> bytes:
        return written_with(earlier(table.definition, request.param), table)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "to_parquet", write)
        yield patch


def golden_frames() -> list[bytes]:
    return list(frames_of_file(GOLDEN.read_bytes(), len(FILE_MAGIC)))


def test_a_run_of_an_earlier_version_is_read_continued_and_checked(
    archive: Archive, old_writer: pytest.MonkeyPatch
) -> None:
    frames = any_frames()
    half = len(frames) // 2
    archive.ingest(frames[:half])
    run = archive.run()["id"]
    archive.compact(run, over=False)

    first = archive.recording(run)
    assert (first.damage, first.missing_batches) == ("", 0)
    assert not any(held.missing for held in first.completeness.values())

    # A server of today continues the run and joins the files.
    old_writer.undo()
    archive.ingest(frames[half:])
    assert archive.compact(run) is not None
    whole = archive.recording(run)
    assert whole.damage == ""
    assert {name: held.missing for name, held in whole.completeness.items() if held.missing} == {}
    for name in TABLES:
        assert whole[name].rows >= first[name].rows > 0
        assert len(rows_of(whole[name])) == whole[name].rows
    assert problem_texts(archive) == {}


@pytest.mark.usefixtures("old_writer")
def test_a_run_of_an_earlier_version_has_a_report_and_answers_queries(sqlite_archive: Archive, tmp_path: Path) -> None:
    frames = golden_frames()
    cluster = read_frame(frames[0]).header.cluster
    sqlite_archive.ingest(frames)
    run = sqlite_archive.run(cluster)["id"]
    expected = {name: sqlite_archive.recording(run)[name].rows for name in TABLES}
    sqlite_archive.compact(run)

    recording = sqlite_archive.recording(run)
    assert recording.damage == ""
    assert {name: recording[name].rows for name in TABLES} == expected
    assert build(recording, *extent(recording))

    for name in sorted(set(TABLES) - SECRET):
        columns = ", ".join(f'max("{column}")' for column in TABLES[name].names)
        query = parse_query(f'SELECT count(*), {columns} FROM "{name}"')
        directory = tmp_path / name
        directory.mkdir()
        placed = place_files(sqlite_archive, sqlite_archive.account, query.tables, SqlFilter(), directory)
        found: Any = run_query(query, placed.directory, placed.files, SqlLimits())
        assert (found.rows[0][0], found.skipped) == (expected[name], ())
