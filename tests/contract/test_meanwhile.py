"""What a reader, a compaction, a deletion or another server does meanwhile loses nothing and keeps nothing it should not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.archive import Archive, frame, numbered, task
from tests.contract.test_compaction import archive_paths, broken_keys
from tests.services import Hosting

from daskscope.analysis.completeness import is_complete
from daskscope.model.recording import Recording
from daskscope.report.document import build
from daskscope.server import rendering
from daskscope.storage import compaction, runs, schema
from daskscope.storage.blobs import BlobStore, LocalStore, MissingBlob
from daskscope.storage.clusters import delete_cluster
from daskscope.storage.compaction import compact
from daskscope.storage.renderings import Basis, KeptRendering, basis_of, keep_rendering
from daskscope.storage.retention import Limits, apply_retention, delete_rows
from daskscope.storage.runs import TooManyRows, read_steadily
from daskscope.testing.dissect import body_of, frame_of
from daskscope.testing.hosted import HostedServer, MovingClock
from daskscope.testing.samples import sample_frames
from daskscope.wire.file import read_recording


class Meanwhile(LocalStore):
    """A store in which something happens between the listing of a run's files and the reading of the first of them."""

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
    """A run of six tasks: three in a file, three buffered."""
    frames = numbered([[task(n)] for n in range(6)])
    archive.take(frames[:3])
    run = int(archive.run()["id"])
    archive.compact(run, over=False)
    archive.take(frames[3:])
    return run


def steadily(archive: Archive, run: int, store: BlobStore) -> Recording:
    return read_steadily(archive.database, archive.vault, store, archive.account, run, "test")


# ---------------------------------------------------------------- reading


def assert_whole(read: Recording) -> None:
    assert sorted(read["tasks"]["key"].tolist()) == [f"('inc-1234', {n})" for n in range(6)]
    assert is_complete(read)


@pytest.mark.parametrize("over", [False, True])
def test_a_run_that_is_compacted_while_it_is_read_is_read_whole(archive: Archive, over: bool) -> None:
    """Also where the files that were listed are gone by then."""
    run = half_compacted(archive)
    assert_whole(steadily(archive, run, Meanwhile(archive.store, lambda: archive.compact(run, over=over))))


@pytest.mark.parametrize("over", [False, True])
def test_rows_that_move_from_the_buffer_to_a_file_are_in_one_of_them(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, over: bool
) -> None:
    run = half_compacted(archive)
    before_buffer(monkeypatch, lambda: archive.compact(run, over=over))
    assert_whole(steadily(archive, run, archive.store))


