"""A run reads the same before, during and after compaction to Parquet, and an interrupted compaction loses no data."""

from __future__ import annotations

import io
import math
import random
import sqlite3
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.helpers.archive import MINUTE, NOW, Archive, archive_paths, at, frame, frames_of_file, numbered, task
from tests.helpers.every_table import GOLDEN, any_frames, broken_keys, rows_of
from tests.helpers.samples import write_frames

from daskscope.errors import WireError
from daskscope.model.recording import Recording, Table
from daskscope.model.tables import TABLES
from daskscope.storage import schema
from daskscope.storage.base.blobs import BlobStore, LocalStore
from daskscope.storage.base.database import Database, StorageError
from daskscope.storage.runs import compaction
from daskscope.storage.runs.compaction import BUFFER_NBYTES, MAX_FILES, due
from daskscope.storage.runs.ingest import SECRET
from daskscope.storage.runs.parquet import from_parquet, to_parquet
from daskscope.storage.runs.read import Part
from daskscope.storage.runs.retention import ORPHAN_AGE_S, delete_replaced, orphans, stored_tasks, sweep
from daskscope.wire.decode import read_frame
from daskscope.wire.file import frames_of_table, read_recording
from daskscope.wire.layout import FILE_MAGIC


def assert_same(found: Recording, expected: Recording) -> None:
    assert {name: found[name].rows for name in TABLES} == {name: expected[name].rows for name in TABLES}
    for name in TABLES:
        assert rows_of(found[name]) == rows_of(expected[name]), name
    assert found.completeness == expected.completeness
    assert (found.damage, found.missing_batches) == (expected.damage, expected.missing_batches)


def recorded(frames: list[bytes], directory: Path) -> Recording:
    write_frames(directory / "expected.daskscope", frames)
    return read_recording(directory / "expected.daskscope")


# ---------------------------------------------------------------- the same rows in the buffer and in files


def test_a_run_reads_like_the_recording_before_during_and_after_compaction(archive: Archive, tmp_path: Path) -> None:
    frames = any_frames()
    expected = recorded(frames, tmp_path)
    half = len(frames) // 2
    archive.ingest(frames[:half])
    run = archive.run()["id"]
    archive.compact(run, over=False)
    archive.ingest(frames[half:])
    assert_same(archive.recording(run), expected)
    done = archive.compact(run)
    assert done is not None
    assert done.batches == len(frames) - half
    assert_same(archive.recording(run), expected)
    assert archive.run()["buffered_nbytes"] == 0
    assert {row["name"] for row in archive.rows(schema.files, "name", order=("id",))} == set(TABLES)
    assert archive.count(schema.files) == len(TABLES)
    assert archive.blobs() == archive_paths(archive)


def test_an_uncompacted_run_reads_like_the_recording(archive: Archive, tmp_path: Path) -> None:
    frames = any_frames()
    archive.ingest(frames)
    assert_same(archive.recording(archive.run()["id"]), recorded(frames, tmp_path))


def test_a_run_with_gaps_is_as_complete_as_its_recording(archive: Archive, tmp_path: Path) -> None:
    parts = [[task(n)] for n in range(10)]
    frames = [frame("tasks", part, n, kept=100 + n, dropped=7 + n) for n, part in enumerate(parts, 5)]
    del frames[4]
    del frames[6]
    archive.ingest(frames)
    assert_same(archive.recording(archive.run()["id"]), recorded(frames, tmp_path))
    archive.compact(archive.run()["id"])
    assert_same(archive.recording(archive.run()["id"]), recorded(frames, tmp_path))


def test_rows_dropped_by_the_recorder_are_reported(archive: Archive, tmp_path: Path) -> None:
    row = {"cluster": "c", "seen_us": NOW, "dropped": '{"samples": 5, "tasks": 2}'}
    frames = [frame("clusters", [row], 0), frame("tasks", [task(0)], 1, dropped=1)]
    archive.ingest(frames)
    expected = recorded(frames, tmp_path)
    assert expected.completeness["samples"].dropped == 5
    assert_same(archive.recording(archive.run()["id"]), expected)


