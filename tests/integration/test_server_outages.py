"""The database and the object store fail under load and recover: the server reports it and loses no acknowledged batch."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.helpers import services
from tests.helpers.gate import Gate, gate
from tests.helpers.load import Load
from tests.helpers.server_process import ServerProcess, archive_of, check_complete
from tests.helpers.waiting import until

from daskscope.storage import schema
from daskscope.storage.base.archive import Archive

STORE = f"s3://{services.BUCKET}/outage"
#: Run scripts/test -m slow -s tests/integration/test_server_outages.py to see the figures.
MINUTE = pytest.param(60, marks=[pytest.mark.slow, pytest.mark.timeout(900)])
#: A request to the store is retried for 2 s instead of 20. A compaction follows the last one after 1 s instead of 5, and the next
#: run follows at once instead of after twice the time that the last one took.
QUICK = {
    "daskscope.storage.base.blobs.RETRY_S": 2.0,
    "daskscope.server.jobs.COMPACT_EVERY_S": 1.0,
    "daskscope.server.jobs.PAUSE": 0.0,
}


def readiness(server: ServerProcess) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(f"{server.url}/readyz", timeout=20) as response:
            result: dict[str, Any] = json.loads(response.read())
    except urllib.error.HTTPError as error:
        result = json.loads(error.read())
    return result


def all_compacted(archive: Archive) -> bool:
    with archive.read() as tx:
        left = sa.select(sa.func.count()).where(schema.runs.c.buffered_nbytes > 0)
        return int(tx.execute(left).scalar_one()) == 0


def test_postgresql_crashes_and_recovers(tmp_path: Path) -> None:
    with services.postgres() as postgres:
        url = postgres.prepared()
        server = ServerProcess(tmp_path / "data", "--database", url, "--compact-after", "1", constants=QUICK)
        server.start()
        load = Load(server.url, clusters=3, token=server.secret, pause_s=0.02)
        load.start()
        try:
            until(lambda: load.ended, "the end of the first cluster", 60)
            crash_and_restart(postgres, server)
            before = load.acknowledged
            until(lambda: load.acknowledged > before + 50, "new batches", 60)
        finally:
            load.stop()
        until(lambda: readiness(server)["ready"], "a ready server")
        archive = archive_of(server.data, database=url)
        until(lambda: all_compacted(archive), "the compaction", 60)
        assert server.stop() == 0
        assert load.refused == []
        check_complete(load, archive)
        archive.database.close()


def crash_and_restart(postgres: services.Postgres, server: ServerProcess) -> None:
    # An immediate shutdown: connections break, and PostgreSQL recovers from its WAL when it starts.
    os.kill(postgres.server.get_pid(), signal.SIGQUIT)
    until(lambda: readiness(server)["checks"]["database"] != "ok", "the report of the outage")
    assert not readiness(server)["ready"]
    until(lambda: postgres.server.get_pid() is None or _gone(postgres.server.get_pid()), "the end of PostgreSQL")
    postgres.server.ensure_postgres_running()


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


class StoreOutage:
    """A server under load whose object store is behind a gate that is shut for a while."""

    def __init__(self, tmp_path: Path, proxy: Gate, *flags: str) -> None:
        self.proxy = proxy
        self.server = ServerProcess(
            tmp_path / "data", *flags, *self.flags(proxy.endpoint), environment=services.ACCESS, constants=QUICK
        )
        self.server.start()
        self.load = Load(self.server.url, clusters=2, token=self.server.secret, pause_s=0.02)
        self.said: dict[str, str] = {}
        self.took = 0.0

    @staticmethod
    def flags(endpoint: str) -> tuple[str, ...]:
        return ("--store", STORE, "--store-endpoint", endpoint, "--compact-after", "1")

    def refuse(self, seconds: float, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Shut the gate for at least so many seconds, and until the server reports the outage."""
        self.proxy.shut()
        self.load.start()
        shut = time.monotonic()
        try:
            # Batches do not need the store: they are acknowledged all the time.
            until(lambda: len(self.load.ended) > 3, "clusters that end during the outage", 60)
            until(lambda: "compaction" in readiness(self.server)["checks"], "the report of the outage", 60)
            self.said = readiness(self.server)["checks"]
            assert readiness(self.server)["ready"]
            assert "object store" in self.said["compaction"]
            meanwhile()
            until(lambda: time.monotonic() > shut + seconds, "the end of the outage", seconds + 1)
            before = self.load.acknowledged
            until(lambda: self.load.acknowledged > before, "a batch acknowledged at the end of the outage")
            self.took = time.monotonic() - shut
            self.proxy.open()
        finally:
            self.load.stop()

    def check(self, endpoint: str, database: str = "") -> None:
        archive = archive_of(self.server.data, database=database, store=STORE, endpoint=endpoint)
        began = time.monotonic()
        until(lambda: all_compacted(archive), "the compaction once the store is back", 400)
        until(lambda: set(readiness(self.server)["checks"].values()) == {"ok"}, "a server without problems")
        caught_up = time.monotonic() - began
        assert self.server.stop() == 0
        assert self.load.refused == []
        check_complete(self.load, archive)
        archive.database.close()
        load = self.load
        print(  # noqa: T201 (the figures of a run with -s)
            f"store outage of {self.took:.0f} s: {load.acknowledged:,} batches acknowledged ({load.repeated} sent again), "
            f"{len(load.ended)} clusters, {load.tasks:,} tasks, each there once; compacted {caught_up:.0f} s later; "
            f"it said {self.said}"
        )


@pytest.fixture
def access(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in services.ACCESS.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("access")
@pytest.mark.parametrize("seconds", [0, MINUTE])
def test_an_object_store_outage(tmp_path: Path, seconds: float) -> None:
    with services.weak_s3() as endpoint, gate(endpoint) as proxy:
        outage = StoreOutage(tmp_path, proxy)
        outage.refuse(seconds)
        outage.check(endpoint)


@pytest.mark.usefixtures("access")
@pytest.mark.parametrize("seconds", [MINUTE])
def test_an_object_store_outage_while_postgresql_crashes(tmp_path: Path, seconds: float) -> None:
    with services.postgres() as postgres, services.weak_s3() as endpoint, gate(endpoint) as proxy:
        url = postgres.prepared()
        outage = StoreOutage(tmp_path, proxy, "--database", url)

        def crash() -> None:
            crash_and_restart(postgres, outage.server)
            before = outage.load.acknowledged
            until(lambda: outage.load.acknowledged > before + 50, "new batches", 60)

        outage.refuse(seconds, crash)
        outage.check(endpoint, url)
