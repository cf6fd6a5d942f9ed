"""PostgreSQL stops answering without closing its connections, as after a failover: the server says so, and recovers."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.helpers import services
from tests.helpers.gate import Gate, gate
from tests.helpers.load import Load
from tests.helpers.samples import sample_frames
from tests.helpers.server_process import ServerProcess, archive_of, check_complete
from tests.helpers.waiting import until

from daskscope.collector.delivery import poster as posters
from daskscope.collector.delivery.poster import poster
from daskscope.server.routes.ingest import ANSWER_S
from daskscope.storage.base.database import Database, DatabaseError, database_problem, is_outage

#: A statement is given up on after its timeout and another second instead of five, and requests end two seconds after the server is
#: told to stop instead of ten.
QUICK = {"daskscope.storage.base.postgresql.SPARE_S": 1.0, "daskscope.server.run.GRACE_S": 2}


@dataclass
class Failover:
    """A server whose database is behind a gate."""

    server: ServerProcess
    proxy: Gate
    database: str

    def ask(self, path: str, body: bytes | None = None) -> tuple[int, dict[str, Any]]:
        headers = {"Authorization": f"Bearer {self.server.secret}"}
        request = urllib.request.Request(self.server.url + path, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, json.loads(response.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())


def through(proxy: Gate, url: str) -> str:
    """Return the URL of a database by way of the gate."""
    name = sa.make_url(url).database
    return f"postgresql://postgres:@127.0.0.1:{proxy.endpoint.rpartition(':')[2]}/{name}"


@pytest.fixture
def timeout() -> str:
    return "1"


@pytest.fixture
def failover(tmp_path: Path, postgres: services.Postgres, timeout: str) -> Iterator[Failover]:
    url = postgres.prepared()
    directory = sa.make_url(url).query["host"]
    with gate(f"{directory}/.s.PGSQL.5432") as proxy:
        flags = ("--database", through(proxy, url), "--database-timeout", timeout, "--compact-after", "1")
        server = ServerProcess(tmp_path / "data", *flags, constants=QUICK)
        server.start()
        yield Failover(server, proxy, url)
        if server.process is not None and server.process.poll() is None:
            server.kill()


def test_a_silent_database_is_reported_and_every_batch_arrives_once(failover: Failover) -> None:
    server, proxy = failover.server, failover.proxy
    assert failover.ask("/readyz")[0] == 200
    load = Load(server.url, clusters=3, token=server.secret)
    load.start()
    try:
        until(lambda: load.ended, "the end of the first cluster", 60)
        proxy.freeze()
        until(lambda: failover.ask("/readyz")[0] == 503, "the report of the outage", 60)
        status, view = failover.ask("/readyz")
        assert (status, view["ready"]) == (503, False)
        assert "database" in view["roles"]["ingest"]
        # Every request is answered, although the database never is.
        assert failover.ask("/api/v1/ingest", sample_frames("c"))[0] == 503
        assert failover.ask("/api/v1/clusters")[0] == 503
        assert failover.ask("/healthz")[0] == 200
        proxy.thaw()
        before = load.acknowledged
        until(lambda: load.acknowledged > before + 50, "new batches", 60)
    finally:
        load.stop()
    until(lambda: failover.ask("/readyz")[0] == 200, "a ready server")
    assert server.stop() == 0
    assert load.refused == []
    archive = archive_of(server.data, database=failover.database)
    check_complete(load, archive)
    archive.database.close()


@pytest.mark.parametrize("timeout", ["2"])
def test_a_recorder_waits_until_the_server_gives_up_on_its_database(
    failover: Failover, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It waits longer for a reply than for a connection, and than the server takes for any reply.
    monkeypatch.setattr(posters, "CONNECT_TIMEOUT", 1.0)
    assert posters.TIMEOUT > ANSWER_S
    server = failover.server
    post = poster(server.url, server.secret)
    assert post(sample_frames("c")).status == 200
    failover.proxy.freeze()
    reply = post(sample_frames("d"))
    # Not 0: a recorder that does not wait sends the same body again and again.
    assert (reply.status, reply.code) == (503, "unavailable")
    assert reply.retry_after > 0
    failover.proxy.thaw()
    until(lambda: post(sample_frames("d")).status == 200, "the batch", 60)
    assert server.stop() == 0


@pytest.mark.parametrize("timeout", ["300"])
def test_a_server_stops_although_its_database_is_silent(failover: Failover) -> None:
    def send(number: int) -> None:
        # A request in progress may end without an answer, or with a plain text.
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            failover.ask("/api/v1/ingest", sample_frames(f"c{number}"))

    failover.proxy.freeze()
    senders = [threading.Thread(target=send, args=(number,)) for number in range(8)]
    for sender in senders:
        sender.start()
    until(lambda: failover.ask("/readyz")[0] == 503, "the report of the outage", 60)
    assert failover.server.stop() == 0
    for sender in senders:
        sender.join(60)


def test_a_silent_statement_and_a_slow_one_are_outages(
    postgres: services.Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daskscope.storage.base.postgresql.SPARE_S", 1.0)
    url = postgres.prepared()
    with gate(f"{sa.make_url(url).query['host']}/.s.PGSQL.5432") as proxy:
        database = Database(through(proxy, url), statement_s=1)
        with pytest.raises(DatabaseError) as slow, database.read() as connection:
            connection.execute(sa.text("SELECT pg_sleep(60)"))
        assert "statement timeout" in str(slow.value)
        with pytest.raises(DatabaseError) as silent, database.read() as connection:
            proxy.freeze()
            connection.execute(sa.text("SELECT 1"))
        for error in (slow.value, silent.value):
            assert (is_outage(error), database_problem(error)) == (True, "the database does not answer in time")
        proxy.thaw()
        # The pool replaces the connection.
        with database.read() as connection:
            assert connection.execute(sa.text("SELECT 1")).scalar() == 1
        # Nothing waits once the server must stop.
        patient = Database(through(proxy, url))
        with pytest.raises(DatabaseError), patient.read() as connection:
            patient.abort()
            connection.execute(sa.text("SELECT pg_sleep(60)"))
        for one in (database, patient):
            one.close()
