"""Background jobs of a server: build documents of large runs ahead, compact batches and remove leftovers."""

from __future__ import annotations

import os
import re
import resource
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.helpers.documents import Documents
from tests.helpers.hosted import HostedServer, MovingClock
from tests.helpers.samples import sample_frames, sample_tables
from tests.helpers.services import Hosting, Postgres
from tests.integration.conftest import Heard

from daskscope.server import documents
from daskscope.server import jobs as jobs_module
from daskscope.server.errors import not_found
from daskscope.server.jobs import UPLOAD_AGE_S, Jobs, remove_uploads
from daskscope.server.processes import compact as compact_process
from daskscope.server.processes.compact import CompactionError
from daskscope.server.services import open_services
from daskscope.storage import schema
from daskscope.storage.base.blobs import LocalStore
from daskscope.storage.runs import compaction
from daskscope.storage.runs.compaction import compact
from daskscope.storage.runs.read import files_of
from daskscope.storage.runs.retention import stored_tasks
from daskscope.testing import make_frames

pytestmark = pytest.mark.each_database


def test_a_large_finished_run_is_built_ahead(hosted: Hosting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_module, "BUILD_AHEAD_TASKS", 3)
    clock = MovingClock()
    with hosted(tmp_path, clock=clock) as server:
        assert server.send(b"".join(make_frames(sample_tables("large", ended=True), cluster="large"))).status == 200
        clock.move(seconds=300)

        Jobs(server.services).compact()

        with server.services.archive.read() as tx:
            made = set(tx.execute(sa.select(schema.documents.c.subject)).scalars())
        assert made == {"", "sample-comp"}
        before = server.services.counters.get("compactions")
        assert before == 1
        # Opening it now only reads the stored document.
        answer = server.ask("GET", "/api/v1/clusters/large/document/report.json")
        assert answer.status == 200
        with server.services.archive.read() as tx:
            again = tx.execute(sa.select(sa.func.count()).select_from(schema.documents)).scalar_one()
        assert again == 2


def test_a_small_run_is_not_built_ahead(hosted: Hosting, tmp_path: Path) -> None:
    clock = MovingClock()
    with hosted(tmp_path, clock=clock) as server:
        assert server.send(b"".join(make_frames(sample_tables("small", ended=True), cluster="small"))).status == 200
        clock.move(seconds=300)

        Jobs(server.services).compact()

        with server.services.archive.read() as tx:
            assert tx.execute(sa.select(sa.func.count()).select_from(schema.documents)).scalar_one() == 0
            assert tx.execute(sa.select(sa.func.count()).select_from(schema.files)).scalar_one() > 0


def test_a_clock_that_jumps_deletes_nothing_and_is_reported(hosted: Hosting, tmp_path: Path) -> None:
    clock = MovingClock()
    with hosted(tmp_path, clock=clock, keep_rows_days=90) as server:
        assert server.send(sample_frames("old")).status == 200
        jobs = Jobs(server.services)
        jobs._do("retention", jobs.retain)
        clock.move(days=100)
        # Its batch has the wrong time, and must not make the time look right.
        assert server.send(sample_frames("new")).status == 200
        passes = ("retention", jobs.retain), ("sweep", jobs.sweep), ("replaced files", jobs.delete_replaced)
        for name, job in passes:
            jobs._do(name, job)
        ready = server.ask("GET", "/readyz")
        assert ready.status == 200
        if server.services.archive.database.is_sqlite:
            for name, _ in passes:
                assert "the clock is 100" in ready.json()["checks"][name]
        else:
            # PostgreSQL's clock did not jump.
            assert "retention" not in ready.json()["checks"]
        assert stored(server) == {"old": 3, "new": 3}
        clock.move(days=-100)
        jobs._do("retention", jobs.retain)
        assert "retention" not in server.ask("GET", "/readyz").json()["checks"]


