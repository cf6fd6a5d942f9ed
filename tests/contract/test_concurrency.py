"""Concurrent readers, compactions, deletions and servers lose no data and keep no deleted data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.helpers.archive import Archive, archive_paths, frame, numbered, task
from tests.helpers.dissect import body_of, frame_of
from tests.helpers.every_table import broken_keys
from tests.helpers.hosted import HostedServer, MovingClock
from tests.helpers.samples import sample_frames
from tests.helpers.services import Hosting

from daskscope.analysis.summary import is_complete
from daskscope.model.recording import Recording
from daskscope.report.document import build
from daskscope.server import build_document, documents
from daskscope.storage import schema
from daskscope.storage.base.blobs import BlobStore, LocalStore, MissingBlob
from daskscope.storage.catalog.clusters import delete_cluster
from daskscope.storage.runs import compaction, read
from daskscope.storage.runs.compaction import compact
from daskscope.storage.runs.documents import (
    Build,
    NewDocument,
    begin_build,
    document_state,
    fail_build,
    find_build,
    keep_document,
    renew_build,
)
from daskscope.storage.runs.read import ATTEMPTS, TooManyRows, read_snapshot
from daskscope.storage.runs.retention import Limits, apply_retention, delete_replaced, delete_rows
from daskscope.wire.file import read_recording

pytestmark = pytest.mark.each_database


class HookedReading(LocalStore):
    """A store that calls a function after a run's files were listed and before the first is read."""

    def __init__(self, inner: BlobStore, action: Callable[[], object], times: int = 1) -> None:
        assert isinstance(inner, LocalStore)
        super().__init__(inner.directory)
        self.action, self.left = action, times

    def get(self, path: str) -> bytes:
        if self.left and "/runs/" in path:
            self.left -= 1
            self.action()
        return super().get(path)


def half_compacted(archive: Archive) -> int:
    """Ingest a run of six tasks, three in a file and three buffered; return its number."""
    frames = numbered([[task(n)] for n in range(6)])
    archive.ingest(frames[:3])
    run = int(archive.run()["id"])
    archive.compact(run, over=False)
    archive.ingest(frames[3:])
    return run


def snapshot(archive: Archive, run: int, store: BlobStore) -> Recording:
    return read_snapshot(archive.with_store(store), archive.account, run, "test")


# ---------------------------------------------------------------- reading


def assert_complete(read: Recording) -> None:
    assert sorted(read["tasks"]["key"].tolist()) == [f"('inc-1234', {n})" for n in range(6)]
    assert is_complete(read)


@pytest.mark.parametrize("over", [False, True])
def test_a_run_compacted_while_it_is_read_is_complete(archive: Archive, over: bool) -> None:
    """Even if the listed files no longer exist."""
    run = half_compacted(archive)
    assert_complete(snapshot(archive, run, HookedReading(archive.store, lambda: archive.compact(run, over=over))))


@pytest.mark.parametrize("over", [False, True])
def test_rows_that_move_from_the_buffer_to_a_file_are_read_once(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, over: bool
) -> None:
    run = half_compacted(archive)
    before_buffer(monkeypatch, lambda: archive.compact(run, over=over))
    assert_complete(snapshot(archive, run, archive.store))