def test_the_golden_recording_is_unchanged_but_for_lone_surrogates(sqlite_archive: Archive) -> None:
    frames = list(frames_of_file(GOLDEN.read_bytes(), len(FILE_MAGIC)))
    cluster = read_frame(frames[0]).header.cluster
    sqlite_archive.ingest(frames)
    run = sqlite_archive.run(cluster)["id"]
    expected = read_recording(GOLDEN)
    before = sqlite_archive.recording(run)
    for name in TABLES:
        assert repr(rows_of(before[name])) == repr(rows_of(expected[name])), name
    sqlite_archive.compact(run)
    after = sqlite_archive.recording(run)
    for name in TABLES:
        cleaned = sorted(repr(row).replace("\\ud800", "?") for row in rows_of(expected[name]))
        assert sorted(map(repr, rows_of(after[name]))) == cleaned, name


def test_frames_encoded_from_a_stored_run_match_it(sqlite_archive: Archive) -> None:
    """An uploaded window is encoded from tables."""
    frames = any_frames()
    sqlite_archive.ingest(frames)
    run = sqlite_archive.run()["id"]
    sqlite_archive.compact(run)
    for name, table in sqlite_archive.recording(run).tables.items():
        again = [
            read_frame(part) for part in frames_of_table(table, cluster="x", epoch=3, sequence=10, kept=99, dropped=4)
        ]
        assert [part.header.sequence for part in again] == [10]
        assert (again[-1].header.kept, again[-1].header.dropped) == (99, 4)
        assert rows_of(again[0].table()) == rows_of(table), name


def test_a_frame_read_without_keys_has_all_other_columns() -> None:
    keys = ["('x-1', 1)", "('x-1', 2)", "inc-0123456789abcdef0123456789abcdef", "any text", "('x-1', 3, 4)"]
    for chosen in ([keys[0], keys[1]], [keys[2]], [keys[3]], keys):
        rows = [task(n, key=key, group="x-1" if key[0] == "(" else "inc") for n, key in enumerate(chosen)]
        read = read_frame(frame("tasks", rows))
        whole, without = read.table(), read.without_keys()
        assert without["key"].tolist() == [""] * len(rows)
        names = [name for name in TABLES["tasks"].names if name != "key"]
        assert [whole[name].tolist() for name in names] == [without[name].tolist() for name in names]
        few = ("prefix", "start_us", "interval_action")
        assert {name: values.tolist() for name, values in read.only(few).items()} == {
            name: whole[name].tolist() for name in few
        }


def test_runs_can_be_compacted_to_any_store(sqlite_url: str, blob_store: BlobStore, tmp_path: Path) -> None:
    archive = Archive(Database(sqlite_url), blob_store)
    frames = any_frames()
    archive.ingest(frames[:20])
    run = archive.run()["id"]
    archive.compact(run, over=False)
    archive.ingest(frames[20:])
    archive.compact(run)
    assert_same(archive.recording(run), recorded(frames, tmp_path))
    assert archive.blobs() == archive_paths(archive)
    archive.database.close()


def test_replaced_files_are_deleted_after_a_while(archive: Archive) -> None:
    """A catalog restored from a backup of the time before names them."""
    archive.ingest([frame("tasks", [task(0)], 0)])
    run = archive.run()["id"]
    archive.compact(run, over=False)
    (backup,) = archive.rows(schema.files)
    archive.ingest([frame("tasks", [task(1)], 1)])
    archive.compact(run)
    assert [row["path"] for row in archive.rows(schema.replaced_files)] == [backup["path"]]
    (due_us,) = [row["delete_us"] for row in archive.rows(schema.replaced_files)]
    assert sweep(archive, due_us).files == 0

    # The time of the pass counts, and not the clock of this server.
    archive.now_us = due_us + archive.keep_replaced_us
    assert delete_replaced(archive, due_us - 1) == 0
    assert archive.store.get(backup["path"])
    assert delete_replaced(archive, due_us) == 1
    assert archive.blobs() == archive_paths(archive)
    assert archive.count(schema.replaced_files) == 0


