"""A server killed under load, or on a disk that is full: whatever it acknowledged is there, once."""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.server_process import ServerProcess, check_whole, patient_of

from daskscope.storage import schema
from daskscope.testing.load import Load
from daskscope.testing.processes import until


def killed_again_and_again(tmp_path: Path, times: int) -> None:
    chance = random.Random(times)
    server = ServerProcess(tmp_path / "data", "--compact-after", "1")
    server.start()
    load = Load(server.url)
    load.start()
    try:
        for _ in range(times):
            time.sleep(chance.uniform(0.1, 1.5))
            server.kill()
            server.start()
    finally:
        load.stop()
    patient = patient_of(server.data)

    def compacted() -> bool:
        with patient.database.read() as connection:
            left = sa.select(sa.func.count()).where(schema.runs.c.buffered_nbytes > 0)
            return connection.execute(left).scalar_one() == 0

    until(compacted, "the compaction of what the kills left", 60)
    assert server.stop() == 0
    assert load.refused == []
    assert load.repeated > 0
    assert len(load.ended) >= load.clusters
    check_whole(load, patient)
    print(  # noqa: T201 (the figures for whoever asked for them)
        f"{times} kills, {load.acknowledged:,} batches acknowledged ({load.repeated} sent again), "
        f"{len(load.ended)} clusters, {load.tasks:,} tasks, each there once"
    )


def test_whatever_a_killed_server_acknowledged_is_there_once(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, 4)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_fifty_kills(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, 50)


def fill(file: Path) -> None:
    """Make a file as large as its disk lets it be, to the last page."""
    with file.open("ab", buffering=0) as ballast:
        for size in (65536, 4096):
            try:
                while ballast.write(b"\0" * size) == size:
                    pass
            except OSError:
                continue


def test_a_full_disk_is_said_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    """The data directory is a file system of a few megabytes that fills up under the server, and is emptied again."""
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
        load = Load(server.url, clusters=2, rows=50)
        load.start()
        until(lambda: load.ended, "the first cluster's life", 60)
        ballast = disk / "ballast"

        def said() -> bool:
            # Again and again: the server gives room back when it compacts, and could go on for a while.
            fill(ballast)
            return "does not take batches" in server.log()

        until(said, "that the server says its disk is full", 60)
        assert "full" in server.log()
        before = load.acknowledged
        ballast.unlink()
        until(lambda: load.acknowledged > before + 50, "that it goes on once there is room", 60)
        load.stop()
        assert server.stop() == 0
        assert load.refused == []
        check_whole(load, patient_of(server.data))
    finally:
        if server.process is not None and server.process.poll() is None:
            server.kill()
        subprocess.run(["umount", "-l", disk], check=False)