def before_buffer(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """Do something once between the statement that lists a run's files and the one that reads its buffer."""
    buffered = runs.buffered

    def reading(*arguments: Any) -> Any:
        monkeypatch.setattr(runs, "buffered", buffered)
        action()
        return buffered(*arguments)

    monkeypatch.setattr(runs, "buffered", reading)


def test_a_run_with_more_rows_than_its_bytes_could_hold_is_not_read(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frame of constants has a quarter of a million rows in 300 bytes."""
    monkeypatch.setattr(runs, "SPARE_ROWS", 1000)
    archive.take([frame("tasks", [task(0)], 0, kept=1), constants(100_000, 1)])
    run = archive.run()["id"]
    for _ in range(2):
        with pytest.raises(TooManyRows, match="100,001 rows"):
            steadily(archive, run, archive.store)
        assert archive.compact(run) is not None
    monkeypatch.setattr(runs, "SPARE_ROWS", 100_001)
    assert steadily(archive, run, archive.store)["tasks"].rows == 100_001


def constants(rows: int, sequence: int) -> bytes:
    raw = (2).to_bytes(4, "little") + b"[]"
    header = {"table": "tasks", "schema": 1, "cluster": "c", "epoch": 1, "sequence": sequence, "rows": rows}
    counts = {"t0": 0, "t1": 0, "kept": rows, "dropped": 0, "raw": len(raw)}
    return frame_of({**header, **counts}, body_of(raw))


def test_a_run_that_is_merged_whenever_it_is_read_is_given_up_at_last(archive: Archive) -> None:
    run = half_compacted(archive)
    numbers = iter(range(6, 100))

    def merge() -> None:
        number = next(numbers)
        archive.take([frame("tasks", [task(number)], number, kept=number + 1)])
        archive.compact(run)

    read = steadily(archive, run, Meanwhile(archive.store, merge, times=50))
    assert next(numbers) == 6 + runs.ATTEMPTS
    assert "missing" in read.damage
    assert not is_complete(read)


def test_a_file_that_is_lost_is_looked_for_once_and_counted_as_missing(archive: Archive) -> None:
    run = half_compacted(archive)
    archive.store.delete(archive_paths(archive)[0])
    looked: list[int] = []
    read = steadily(archive, run, Meanwhile(archive.store, lambda: looked.append(1), times=9))
    assert len(looked) == 1
    assert "missing" in read.damage
    tasks = read.completeness["tasks"]
    assert (read["tasks"].rows, tasks.rows, tasks.missing) == (3, 3, 3)


def test_a_batch_that_cannot_be_read_is_counted_as_missing_before_and_after_it_is_put_aside(archive: Archive) -> None:
    archive.take([frame("tasks", [task(0)], 0, kept=1), broken_keys(1)])
    run = archive.run()["id"]
    before = archive.read(run)
    archive.compact(run)
    assert before.completeness == archive.read(run).completeness
    assert (before.completeness["tasks"].rows, before.completeness["tasks"].missing) == (1, 3)


# ---------------------------------------------------------------- compaction


def test_a_compaction_that_another_server_overtook_is_no_failure(archive: Archive) -> None:
    run = half_compacted(archive)
    store = Meanwhile(archive.store, lambda: archive.compact(run))
    slower = Archive(archive.database, store, archive.vault, archive.account, archive.now_us)
    assert slower.compact(run) is None
    assert archive.blobs() == archive_paths(archive)
    assert archive.read(run)["tasks"].rows == 6


def test_a_compaction_that_misses_a_file_the_catalog_names_says_so(archive: Archive) -> None:
    run = half_compacted(archive)
    archive.store.delete(archive_paths(archive)[0])
    with pytest.raises(MissingBlob):
        archive.compact(run)
    assert archive.read(run)["tasks"].rows == 3


def test_a_pass_takes_whole_batches_up_to_its_rows(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes alone bound nothing: 12 kB of constants claimed 16 million rows."""
    monkeypatch.setattr(compaction, "PASS_ROWS", 5)
    archive.take(numbered([[task(10 * n + m) for m in range(rows)] for n, rows in enumerate((2, 2, 2, 9, 1))]))
    run = archive.run()["id"]
    taken = []
    while archive.run()["buffered_nbytes"]:
        done = archive.compact(run)
        assert done is not None
        taken.append(done.batches)
    assert taken == [2, 1, 1, 1]
    assert archive.read(run)["tasks"].rows == 16


# ---------------------------------------------------------------- which renderings are kept


def kept(archive: Archive, run: int, basis: Basis | None) -> bool:
    assert basis is not None
    made = KeptRendering(f"{archive.account}/renderings/view", 1, basis.upto, "1")
    with archive.database.write() as connection:
        is_kept = keep_rendering(connection, run, "", made, basis, archive.now_us)
    assert archive.count(schema.renderings) == is_kept
    return is_kept


def basis(archive: Archive, run: int) -> Basis | None:
    with archive.database.read() as connection:
        return basis_of(connection, run)


def test_a_rendering_of_a_run_that_is_as_it_was_is_kept(archive: Archive) -> None:
    run = half_compacted(archive)
    before = basis(archive, run)
    assert before == Basis(6, rows=True)
    archive.compact(run)
    assert kept(archive, run, before)


@pytest.mark.parametrize("forget", [delete_rows, delete_cluster])
def test_a_rendering_of_rows_that_were_deleted_meanwhile_is_not_kept(
    archive: Archive, forget: Callable[..., list[str]]
) -> None:
    run = half_compacted(archive)
    before = basis(archive, run)
    with archive.database.write() as connection:
        forget(connection, run)
    assert not kept(archive, run, before)


def test_a_rendering_of_deleted_rows_is_not_kept_where_a_new_batch_came(archive: Archive) -> None:
    run = half_compacted(archive)
    before = basis(archive, run)
    with archive.database.write() as connection:
        delete_rows(connection, run)
    archive.take([frame("tasks", [task(6)], 6)])
    assert not kept(archive, run, before)


def test_a_rendering_of_a_run_without_rows_is_kept(archive: Archive) -> None:
    run = half_compacted(archive)
    with archive.database.write() as connection:
        delete_rows(connection, run)
    assert kept(archive, run, basis(archive, run))


# ---------------------------------------------------------------- what a server shows

VIEW, DOWNLOAD = "/api/v1/clusters/c/view/report.json", "/api/v1/clusters/c/recording"


def served(server: HostedServer) -> int:
    """A cluster with three tasks in a file and three buffered; its run."""
    # Made together: a task that began before the second scheduler did is not of its life.
    first, second = sample_frames("c", epoch=1), sample_frames("c", "later", epoch=2, ended=True)
    assert server.send(first).status == 200
    services = server.services
    with services.database.read() as connection:
        (run,) = connection.execute(schema.runs.select()).mappings()
    number = int(run["id"])
    compact_now(server, number, over=False)
    assert server.send(second).status == 200
    return number


def compact_now(server: HostedServer, run: int, *, over: bool = True) -> None:
    services = server.services
    store = LocalStore(Path(server.settings.store_url))
    compact(services.database, services.vault, store, services.local_account, run, services.clock(), over=over)


def once_while_building(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    def building(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(rendering, "build", build)
        action()
        return build(*arguments, **named)

    monkeypatch.setattr(rendering, "build", building)


def blobs(server: HostedServer, part: str) -> list[str]:
    return [path for path, _, _ in server.services.store.list() if part in path]


def test_a_page_opened_during_a_compaction_shows_everything(
    hosted: Hosting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hosted(tmp_path) as server:
        run = served(server)
        before_buffer(monkeypatch, lambda: compact_now(server, run, over=False))
        report = server.ask("GET", VIEW).json()
        assert (report["totals"]["tasks"], report["complete"]) == (6, True)


def test_a_page_opened_while_files_are_merged_shows_everything(hosted: Hosting, tmp_path: Path) -> None:
    with hosted(tmp_path) as server:
        run, store = served(server), server.services.store
        server.services.store = Meanwhile(store, lambda: compact_now(server, run))
        report = server.ask("GET", VIEW).json()
        assert (report["totals"]["tasks"], report["complete"]) == (6, True)


def test_a_recording_downloaded_during_a_compaction_holds_everything(hosted: Hosting, tmp_path: Path) -> None:
    with hosted(tmp_path) as server:
        run, store = served(server), server.services.store
        server.services.store = Meanwhile(store, lambda: compact_now(server, run))
        (tmp_path / "c.daskscope").write_bytes(server.ask("GET", DOWNLOAD).body)
        recording = read_recording(tmp_path / "c.daskscope")
        assert recording["tasks"].rows == 6
        assert is_complete(recording)


def test_what_is_lost_is_said_by_the_page_and_the_download_and_nothing_of_it_is_kept(
    hosted: Hosting, tmp_path: Path
) -> None:
    with hosted(tmp_path) as server:
        served(server)
        store, (path,) = server.services.store, blobs(server, "/tasks.parquet")
        data = store.get(path)
        store.delete(path)
        answer = server.ask("GET", VIEW)
        report = answer.json()
        assert (report["totals"]["tasks"], report["complete"]) == (3, False)
        # The blocks of that page are those of that page.
        name = answer.headers["ETag"].strip('"')
        assert rendering.remembered(server.services.local_account, name) is not None
        (tmp_path / "c.daskscope").write_bytes(server.ask("GET", DOWNLOAD).body)
        recording = read_recording(tmp_path / "c.daskscope")
        assert (recording["tasks"].rows, recording.completeness["tasks"].missing) == (3, 3)
        assert recording.missing_batches == 1
        assert blobs(server, "/renderings/") == []
        # Restored from a backup, it is shown at once.
        store.put(path, data)
        report = server.ask("GET", VIEW).json()
        assert (report["totals"]["tasks"], report["complete"]) == (6, True)
        assert len(blobs(server, "/renderings/")) == 1


def test_a_download_of_which_nothing_can_be_read_is_an_error(hosted: Hosting, tmp_path: Path) -> None:
    with hosted(tmp_path) as server:
        compact_now(server, served(server))
        for path in blobs(server, "/runs/"):
            server.services.store.delete(path)
        answer = server.ask("GET", DOWNLOAD)
        assert (answer.status, answer.code) == (500, "damaged")
        assert "daskscope doctor" in answer.text


def test_a_page_of_rows_that_are_deleted_while_it_is_made_is_not_kept(
    hosted: Hosting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = MovingClock()
    with hosted(tmp_path, clock=clock) as server:
        served(server)
        services = server.services
        clock.move(days=91)
        limits = Limits(keep_rows_days=90, keep_sums_days=730)
        once_while_building(
            monkeypatch, lambda: apply_retention(services.database, services.store, limits, clock())
        )  # fmt: skip
        assert server.ask("GET", VIEW).status == 200
        assert list(services.store.list()) == []
        assert "Traceback" not in server.ask("GET", VIEW).text


def test_a_page_of_a_cluster_that_is_deleted_while_it_is_made_is_not_found(
    hosted: Hosting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hosted(tmp_path) as server:
        served(server)
        once_while_building(monkeypatch, lambda: server.ask("DELETE", "/api/v1/clusters/c"))
        answer = server.ask("GET", VIEW)
        assert (answer.status, answer.code) == (404, "not_found")
        assert list(server.services.store.list()) == []
