"""The parts a server stands on go away under load and come back: it says so, and nothing acknowledged is lost."""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from tests import services
from tests.gate import gate
from tests.server_process import ServerProcess, check_whole, patient_of

from daskscope.storage import schema
from daskscope.storage.doctor import Patient
from daskscope.testing.load import Load
from daskscope.testing.processes import until


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
            # An immediate shutdown: connections break, and it recovers from its log when it starts.
            os.kill(postgres.server.get_pid(), signal.SIGQUIT)
            until(lambda: not readiness(server)["ready"], "that the server says its database is away")
            assert readiness(server)["checks"]["database"] != "ok"
            until(
                lambda: postgres.server.get_pid() is None or _gone(postgres.server.get_pid()), "the end of PostgreSQL"
            )
            postgres.server.ensure_postgres_running()
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


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_an_object_store_that_refuses_for_a_while(tmp_path: Path) -> None:
    with services.weak_s3() as endpoint, gate(endpoint) as door:
        store = f"s3://{services.BUCKET}/outage"
        flags = ("--store", store, "--store-endpoint", door.endpoint, "--compact-after", "1")
        server = ServerProcess(tmp_path / "data", *flags, environment=services.ACCESS)
        server.start()
        load = Load(server.url, clusters=2)
        door.shut()
        load.start()
        try:
            # Batches do not need the store: they are taken all the while.
            until(lambda: len(load.ended) > 3, "lives while the store is away", 60)
            until(lambda: "compaction" in readiness(server)["checks"], "that the server says what it cannot do", 60)
            said = readiness(server)
            assert not said["ready"]
            assert "object store" in said["checks"]["compaction"]
            door.open()
        finally:
            load.stop()
        os.environ.update(services.ACCESS)
        patient = patient_of(server.data, store=store, endpoint=endpoint)
        until(lambda: all_compacted(patient), "the compaction once the store is back", 90)
        until(lambda: readiness(server)["ready"], "that all is well again")
        assert server.stop() == 0
        assert load.refused == []
        check_whole(load, patient)
