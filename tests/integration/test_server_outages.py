"""The parts a server stands on go away under load and come back: it says so, and nothing acknowledged is lost."""

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
from tests import services
from tests.gate import Gate, gate
from tests.server_process import ServerProcess, check_whole, patient_of

from daskscope.storage import schema
from daskscope.storage.doctor import Patient
from daskscope.testing.load import Load
from daskscope.testing.processes import until

STORE = f"s3://{services.BUCKET}/outage"
#: With scripts/test -m slow -s tests/integration/test_server_outages.py, which prints the figures.
MINUTE = pytest.param(60, marks=[pytest.mark.slow, pytest.mark.timeout(900)])


def readiness(server: ServerProcess) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(f"{server.url}/readyz", timeout=20) as response:
            result: dict[str, Any] = json.loads(response.read())
    except urllib.error.HTTPError as error:
        result = json.loads(error.read())
    return result


def all_compacted(patient: Patient) -> bool:
    with patient.database.read() as connection:
        left = sa.select(sa.func.count()).where(schema.runs.c.buffered_nbytes > 0)
        return connection.execute(left).scalar_one() == 0


def test_postgresql_that_crashes_and_comes_back(tmp_path: Path) -> None:
    with services.postgres() as postgres:
        url = postgres.prepared()
        server = ServerProcess(tmp_path / "data", "--database", url, "--compact-after", "1")
        server.start()
        load = Load(server.url, clusters=3)
        load.start()
        try:
            until(lambda: load.ended, "the first cluster's life", 60)
            crash_and_return(postgres, server)
            before = load.acknowledged
            until(lambda: load.acknowledged > before + 50, "that it goes on", 60)
        finally:
            load.stop()
        until(lambda: readiness(server)["ready"], "that all is well again")
        patient = patient_of(server.data, database=url)
        until(lambda: all_compacted(patient), "the compaction", 60)
        assert server.stop() == 0
        assert load.refused == []
        check_whole(load, patient)
        patient.database.close()


def crash_and_return(postgres: services.Postgres, server: ServerProcess) -> None:
    # An immediate shutdown: connections break, and it recovers from its log when it starts.
    os.kill(postgres.server.get_pid(), signal.SIGQUIT)
    until(lambda: readiness(server)["checks"]["database"] != "ok", "that the server says its database is away")
    assert not readiness(server)["ready"]
    until(lambda: postgres.server.get_pid() is None or _gone(postgres.server.get_pid()), "the end of PostgreSQL")
    postgres.server.ensure_postgres_running()


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


class StoreAway:
    """A server whose object store lies behind a door, under load; the door is shut for a while, and all is well in the end."""

    def __init__(self, tmp_path: Path, door: Gate, *flags: str) -> None:
        self.door = door
        self.server = ServerProcess(tmp_path / "data", *flags, *self.flags(door.endpoint), environment=services.ACCESS)
        self.server.start()
        self.load = Load(self.server.url, clusters=2)
        self.said: dict[str, str] = {}
        self.took = 0.0

    @staticmethod
    def flags(endpoint: str) -> tuple[str, ...]:
        return ("--store", STORE, "--store-endpoint", endpoint, "--compact-after", "1")

    def refuse(self, seconds: float, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Shut the door for at least so long, and at least until the server says what it cannot do."""
        self.door.shut()
        self.load.start()
        shut = time.monotonic()
        try:
            # Batches do not need the store: they are taken all the while.
            until(lambda: len(self.load.ended) > 3, "lives while the store is away", 60)
            until(
                lambda: "compaction" in readiness(self.server)["checks"], "that the server says what it cannot do", 60
            )
            self.said = readiness(self.server)["checks"]
            assert not readiness(self.server)["ready"]
            assert "object store" in self.said["compaction"]
            meanwhile()
            until(lambda: time.monotonic() > shut + seconds, "the end of the outage", seconds + 1)
            before = self.load.acknowledged
            until(lambda: self.load.acknowledged > before, "a batch that is taken at the end of the outage")
            self.took = time.monotonic() - shut
            self.door.open()
        finally:
            self.load.stop()

    def check(self, endpoint: str, database: str = "") -> None:
        patient = patient_of(self.server.data, database=database, store=STORE, endpoint=endpoint)
        began = time.monotonic()
        until(lambda: all_compacted(patient), "the compaction once the store is back", 400)
        until(lambda: readiness(self.server)["ready"], "that all is well again")
        caught_up = time.monotonic() - began
        assert self.server.stop() == 0
        assert self.load.refused == []
        check_whole(self.load, patient)
        patient.database.close()
        load = self.load
        print(  # noqa: T201 (the figures for whoever asked for them)
            f"the store away for {self.took:.0f} s: {load.acknowledged:,} batches acknowledged ({load.repeated} sent again), "
            f"{len(load.ended)} clusters, {load.tasks:,} tasks, each there once; compacted {caught_up:.0f} s later; "
            f"it said {self.said}"
        )


@pytest.fixture
def access(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in services.ACCESS.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("access")
@pytest.mark.parametrize("seconds", [0, MINUTE])
def test_an_object_store_that_refuses_for_a_while(tmp_path: Path, seconds: float) -> None:
    with services.weak_s3() as endpoint, gate(endpoint) as door:
        away = StoreAway(tmp_path, door)
        away.refuse(seconds)
        away.check(endpoint)


@pytest.mark.usefixtures("access")
@pytest.mark.parametrize("seconds", [MINUTE])
def test_an_object_store_that_refuses_while_postgresql_crashes(tmp_path: Path, seconds: float) -> None:
    with services.postgres() as postgres, services.weak_s3() as endpoint, gate(endpoint) as door:
        url = postgres.prepared()
        away = StoreAway(tmp_path, door, "--database", url)

        def crash() -> None:
            crash_and_return(postgres, away.server)
            before = away.load.acknowledged
            until(lambda: away.load.acknowledged > before + 50, "that it goes on", 60)

        away.refuse(seconds, crash)
        away.check(endpoint, url)