def before_buffer(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """Call a function once between the query for a run's files and the query for its buffer."""
    buffered = read.buffered

    def reading(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(read, "buffered", buffered)
        action()
        return buffered(*arguments, **options)

    monkeypatch.setattr(read, "buffered", reading)


def test_a_run_with_implausibly_many_rows_is_not_read(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame of constants holds a quarter of a million rows in 300 bytes."""
    monkeypatch.setattr(read, "SPARE_ROWS", 1000)
    archive.ingest([frame("tasks", [task(0)], 0, kept=1), constants(100_000, 1)])
    run = archive.run()["id"]
    for _ in range(2):
        with pytest.raises(TooManyRows, match="100,001 rows"):
            snapshot(archive, run, archive.store)
        assert archive.compact(run) is not None
    monkeypatch.setattr(read, "SPARE_ROWS", 100_001)
    assert snapshot(archive, run, archive.store)["tasks"].rows == 100_001


def constants(rows: int, sequence: int) -> bytes:
    raw = (2).to_bytes(4, "little") + b"[]"
    header = {"table": "tasks", "schema": 1, "cluster": "c", "epoch": 1, "sequence": sequence, "rows": rows}
    counts = {"t0": 0, "t1": 0, "kept": rows, "dropped": 0, "raw": len(raw)}
    return frame_of({**header, **counts}, body_of(raw))


def test_reading_a_run_that_is_always_merged_is_retried_a_limited_number_of_times(archive: Archive) -> None:
    run = half_compacted(archive)
    archive.keep_replaced_us = 0
    numbers = iter(range(6, 100))

    def merge() -> None:
        number = next(numbers)
        archive.ingest([frame("tasks", [task(number)], number, kept=number + 1)])
        archive.compact(run)
        (due_us,) = [row["delete_us"] for row in archive.rows(schema.replaced_files)]
        delete_replaced(archive, due_us)

    read = snapshot(archive, run, HookedReading(archive.store, merge, times=50))
    assert next(numbers) == 6 + ATTEMPTS
    assert "missing" in read.damage
    assert not is_complete(read)


def test_a_lost_file_is_read_once_and_counted_as_missing(archive: Archive) -> None:
    run = half_compacted(archive)
    archive.store.delete(archive_paths(archive)[0])
    looked: list[int] = []
    read = snapshot(archive, run, HookedReading(archive.store, lambda: looked.append(1), times=9))
    assert len(looked) == 1
    assert "missing" in read.damage
    tasks = read.completeness["tasks"]
    assert (read["tasks"].rows, tasks.rows, tasks.missing) == (3, 3, 3)


def test_an_unreadable_batch_is_counted_as_missing_before_and_after_it_is_set_aside(archive: Archive) -> None:
    archive.ingest([frame("tasks", [task(0)], 0, kept=1), broken_keys(1)])
    run = archive.run()["id"]
    before = archive.recording(run)
    archive.compact(run)
    assert before.completeness == archive.recording(run).completeness
    assert (before.completeness["tasks"].rows, before.completeness["tasks"].missing) == (1, 3)


# ---------------------------------------------------------------- compaction


def test_a_compaction_overtaken_by_another_server_does_not_fail(archive: Archive) -> None:
    run = half_compacted(archive)
    store = HookedReading(archive.store, lambda: archive.compact(run))
    slower = archive.with_store(store)
    assert slower.compact(run) is None
    assert archive.blobs() == archive_paths(archive)
    assert archive.recording(run)["tasks"].rows == 6


def test_a_compaction_with_a_missing_file_fails(archive: Archive) -> None:
    run = half_compacted(archive)
    archive.store.delete(archive_paths(archive)[0])
    with pytest.raises(MissingBlob):
        archive.compact(run)
    assert archive.recording(run)["tasks"].rows == 3


def test_a_pass_compacts_whole_batches_up_to_its_row_limit(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit in bytes is not enough: 12 kB of constants held 16 million rows."""
    monkeypatch.setattr(compaction, "PASS_ROWS", 5)
    archive.ingest(numbered([[task(10 * n + m) for m in range(rows)] for n, rows in enumerate((2, 2, 2, 9, 1))]))
    run = archive.run()["id"]
    taken = []
    while archive.run()["buffered_nbytes"]:
        done = archive.compact(run)
        assert done is not None
        taken.append(done.batches)
    assert taken == [2, 1, 1, 1]
    assert archive.recording(run)["tasks"].rows == 16


# ---------------------------------------------------------------- which documents are stored


def began(archive: Archive, run: int) -> Build | None:
    with archive.write() as tx:
        return begin_build(tx, run, "")


def store_document(archive: Archive, build: Build | None, path: str = "document") -> bool:
    assert build is not None
    made = NewDocument(f"{archive.account}/documents/{path}", 1, 6, "1")
    with archive.write() as tx:
        return keep_document(tx, build, made) is not None


def test_a_document_of_an_unchanged_run_is_stored(archive: Archive) -> None:
    run = half_compacted(archive)
    build = began(archive, run)
    archive.compact(run)
    assert store_document(archive, build)
    assert archive.count(schema.documents) == 1
    assert archive.count(schema.builds) == 0


def test_a_document_is_stored_although_batches_arrive_while_it_is_built(archive: Archive) -> None:
    run = half_compacted(archive)
    build = began(archive, run)
    archive.ingest([frame("tasks", [task(6)], 6)])
    assert store_document(archive, build)
    with archive.read() as tx:
        state = document_state(tx, run, "")
    assert state is not None
    assert state.kept is not None
    # It is known to be behind.
    assert (state.kept.upto, state.newest_batch) == (6, 7)


def test_a_document_is_built_by_one_server(archive: Archive) -> None:
    run = half_compacted(archive)
    first = began(archive, run)
    assert first is not None
    assert began(archive, run) is None
    # Another subject of the same run is another document.
    with archive.write() as tx:
        assert begin_build(tx, run, "some computation") is not None
    assert store_document(archive, first)
    assert began(archive, run) is not None


def test_the_build_of_a_dead_server_ends_and_its_document_is_not_stored(archive: Archive) -> None:
    run = half_compacted(archive)
    dead = began(archive, run)
    archive.execute(sa.update(schema.builds).values(until_us=1))
    alive = began(archive, run)
    assert alive is not None
    assert not store_document(archive, dead, "late")
    assert store_document(archive, alive)


def test_a_build_that_is_renewed_stays_valid(archive: Archive) -> None:
    run = half_compacted(archive)
    build = began(archive, run)
    assert build is not None
    archive.execute(sa.update(schema.builds).values(until_us=1))
    with archive.write() as tx:
        renew_build(tx, build)
    assert began(archive, run) is None


def test_a_failed_build_is_not_tried_again_at_once(archive: Archive) -> None:
    run = half_compacted(archive)
    build = began(archive, run)
    assert build is not None
    with archive.write() as tx:
        fail_build(tx, build, "It needs more memory.")
        found = find_build(tx, run, "")
    assert found is not None
    assert found.problem == "It needs more memory."
    assert began(archive, run) is None
    archive.execute(sa.update(schema.builds).values(until_us=1))
    assert began(archive, run) is not None


@pytest.mark.parametrize("forget", [delete_rows, delete_cluster])
def test_a_document_of_rows_deleted_meanwhile_is_not_stored(archive: Archive, forget: Callable[..., list[str]]) -> None:
    run = half_compacted(archive)
    build = began(archive, run)
    with archive.write() as tx:
        forget(tx, run)
    assert not store_document(archive, build)
    assert archive.count(schema.documents) == 0


def test_a_document_of_deleted_rows_is_not_stored_after_a_new_batch(archive: Archive) -> None:
    run = half_compacted(archive)
    build = began(archive, run)
    with archive.write() as tx:
        delete_rows(tx, run)
    archive.ingest([frame("tasks", [task(6)], 6)])
    assert not store_document(archive, build)


def test_a_document_of_a_run_without_rows_is_stored(archive: Archive) -> None:
    run = half_compacted(archive)
    with archive.write() as tx:
        delete_rows(tx, run)
    assert store_document(archive, began(archive, run))


# ---------------------------------------------------------------- documents and downloads of a server

VIEW, DOWNLOAD = "/api/v1/clusters/c/document/report.json", "/api/v1/clusters/c/recording"


def send_half_compacted(server: HostedServer) -> int:
    """Send a cluster with three tasks in a file and three buffered; return its run."""
    # Both are created now: tasks that start before their scheduler are not part of its run.
    first, second = sample_frames("c", epoch=1), sample_frames("c", "later", epoch=2, ended=True)
    assert server.send(first).status == 200
    services = server.services
    with services.archive.read() as tx:
        (run,) = tx.execute(schema.runs.select()).mappings()
    number = int(run["id"])
    compact_now(server, number, over=False)
    assert server.send(second).status == 200
    return number


def compact_now(server: HostedServer, run: int, *, over: bool = True) -> None:
    services = server.services
    store = LocalStore(Path(server.settings.store_url))
    compact(replace(services.archive, store=store), services.local_account, run, over=over)


def once_while_building(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    def building(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(build_document, "build", build)
        action()
        return build(*arguments, **named)

    monkeypatch.setattr(build_document, "build", building)


def blobs(server: HostedServer, part: str) -> list[str]:
    return [path for path, _, _ in server.services.archive.store.list() if part in path]


def test_a_document_read_during_a_compaction_is_complete(
    hosted: Hosting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hosted(tmp_path) as server:
        run = send_half_compacted(server)
        before_buffer(monkeypatch, lambda: compact_now(server, run, over=False))
        report = server.ask("GET", VIEW).json()
        assert (report["totals"]["tasks"], report["complete"]) == (6, True)


def test_a_document_read_while_files_are_merged_is_complete(hosted: Hosting, tmp_path: Path) -> None:
    with hosted(tmp_path) as server:
        run, store = send_half_compacted(server), server.services.archive.store
        server.services.archive.store = HookedReading(store, lambda: compact_now(server, run))
        report = server.ask("GET", VIEW).json()
        assert (report["totals"]["tasks"], report["complete"]) == (6, True)


def test_a_recording_downloaded_during_a_compaction_is_complete(hosted: Hosting, tmp_path: Path) -> None:
    with hosted(tmp_path) as server:
        run, store = send_half_compacted(server), server.services.archive.store
        server.services.archive.store = HookedReading(store, lambda: compact_now(server, run))
        (tmp_path / "c.daskscope").write_bytes(server.ask("GET", DOWNLOAD).body)
        recording = read_recording(tmp_path / "c.daskscope")
        assert recording["tasks"].rows == 6
        assert is_complete(recording)


def test_lost_rows_are_reported_and_an_incomplete_document_is_not_shown_for_long(
    hosted: Hosting, tmp_path: Path
) -> None:
    with hosted(tmp_path) as server:
        send_half_compacted(server)
        store, (path,) = server.services.archive.store, blobs(server, "/tasks.parquet")
        data = store.get(path)
        store.delete(path)
        answer = server.ask("GET", VIEW)
        report = answer.json()
        assert (report["totals"]["tasks"], report["complete"]) == (3, False)
        # The blocks of this document belong to it.
        name = answer.headers["ETag"].strip('"')
        assert documents.by_name(server.services, server.services.local_account, name).report == answer.body
        (tmp_path / "c.daskscope").write_bytes(server.ask("GET", DOWNLOAD).body)
        recording = read_recording(tmp_path / "c.daskscope")
        assert (recording["tasks"].rows, recording.completeness["tasks"].missing) == (3, 3)
        assert recording.missing_batches == 1
        # Once the file is restored from a backup, the document is complete again.
        store.put(path, data)
        report = server.ask("GET", VIEW).json()
        assert (report["totals"]["tasks"], report["complete"]) == (6, True)


def test_a_download_without_readable_data_fails(hosted: Hosting, tmp_path: Path) -> None:
    with hosted(tmp_path) as server:
        compact_now(server, send_half_compacted(server))
        for path in blobs(server, "/runs/"):
            server.services.archive.store.delete(path)
        answer = server.ask("GET", DOWNLOAD)
        assert (answer.status, answer.code) == (500, "damaged")
        assert "daskscope doctor" in answer.text


def test_a_document_of_rows_deleted_while_it_is_built_is_not_stored(
    hosted: Hosting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = MovingClock()
    with hosted(tmp_path, clock=clock) as server:
        send_half_compacted(server)
        services = server.services
        clock.move(days=91)
        limits = Limits(keep_rows_days=90, keep_sums_days=730)
        once_while_building(
            monkeypatch, lambda: apply_retention(services.archive, limits, clock())
        )  # fmt: skip
        # It is built again, without them.
        assert server.ask("GET", VIEW).json()["stream"]["tasks"] == 0
        assert len(list(services.archive.store.list())) == 1


def test_a_document_of_a_cluster_deleted_while_it_is_built_is_not_found(
    hosted: Hosting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hosted(tmp_path) as server:
        send_half_compacted(server)
        once_while_building(monkeypatch, lambda: server.ask("DELETE", "/api/v1/clusters/c"))
        answer = server.ask("GET", VIEW)
        assert (answer.status, answer.code) == (404, "not_found")
        assert list(server.services.archive.store.list()) == []
