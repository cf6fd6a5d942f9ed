"""What a server does by itself: a large run is rendered before somebody asks for it, and what was left behind is removed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.integration.conftest import Heard
from tests.services import Hosting

from daskscope.server import jobs as jobs_module
from daskscope.server import rendering
from daskscope.server.failure import not_found
from daskscope.server.jobs import UPLOAD_AGE_S, Jobs, remove_uploads
from daskscope.storage import compaction, schema
from daskscope.storage.blobs import LocalStore
from daskscope.storage.compaction import compact
from daskscope.testing.factories import make_frames
from daskscope.testing.hosted import HostedServer, MovingClock
from daskscope.testing.samples import sample_frames, sample_tables


def test_a_large_run_that_is_over_is_rendered_ahead(
    hosted: Hosting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_module, "RENDER_TASKS", 3)
    clock = MovingClock()
    with hosted(tmp_path, clock=clock) as server:
        assert server.send(b"".join(make_frames(sample_tables("large", ended=True), cluster="large"))).status == 200
        clock.move(seconds=300)

        Jobs(server.services).compact()

        with server.services.database.read() as connection:
            made = set(connection.execute(sa.select(schema.renderings.c.subject)).scalars())
        assert made == {"", "sample-comp"}
        before = server.services.counters.get("compactions")
        assert before == 1
        # Opened now, it is only read.
        answer = server.ask("GET", "/api/v1/clusters/large/view/report.json")
        assert answer.status == 200
        with server.services.database.read() as connection:
            again = connection.execute(sa.select(sa.func.count()).select_from(schema.renderings)).scalar_one()
        assert again == 2


def test_a_small_run_is_not(hosted: Hosting, tmp_path: Path) -> None:
    clock = MovingClock()
    with hosted(tmp_path, clock=clock) as server:
        assert server.send(b"".join(make_frames(sample_tables("small", ended=True), cluster="small"))).status == 200
        clock.move(seconds=300)

        Jobs(server.services).compact()

        with server.services.database.read() as connection:
            assert connection.execute(sa.select(sa.func.count()).select_from(schema.renderings)).scalar_one() == 0
            assert connection.execute(sa.select(sa.func.count()).select_from(schema.files)).scalar_one() > 0


def buffered(server: HostedServer) -> list[str]:
    """Clusters that wait for a compaction."""
    with server.services.database.read() as connection:
        waiting = sa.select(schema.runs.c.cluster).where(schema.runs.c.buffered_nbytes > 0)
        return sorted(connection.execute(waiting).scalars())


def test_a_run_that_cannot_be_rendered_ahead_is_told_of_and_keeps_nothing_from_being_done(
    hosted: Hosting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heard: Heard
) -> None:
    """A recorder may send rows that are beyond what can be drawn; its account's trouble is not the server's."""
    monkeypatch.setattr(jobs_module, "RENDER_TASKS", 3)
    of_run = rendering.of_run

    def failing(services: Any, account: int, run: int, title: str, computation: str = "") -> Any:
        if title.startswith("bad"):
            raise OverflowError("cannot convert float infinity to integer")
        return of_run(services, account, run, title, computation)

    monkeypatch.setattr(rendering, "of_run", failing)
    clock = MovingClock()
    with hosted(tmp_path, clock=clock) as server:
        for name in ("bad", "good"):
            assert server.send(sample_frames(name, name, ended=True)).status == 200
        clock.move(seconds=300)
        jobs = Jobs(server.services)
        jobs._do("compaction", jobs.compact)
        assert [line for line in heard.lines if "cannot be rendered ahead: cannot convert float infinity" in line]
        assert server.ask("GET", "/readyz").status == 200
        assert buffered(server) == []
        with server.services.database.read() as connection:
            assert connection.execute(sa.select(sa.func.count()).select_from(schema.renderings)).scalar_one() == 2


def test_a_cluster_that_is_deleted_before_it_is_rendered_ahead_is_no_failure(
    hosted: Hosting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heard: Heard
) -> None:
    monkeypatch.setattr(jobs_module, "RENDER_TASKS", 3)

    def deleted(*_: Any) -> Any:
        raise not_found("such cluster")

    monkeypatch.setattr(rendering, "of_run", deleted)
    clock = MovingClock()
    with hosted(tmp_path, clock=clock) as server:
        assert server.send(sample_frames("c", ended=True)).status == 200
        clock.move(seconds=300)
        Jobs(server.services).compact()
        assert not [line for line in heard.lines if "rendered ahead" in line]


def test_what_one_pass_leaves_is_compacted_in_the_same_round(
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


def test_of_two_servers_that_compact_a_run_the_slower_is_well_and_goes_on(hosted: Hosting, tmp_path: Path) -> None:
    clock = MovingClock()
    with hosted(tmp_path, clock=clock) as slow, hosted(tmp_path, clock=clock) as fast:
        services = slow.services
        assert slow.send(sample_frames("c", epoch=1)).status == 200
        compact(services.database, services.vault, services.store, services.local_account, 1, clock(), over=False)
        assert slow.send(sample_frames("c", "later", epoch=2, ended=True)).status == 200
        clock.move(seconds=300)

        class Overtaken(LocalStore):
            done = False

            def get(self, path: str) -> bytes:
                if not self.done and "/runs/" in path:
                    self.done = True
                    Jobs(fast.services).compact()
                    # Something for the rest of the round.
                    assert slow.send(sample_frames("d", ended=True)).status == 200
                    clock.move(seconds=300)
                return super().get(path)

        services.store = Overtaken(Path(slow.settings.store_url))
        jobs = Jobs(services)
        jobs._do("compaction", jobs.compact)
        assert services.problems == {}
        assert buffered(slow) == []


def test_uploads_of_a_server_that_was_killed_are_removed_and_no_others(tmp_path: Path) -> None:
    now = time.time()
    for name, age in (("upload-old", 2 * UPLOAD_AGE_S), ("upload-young", 60.0), ("other-old", 2 * UPLOAD_AGE_S)):
        file = tmp_path / name / "upload.daskscope"
        file.parent.mkdir()
        file.write_bytes(b"plain")
        for path in (file, file.parent):
            os.utime(path, (now - age, now - age))
    # One that began long ago and is still written.
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
