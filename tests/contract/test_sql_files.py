"""A query of an account reads its own rows, compacted or not, on every database and store."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.archive import DAY, Archive, frame, numbered, task

from daskscope.storage.base.blobs import BlobStore
from daskscope.storage.runs.read import files_of
from daskscope.storage.sql import files
from daskscope.storage.sql.check import SqlError
from daskscope.storage.sql.files import SqlFilter, place_files
from daskscope.storage.sql.query import SqlLimits, parse_query, run_query
from daskscope.wire.decode import Frame

COUNT = "select cluster, count(*) from tasks group by 1 order by 1"


def ask(
    archive: Archive, query: str, directory: Path, wanted: SqlFilter | None = None, account: int = 0
) -> list[object]:
    directory.mkdir()
    chosen = wanted or SqlFilter()
    checked = parse_query(query)
    placed = place_files(archive, account or archive.account, checked.tables, chosen, directory)
    return [placed.runs, placed.all_runs, run_query(checked, placed.directory, placed.files, SqlLimits()).rows]


def send(archive: Archive, cluster: str, *parts: int, account: int = 0) -> None:
    """Store batches with these numbers of tasks."""
    rows = [[task(100 * place + n) for n in range(count)] for place, count in enumerate(parts)]
    archive.ingest(numbered(rows, cluster=cluster), account=account)


def test_rows_in_files_and_in_the_buffer_are_read_together(archive: Archive, tmp_path: Path) -> None:
    send(archive, "a", 3, 2)
    archive.compact(archive.run("a")["id"], over=False)
    archive.ingest([frame("tasks", [task(900)], 2, cluster="a", kept=6)])
    send(archive, "b", 4)
    assert ask(archive, COUNT, tmp_path / "q") == [2, 2, [["a", 6], ["b", 4]]]


def test_rows_in_the_buffer_are_decoded_by_the_query_alone(
    sqlite_archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(sqlite_archive, "a", 3)
    with monkeypatch.context() as placing:
        # A few bytes may have very many rows, so placing them must not decode any.
        placing.setattr(Frame, "table", lambda _: pytest.fail("decoded"))
        checked = parse_query(COUNT)
        (tmp_path / "q").mkdir()
        placed = place_files(sqlite_archive, sqlite_archive.account, checked.tables, SqlFilter(), tmp_path / "q")
    assert placed.is_complete
    assert run_query(checked, placed.directory, placed.files, SqlLimits()).rows == [["a", 3]]


def test_an_account_does_not_see_the_rows_of_another(archive: Archive, tmp_path: Path) -> None:
    other = archive.new_account("other")
    send(archive, "a", 3)
    send(archive, "a", 5, account=other)
    send(archive, "b", 7, account=other)
    archive.compact(archive.run("a")["id"])
    assert ask(archive, COUNT, tmp_path / "mine") == [1, 1, [["a", 3]]]
    assert ask(archive, COUNT, tmp_path / "other", account=other) == [2, 2, [["a", 5], ["b", 7]]]
    assert ask(archive, COUNT, tmp_path / "named", SqlFilter(cluster="b")) == [0, 0, []]


def test_a_query_of_one_cluster_or_of_some_days(archive: Archive, tmp_path: Path) -> None:
    send(archive, "old", 1)
    archive.now_us += 3 * DAY
    send(archive, "new", 2)
    assert ask(archive, COUNT, tmp_path / "one", SqlFilter(cluster="old")) == [1, 1, [["old", 1]]]
    assert ask(archive, COUNT, tmp_path / "days", SqlFilter(since_us=archive.now_us - DAY)) == [1, 1, [["new", 2]]]


def test_of_too_many_clusters_the_newest_are_read(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_RUNS", 1)
    send(archive, "old", 1)
    archive.now_us += DAY
    send(archive, "new", 2)
    assert ask(archive, COUNT, tmp_path / "q") == [1, 2, [["new", 2]]]


@pytest.mark.parametrize("table", ["exceptions", "logs", "events", "computations", "windows"])
def test_encrypted_tables_are_refused(table: str, sqlite_archive: Archive, tmp_path: Path) -> None:
    with pytest.raises(SqlError, match="stores encrypted"):
        ask(sqlite_archive, f"select * from {table}", tmp_path / "q")


def test_too_many_new_rows_are_refused(
    sqlite_archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_BUFFERED", 10)
    send(sqlite_archive, "a", 3)
    with pytest.raises(SqlError, match="Try again soon"):
        ask(sqlite_archive, COUNT, tmp_path / "q")


def test_files_of_every_store(sqlite_archive: Archive, blob_store: BlobStore, tmp_path: Path) -> None:
    archive = sqlite_archive.with_store(blob_store)
    send(archive, "a/ü", 3)
    archive.compact(archive.run("a/ü")["id"])
    assert ask(archive, COUNT, tmp_path / "q") == [1, 1, [["a/ü", 3]]]


def test_a_cluster_with_a_missing_file_is_skipped_with_all_of_its_rows(
    sqlite_archive: Archive, blob_store: BlobStore, tmp_path: Path
) -> None:
    archive = sqlite_archive.with_store(blob_store)
    for cluster, count in (("whole", 2), ("broken", 3)):
        send(archive, cluster, count)
        archive.compact(archive.run(cluster)["id"])
    archive.ingest([frame("tasks", [task(900)], cluster="broken", epoch=2)])
    with archive.read() as tx:
        (file,) = files_of(tx, archive.run("broken")["id"], ["tasks"])
    blob_store.delete(file.path)
    (tmp_path / "q").mkdir()
    checked = parse_query(COUNT)
    placed = place_files(archive, archive.account, checked.tables, SqlFilter(), tmp_path / "q")
    assert placed.missing == {file.path: "broken"}
    assert run_query(checked, placed.directory, placed.files, SqlLimits()).rows == [["whole", 2]]


def test_too_many_bytes_of_an_object_store_are_refused(
    sqlite_archive: Archive, tmp_path: Path, strong_s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.helpers import services

    from daskscope.storage.base.blobs import open_store

    for name, value in services.ACCESS.items():
        monkeypatch.setenv(name, value)
    archive = sqlite_archive.with_store(open_store(f"s3://{services.BUCKET}/{tmp_path.name}", endpoint=strong_s3))
    send(archive, "a", 3)
    archive.compact(archive.run("a")["id"])
    monkeypatch.setattr(files, "MAX_DOWNLOAD", 10)
    with pytest.raises(SqlError, match="of files"):
        ask(archive, COUNT, tmp_path / "q")