def test_a_restored_catalog_reads_the_rows_it_knows(sqlite_archive: Archive, tmp_path: Path) -> None:
    archive = sqlite_archive
    archive.ingest([frame("tasks", [task(n)], n) for n in range(3)])
    run = archive.run()["id"]
    archive.compact(run, over=False)
    with (
        sqlite3.connect(tmp_path / "backup.db") as backup,
        sqlite3.connect(archive.database.engine.url.database or "") as live,
    ):
        live.backup(backup)
    archive.ingest([frame("tasks", [task(n)], n) for n in range(3, 6)])
    archive.compact(run)
    with archive.write() as tx:
        assert stored_tasks(tx, run) == 6

    restored = Archive(
        Database(str(tmp_path / "backup.db")), archive.store, archive.vault, archive.account, archive.now_us
    )
    recording = restored.recording(run)
    assert (recording["tasks"].rows, recording.damage) == (3, "")


# ---------------------------------------------------------------- parts of a run


def test_a_window_and_a_computation_read_few_rows_and_miss_no_match(sqlite_archive: Archive) -> None:
    rows = [task(n, computation=f"comp{n // 30_000}") for n in range(90_000)]
    sqlite_archive.ingest([frame("tasks", rows[n : n + 15_000], n // 15_000) for n in range(0, 90_000, 15_000)])
    run = sqlite_archive.run()["id"]
    sqlite_archive.compact(run)
    window = (NOW + 40_000_000_000, NOW + 41_000_000_000)
    inside = {row["key"] for row in rows if window[0] <= row["stop_us"] <= window[1]}
    computed = {row["key"] for row in rows if row["computation"] == "comp2"}
    for part, wanted in ((Part(("tasks",), window=window), inside), (Part(("tasks",), computation="comp2"), computed)):
        read = sqlite_archive.recording(run, part)["tasks"]
        assert read.rows <= 40_000
        assert wanted <= set(read["key"].tolist())


def test_only_the_requested_columns_are_read(sqlite_archive: Archive) -> None:
    sqlite_archive.ingest(numbered([[task(n) for n in range(4)]]))
    run = sqlite_archive.run()["id"]
    sqlite_archive.compact(run)
    tasks = sqlite_archive.recording(run, Part(("tasks",), columns=("start_us", "prefix")))["tasks"]
    assert tasks["start_us"].tolist() == [NOW + n * 1_000_000 for n in range(4)]
    assert tasks["prefix"].tolist() == ["inc"] * 4
    assert (tasks["worker"].tolist(), tasks["nbytes"].tolist()) == ([""] * 4, [0] * 4)


def test_only_the_requested_tables_are_read(sqlite_archive: Archive) -> None:
    sqlite_archive.ingest(any_frames())
    run = sqlite_archive.run()["id"]
    assert set(sqlite_archive.recording(run, Part(("tasks", "logs"))).tables) == {"tasks", "logs"}


# ---------------------------------------------------------------- other readers of the files


def plain_files(archive: Archive) -> dict[str, bytes]:
    rows = archive.rows(schema.files, "name", "path", order=("id",))
    return {row["name"]: archive.store.get(row["path"]) for row in rows if row["name"] not in SECRET}


def test_duckdb_and_pandas_read_the_files_without_daskscope(sqlite_archive: Archive, tmp_path: Path) -> None:
    import duckdb
    import pandas as pd

    frames = any_frames()
    sqlite_archive.ingest(frames)
    sqlite_archive.compact(sqlite_archive.run()["id"])
    expected = recorded(frames, tmp_path)
    for name, data in plain_files(sqlite_archive).items():
        path = tmp_path / f"{name}.parquet"
        path.write_bytes(data)
        frame_ = pd.read_parquet(io.BytesIO(data))
        assert (list(frame_.columns), len(frame_)) == (list(TABLES[name].names), expected[name].rows)
        with duckdb.connect() as tx:
            found = tx.execute(f"SELECT * FROM read_parquet('{path}')").fetchall()
        assert sorted(found, key=repr) == rows_of(expected[name])


def test_a_task_takes_few_bytes(sqlite_archive: Archive) -> None:
    rng = random.Random(1)
    rows = []
    for n in range(20_000):
        start = NOW + n * 500 + rng.randint(0, 100_000)
        stop = start + rng.randint(1_000, 500_000)
        rows.append(
            task(n, start_us=start, stop_us=stop, worker=f"tcp://10.0.0.{n % 20}:1", nbytes=rng.randint(100, 10**6))
        )
    sqlite_archive.ingest([frame("tasks", rows)])
    done = sqlite_archive.compact(sqlite_archive.run()["id"])
    assert done is not None
    assert done.nbytes / done.rows < 20


def test_an_empty_table_and_special_numbers_survive() -> None:
    assert from_parquet("tasks", to_parquet(Table.empty("tasks"))).rows == 0
    rows = [{"time_us": NOW, "name": "m", "value": value} for value in (math.inf, -math.inf, 0.5)]
    table = read_frame(frame("metrics", rows)).table()
    assert rows_of(from_parquet("metrics", to_parquet(table))) == rows_of(table)


# ---------------------------------------------------------------- a running cluster


def test_a_running_cluster_has_a_few_files_and_one_when_it_is_over(archive: Archive) -> None:
    frames = numbered([[task(n)] for n in range(MAX_FILES + 3)])
    for item in frames:
        archive.ingest([item])
        run = archive.run()["id"]
        archive.compact(run, over=False)
        assert archive.count(schema.files) <= MAX_FILES
        assert archive.blobs() == archive_paths(archive)
    assert archive.count(schema.files) > 1
    archive.ingest([frame("tasks", [task(99)], len(frames))])
    archive.compact(run, over=True)
    assert archive.count(schema.files) == 1
    assert archive.blobs() == archive_paths(archive)
    assert archive.recording(run)["tasks"].rows == MAX_FILES + 4


def test_the_next_pass_compacts_the_remaining_batches(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "PASS_NBYTES", 1)
    archive.ingest(numbered([[task(n)] for n in range(3)]))
    run = archive.run()["id"]
    left = []
    for _ in range(3):
        archive.compact(run)
        left.append(archive.run()["buffered_nbytes"])
    assert left[0] > left[1] > left[2] == 0
    assert archive.recording(run)["tasks"].rows == 3


def test_a_large_file_is_not_merged_again(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MAX_ROWS", 10)
    archive.ingest(numbered([[task(n) for n in range(9)]]))
    run = archive.run()["id"]
    archive.compact(run)
    archive.ingest([frame("tasks", [task(20), task(21)], 1)])
    archive.compact(run)
    assert [row["rows"] for row in archive.rows(schema.files, "rows", order=("id",))] == [9, 2]
    archive.ingest([frame("tasks", [task(22)], 2)])
    archive.compact(run)
    assert [row["rows"] for row in archive.rows(schema.files, "rows", order=("id",))] == [9, 3]
    assert archive.recording(run)["tasks"].rows == 12


def test_runs_are_compacted_when_they_are_over_or_large(archive: Archive) -> None:
    def wanted() -> dict[int, bool]:
        with archive.read() as tx:
            return {one.run: one.is_over for one in due(tx, 10 * MINUTE)}

    ended = {"cluster": "ended", "seen_us": NOW, "end_us": NOW}
    for cluster in ("living", "large"):
        archive.ingest(numbered([[task(0)]], cluster=cluster))
    archive.ingest([frame("clusters", [ended], cluster="ended")])
    numbers = {name: archive.run(name)["id"] for name in ("living", "large", "ended")}
    runs = schema.runs
    archive.execute(sa.update(runs).where(runs.c.id == numbers["large"]).values(buffered_nbytes=BUFFER_NBYTES + 1))
    assert wanted() == {numbers["large"]: False}
    archive.now_us += MINUTE
    assert wanted() == {numbers["large"]: False, numbers["ended"]: True}
    archive.now_us += 10 * MINUTE
    assert wanted() == {numbers["large"]: True, numbers["ended"]: True, numbers["living"]: True}
    for run in numbers.values():
        archive.compact(run)
    assert wanted() == {}


def test_a_run_that_cannot_be_compacted_does_not_delay_others(archive: Archive) -> None:
    for cluster in ("a", "b", "c"):
        archive.ingest(numbered([[task(0)]], cluster=cluster))
    archive.now_us += 60 * MINUTE
    turns = []
    for _ in range(3):
        archive.now_us += 1
        with archive.read() as tx:
            (one,) = due(tx, MINUTE, limit=1)
        turns.append(one.run)
        broken = archive.with_store(Refusing())
        with pytest.raises(StorageError):
            broken.compact(one.run)
    assert len(set(turns)) == 3


# ---------------------------------------------------------------- interrupted compactions


class Refusing(LocalStore):
    """A store that accepts a number of blobs and then refuses."""

    def __init__(self, directory: Path = Path("/nowhere"), takes: int = 0) -> None:
        self.directory, self.takes = directory, takes

    def put(self, path: str, data: bytes) -> None:
        if self.takes == 0:
            raise StorageError("The object store refuses.")
        self.takes -= 1
        super().put(path, data)


class Crash(BaseException):
    pass


def test_a_crash_before_the_commit_leaves_orphans_and_loses_no_rows(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = any_frames()
    archive.ingest(frames[:30])
    run = archive.run()["id"]
    archive.compact(run, over=False)
    archive.ingest(frames[30:])
    named = archive_paths(archive)

    def crash(*_: Any) -> bool:
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(compaction, "_commit", crash)
        with pytest.raises(Crash):
            archive.compact(run)
    left = set(archive.blobs()) - set(named)
    assert left
    assert_same(archive.recording(run), recorded(frames, tmp_path))
    with archive.read() as tx:
        # The files are new, so the catalog might name them in a moment.
        assert orphans(replace(tx, now_us=_now_us()), _now_us()) == []
        later_us = _now_us() + int((ORPHAN_AGE_S + 5) * 1e6)
        # Only one of the clocks is ahead: the server's, or the database's.
        assert orphans(replace(tx, now_us=later_us), _now_us()) == []
        assert orphans(replace(tx, now_us=_now_us()), later_us) == []
        later = orphans(replace(tx, now_us=later_us), later_us)
    assert {path for path, _ in later} == left
    archive.compact(run)
    assert_same(archive.recording(run), recorded(frames, tmp_path))


def _now_us() -> int:
    return time.time_ns() // 1000


def test_a_store_that_fails_during_compaction_loses_no_rows(archive: Archive, tmp_path: Path) -> None:
    frames = any_frames()
    archive.ingest(frames)
    run = archive.run()["id"]
    broken = Archive(archive.database, Refusing(tmp_path / "blobs", 3), archive.vault, archive.account)
    with pytest.raises(StorageError):
        broken.compact(run)
    assert_same(archive.recording(run), recorded(frames, tmp_path))
    archive.compact(run)
    assert_same(archive.recording(run), recorded(frames, tmp_path))


def test_the_slower_of_two_compactions_removes_its_files(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    archive.ingest(numbered([[task(n)] for n in range(3)]))
    run = archive.run()["id"]
    commit = compaction._commit

    def overtaken(*arguments: Any) -> bool:
        with monkeypatch.context() as patched:
            patched.setattr(compaction, "_commit", commit)
            assert archive.compact(run) is not None
        return commit(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(compaction, "_commit", overtaken)
        assert archive.compact(run) is None
    assert archive.blobs() == archive_paths(archive)
    assert archive.recording(run)["tasks"].rows == 3


def test_a_run_deleted_during_its_compaction_stays_deleted(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    from daskscope.storage.catalog.clusters import delete_cluster

    archive.ingest(numbered([[task(n)] for n in range(3)]))
    run = archive.run()["id"]
    commit = compaction._commit

    def deleted(*arguments: Any) -> bool:
        with archive.write() as tx:
            delete_cluster(tx, run)
        # Another cluster's batches arrive: none of them may be mistaken for a deleted one.
        archive.ingest(numbered([[task(n)] for n in range(3)], cluster="other"))
        return commit(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(compaction, "_commit", deleted)
        assert archive.compact(run) is None
    assert archive.blobs() == []
    assert archive.tables_naming(run) == []
    assert archive.recording(archive.run("other")["id"])["tasks"].rows == 3


# ---------------------------------------------------------------- batches that cannot be read


def test_a_batch_with_malformed_keys_is_set_aside_and_the_rest_is_compacted(archive: Archive) -> None:
    bad = broken_keys(1)
    with pytest.raises(WireError):
        read_frame(bad).table()
    good = numbered([[task(n)] for n in range(3)])
    assert archive.ingest([good[0], bad, good[2]]) == [True] * 3
    run = archive.run()["id"]
    before = archive.recording(run)
    assert (before["tasks"].rows, before.damaged_bytes) == (2, len(bad))
    done = archive.compact(run)
    assert done is not None
    assert (done.batches, done.rows) == (2, 2)
    after = archive.recording(run)
    assert (after["tasks"].rows, after.damage, after.damaged_bytes) == (2, before.damage, len(bad))
    # It is kept for inspection, and is not tried again.
    (kept,) = archive.rows(schema.batches, "frame", "sequence", order=("id",))
    assert kept == {"frame": bad, "sequence": 1}
    assert archive.ingest([bad, good[0]]) == [False, False]
    assert archive.rows(schema.epochs, "floor") == [{"floor": 3}]
    assert archive.run()["buffered_nbytes"] == 0
    with archive.read() as tx:
        assert due(at(tx, archive.now_us + 60 * MINUTE), MINUTE) == []


def test_a_modified_sealed_batch_is_set_aside(archive: Archive) -> None:
    archive.ingest([frame("logs", [{"time_us": NOW, "message": "m"}], 0), frame("tasks", [task(0)], 1)])
    run = archive.run()["id"]
    batches = schema.batches
    archive.execute(sa.update(batches).where(batches.c.name == "logs").values(frame=b"\0" * 7 + b"\1" + b"x" * 60))
    assert "cannot be decrypted" in archive.recording(run).damage
    archive.compact(run)
    assert archive.recording(run)["tasks"].rows == 1
    assert "cannot be decrypted" in archive.recording(run).damage


@pytest.mark.parametrize("data", [b"", b"no parquet", b"PAR1" + b"\0" * 50 + b"PAR1"])
def test_a_damaged_file_is_reported_and_the_rest_is_read(sqlite_archive: Archive, data: bytes) -> None:
    sqlite_archive.ingest([frame("tasks", [task(0)], 0), frame("samples", [{"time_us": NOW}], 1)])
    run = sqlite_archive.run()["id"]
    sqlite_archive.compact(run)
    (path,) = [row["path"] for row in sqlite_archive.rows(schema.files) if row["name"] == "tasks"]
    sqlite_archive.store.put(path, data)
    recording = sqlite_archive.recording(run)
    assert (recording["tasks"].rows, recording["samples"].rows) == (0, 1)
    assert path in recording.damage
    sqlite_archive.store.delete(path)
    assert path in sqlite_archive.recording(run).damage