def test_a_pass_that_deletes_something_is_logged(
    hosted: Hosting, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = MovingClock()
    clock.move(days=-100)
    with hosted(tmp_path, clock=clock, keep_rows_days=90) as server:
        for number in range(30):
            assert server.send(sample_frames(f"c{number}")).status == 200
        jobs = Jobs(server.services)
        clock.move(days=100)
        now = iter(range(clock(), clock() + 3))
        jobs.clock.now_us = lambda: next(now)  # type: ignore[method-assign]
        with caplog.at_level("INFO", "daskscope.server"):
            for _ in range(3):
                jobs.retain()
        lines = [record.getMessage() for record in caplog.records if record.getMessage().startswith("retention")]
        assert lines == [
            "retention deleted 0 runs, the rows of 25 runs and 0 reports; more is due, and is deleted by the next passes",
            "retention deleted 0 runs, the rows of 5 runs and 0 reports",
        ]


def stored(server: HostedServer) -> dict[str, int]:
    """Return the stored task rows by cluster."""
    with server.services.archive.read() as tx:
        runs = tx.execute(sa.select(schema.runs.c.id, schema.runs.c.cluster)).all()
        return {run.cluster: stored_tasks(tx, run.id) for run in runs}


class SlowStore(LocalStore):
    """A store whose writes take some time, and are counted."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.written = 0

    def put(self, path: str, data: bytes) -> None:
        self.written += 1
        time.sleep(0.01)
        super().put(path, data)


def test_two_servers_share_the_compaction_of_many_runs(tmp_path: Path, postgres: Postgres) -> None:
    clock = MovingClock()
    with HostedServer(tmp_path / "data", clock=clock, database=postgres.prepared()) as server:
        for number in range(40):
            assert server.send(sample_frames(f"c{number}", ended=True)).status == 200
        clock.move(seconds=300)
        both = [server.services, open_services(server.settings, clock)]
        stores = [SlowStore(tmp_path / "data" / "blobs") for _ in both]
        for services, store in zip(both, stores, strict=True):
            services.archive.store = store
        threads = [threading.Thread(target=Jobs(services).compact) for services in both]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        done = [services.counters.get("compactions") for services in both]
        both[1].close()
        assert buffered(server) == []
        assert sum(done) == 40
        assert min(done) > 0
        with server.services.archive.read() as tx:
            files = tx.execute(sa.select(sa.func.count()).select_from(schema.files)).scalar_one()
        # No file was written in vain.
        assert sum(store.written for store in stores) == files


def buffered(server: HostedServer) -> list[str]:
    """Return the clusters with pending batches."""
    with server.services.archive.read() as tx:
        waiting = sa.select(schema.runs.c.cluster).where(schema.runs.c.buffered_nbytes > 0)
        return sorted(tx.execute(waiting).scalars())


def test_a_run_that_cannot_be_built_ahead_is_logged_and_the_others_go_on(
    hosted: Hosting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heard: Heard
) -> None:
    """A recorder may send rows of which no document can be built; this must not affect other accounts."""
    monkeypatch.setattr(jobs_module, "BUILD_AHEAD_TASKS", 3)
    of_run = documents.of_run

    def failing(services: Any, account: int, run: int, title: str, computation: str = "") -> Any:
        if title.startswith("bad"):
            raise OverflowError("cannot convert float infinity to integer")
        return of_run(services, account, run, title, computation)

    monkeypatch.setattr(documents, "of_run", failing)
    clock = MovingClock()
    with hosted(tmp_path, clock=clock) as server:
        for name in ("bad", "good"):
            assert server.send(sample_frames(name, name, ended=True)).status == 200
        clock.move(seconds=300)
        jobs = Jobs(server.services)
        jobs._do("compaction", jobs.compact)
        assert [line for line in heard.lines if "cannot be built ahead: cannot convert float infinity" in line]
        assert server.ask("GET", "/readyz").status == 200
        assert buffered(server) == []
        with server.services.archive.read() as tx:
            assert tx.execute(sa.select(sa.func.count()).select_from(schema.documents)).scalar_one() == 2


def test_a_cluster_deleted_before_it_is_built_ahead_is_not_a_failure(
    hosted: Hosting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heard: Heard
) -> None:
    monkeypatch.setattr(jobs_module, "BUILD_AHEAD_TASKS", 3)

    def deleted(*_: Any) -> Any:
        raise not_found("such cluster")

    monkeypatch.setattr(documents, "of_run", deleted)
    clock = MovingClock()
    with hosted(tmp_path, clock=clock) as server:
        assert server.send(sample_frames("c", ended=True)).status == 200
        clock.move(seconds=300)
        Jobs(server.services).compact()
        assert not [line for line in heard.lines if "built ahead" in line]


def test_batches_left_by_one_pass_are_compacted_in_the_same_round(
    hosted: Hosting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "PASS_ROWS", 1)
    clock = MovingClock()
    with hosted(tmp_path, clock=clock) as server:
        assert server.send(sample_frames("c", ended=True)).status == 200
        clock.move(seconds=300)
        Jobs(server.services).compact()
        assert buffered(server) == []
        assert server.services.counters.get("compactions") > 1


def test_a_large_buffer_is_compacted_in_another_process(
    hosted: Hosting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = MovingClock()
    with hosted(tmp_path, clock=clock) as server:
        for cluster, most in (("here", 1 << 30), ("apart", 0)):
            monkeypatch.setattr(jobs_module, "MAX_NBYTES_HERE", most)
            assert server.send(sample_frames(cluster, ended=True)).status == 200
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            clock.move(seconds=300)
            Jobs(server.services).compact()
            assert (resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime > before) is (most == 0)
        assert buffered(server) == []
        with server.services.archive.read() as tx:
            here, apart = ({file.name: file.rows for file in files_of(tx, run)} for run in (1, 2))
        assert here == apart
        assert here["tasks"] == len(sample_tables("c")["tasks"])


def test_the_error_of_a_compaction_in_another_process_is_reported(
    hosted: Hosting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = MovingClock()
    monkeypatch.setattr(jobs_module, "MAX_NBYTES_HERE", 0)
    with hosted(tmp_path, clock=clock) as server:
        assert server.send(sample_frames("c", ended=True)).status == 200
        clock.move(seconds=300)
        missing = replace(compact_process.COMPACT, module="daskscope.no_such_module")
        monkeypatch.setattr(compact_process, "COMPACT", missing)
        with pytest.raises(CompactionError, match="compacting run 1 failed: the process ended with status 1"):
            Jobs(server.services).compact()
        assert buffered(server) == ["c"]


def test_the_slower_of_two_compacting_servers_stays_ready_and_continues(hosted: Hosting, tmp_path: Path) -> None:
    clock = MovingClock()
    with hosted(tmp_path, clock=clock) as slow, hosted(tmp_path, clock=clock) as fast:
        services = slow.services
        assert slow.send(sample_frames("c", epoch=1)).status == 200
        compact(services.archive, services.local_account, 1, over=False)
        assert slow.send(sample_frames("c", "later", epoch=2, ended=True)).status == 200
        clock.move(seconds=300)

        class Overtaken(LocalStore):
            done = False

            def get(self, path: str) -> bytes:
                if not self.done and "/runs/" in path:
                    self.done = True
                    Jobs(fast.services).compact()
                    # Another run for the rest of the round.
                    assert slow.send(sample_frames("d", ended=True)).status == 200
                    clock.move(seconds=300)
                return super().get(path)

        services.archive.store = Overtaken(Path(slow.settings.store_url))
        jobs = Jobs(services)
        jobs._do("compaction", jobs.compact)
        assert services.problems == {}
        assert buffered(slow) == []


def test_only_old_abandoned_uploads_are_removed(tmp_path: Path) -> None:
    now = time.time()
    for name, age in (("upload-old", 2 * UPLOAD_AGE_S), ("upload-young", 60.0), ("other-old", 2 * UPLOAD_AGE_S)):
        file = tmp_path / name / "upload.daskscope"
        file.parent.mkdir()
        file.write_bytes(b"plain")
        for path in (file, file.parent):
            os.utime(path, (now - age, now - age))
    # An upload that began long ago and is still being written.
    slow = tmp_path / "upload-slow"
    slow.mkdir()
    (slow / "upload.daskscope").write_bytes(b"plain")
    os.utime(slow, (now - 2 * UPLOAD_AGE_S, now - 2 * UPLOAD_AGE_S))
    (tmp_path / "upload-file").write_bytes(b"")
    assert remove_uploads(tmp_path, now) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "other-old",
        "upload-file",
        "upload-slow",
        "upload-young",
    ]
    assert remove_uploads(tmp_path, now) == 0


def test_a_server_removes_old_uploads_when_it_starts(hosted: Hosting, tmp_path: Path) -> None:
    left = tmp_path / "upload-left"
    left.mkdir()
    os.utime(left, (0, 0))
    with hosted(tmp_path, jobs=True):
        until = time.monotonic() + 20
        while left.exists() and time.monotonic() < until:
            time.sleep(0.05)
    assert not left.exists()


@pytest.mark.parametrize("loss", ["missing", "cut off"])
def test_rows_in_lost_files_are_reported_by_the_list_the_report_and_the_health_check(
    hosted: Hosting, tmp_path: Path, heard: Heard, loss: str
) -> None:
    heard.may_fail = True
    with hosted(tmp_path) as server:
        server.send(sample_frames("whole"))
        server.send(sample_frames("hurt"))
        jobs, archive = Jobs(server.services), server.services.archive
        with archive.read() as tx:
            run = tx.execute(sa.select(schema.runs).where(schema.runs.c.cluster == "hurt")).one()
        compact(archive, run.account_id, run.id, over=True)
        jobs.check_files()
        assert missing(server) == {"whole": 0, "hurt": 0}

        with archive.read() as tx:
            [(path, rows)] = [(file.path, file.rows) for file in files_of(tx, run.id) if file.name == "tasks"]
        data = archive.store.get(path)
        archive.store.delete(path)
        if loss == "cut off":
            archive.store.put(path, data[: len(data) // 2])
        jobs._do("files", jobs.check_files)

        assert missing(server) == {"whole": 0, "hurt": rows}
        ready = server.ask("GET", "/readyz/read")
        assert ready.status == 200
        assert f"{rows} rows of 1 cluster are missing" in ready.json()["checks"]["files"]
        (_, _, report) = Documents(server, 0)("/api/v1/clusters/hurt")
        answer = report["answer"]
        assert re.match(
            rf"{rows} of \d+ rows cannot be read: the .* Restore the file from a backup\.", answer["reason"]
        )

        archive.store.put(path, data)
        jobs._do("files", jobs.check_files)
        assert missing(server) == {"whole": 0, "hurt": 0}
        assert "files" not in server.ask("GET", "/readyz/read").json()["checks"]


def missing(server: HostedServer) -> dict[str, int]:
    items = server.ask("GET", "/api/v1/clusters").json()["items"]
    return {item["id"]: item["missing_rows"] for item in items}
