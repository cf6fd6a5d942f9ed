"""A server that is killed under load or runs out of disk space stores every acknowledged batch exactly once."""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.helpers.load import Load
from tests.helpers.server_process import ServerProcess, archive_of, check_complete
from tests.helpers.waiting import until

from daskscope.storage import schema


def kill_repeatedly(tmp_path: Path, times: int) -> None:
    chance = random.Random(times)
    server = ServerProcess(tmp_path / "data", "--compact-after", "1")
    server.start()
    load = Load(server.url, token=server.secret)
    load.start()
    try:
        for _ in range(times):
            time.sleep(chance.uniform(0.1, 1.5))
            server.kill()
            server.start()
    finally:
        load.stop()
    archive = archive_of(server.data)

    def compacted() -> bool:
        with archive.read() as tx:
            left = sa.select(sa.func.count()).where(schema.runs.c.buffered_nbytes > 0)
            return int(tx.execute(left).scalar_one()) == 0

    until(compacted, "the compaction of all batches", 60)
    assert server.stop() == 0
    assert load.refused == []
    assert load.repeated > 0
    assert len(load.ended) >= load.clusters
    check_complete(load, archive)
    print(  # noqa: T201 (the figures of a run with -s)
        f"{times} kills, {load.acknowledged:,} batches acknowledged ({load.repeated} sent again), "
        f"{len(load.ended)} clusters, {load.tasks:,} tasks, each there once"
    )


def test_batches_acknowledged_by_a_killed_server_are_stored_once(tmp_path: Path) -> None:
    kill_repeatedly(tmp_path, 4)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_fifty_kills(tmp_path: Path) -> None:
    kill_repeatedly(tmp_path, 50)


def fill(file: Path) -> None:
    """Make a file as large as its disk allows, to the last page."""
    with file.open("ab", buffering=0) as ballast:
        for size in (65536, 4096):
            try:
                while ballast.write(b"\0" * size) == size:
                    pass
            except OSError:
                continue


def test_a_full_disk_is_reported_and_no_acknowledged_batch_is_lost(tmp_path: Path) -> None:
    """The data directory is a file system of a few megabytes, which is filled and emptied under the running server."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", disk], check=False).returncode
    ):
        pytest.skip("a small file system cannot be mounted here")
    try:
        server = ServerProcess(disk / "data", "--compact-after", "1", log=tmp_path / "server.log")
        server.start()
        load = Load(server.url, clusters=2, rows=50, token=server.secret)
        load.start()
        until(lambda: load.ended, "the end of the first cluster", 60)
        ballast = disk / "ballast"

        def is_reported() -> bool:
            # Fill it repeatedly: compaction frees space, and the server could go on for a while.
            fill(ballast)
            return "cannot store batches" in server.log()

        until(is_reported, "the report of the full disk", 60)
        assert "full" in server.log()
        before = load.acknowledged
        ballast.unlink()
        until(lambda: load.acknowledged > before + 50, "new batches once there is space", 60)
        load.stop()
        assert server.stop() == 0
        assert load.refused == []
        check_complete(load, archive_of(server.data))
    finally:
        if server.process is not None and server.process.poll() is None:
            server.kill()
        subprocess.run(["umount", "-l", disk], check=False)
