"""Two servers on one PostgreSQL: pages of one see batches sent to the other, and each batch is counted once."""

from __future__ import annotations

import base64
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.helpers.hosted import HostedServer
from tests.helpers.load import Load
from tests.helpers.server_process import ServerProcess, archive_of, check_complete
from tests.helpers.services import Postgres
from tests.helpers.waiting import until

from daskscope.cli.main import main
from daskscope.client.server import Server
from daskscope.server import run as server_run
from daskscope.server.relay import MAX_BYTES, payloads
from daskscope.testing import make_columns
from daskscope.wire.encode import encode_body, seal


@pytest.fixture
def replicas(tmp_path: Path, postgres: Postgres) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    url, store, key = postgres.prepared(), str(tmp_path / "blobs"), str(tmp_path / "master.key")
    flags = ("--database", url, "--store", store, "--key-file", key, "--compact-after", "1")
    pair = ServerProcess(tmp_path / "one", *flags), ServerProcess(tmp_path / "two", *flags)
    for server in pair:
        server.start()
    yield pair
    for server in pair:
        assert server.stop() == 0
    archive = archive_of(tmp_path, database=url, store=store)
    archive.database.close()


def test_a_cluster_watched_at_one_server_is_watched_at_the_other(
    replicas: tuple[ServerProcess, ServerProcess],
) -> None:
    one, two = replicas
    body = encode_body("events", make_columns("events", [{"topic": "t"}]))
    frame = seal(body, cluster="c", epoch=1, sequence=0, kept=1, dropped=0)

    def pace() -> str:
        headers = {"Authorization": f"Bearer {two.secret}"}
        request = urllib.request.Request(f"{two.url}/api/v1/ingest", frame, headers=headers, method="POST")
        with closing(urllib.request.urlopen(request, timeout=60)) as answer:
            return str(answer.headers["Daskscope-Pace"])

    assert pace().startswith("watched=0")

    def look(path: str) -> None:
        request = urllib.request.Request(f"{one.url}/api/v1/{path}", headers={"Authorization": f"Bearer {one.secret}"})
        urllib.request.urlopen(request, timeout=60).close()

    look("clusters/c")
    until(lambda: pace().startswith("watched=1, followed=0"), "the notification")
    look("clusters/c/increments")
    until(lambda: pace().startswith("watched=1, followed=1"), "the notification")


def test_a_page_of_one_server_is_updated_about_batches_of_the_other(
    replicas: tuple[ServerProcess, ServerProcess],
) -> None:
    one, two = replicas
    received: list[str] = []

    def listen() -> None:
        request = urllib.request.Request(f"{two.url}/api/v1/live", headers={"Authorization": f"Bearer {two.secret}"})
        with closing(urllib.request.urlopen(request, timeout=60)) as stream:
            for line in stream:
                received.append(line.decode())
                if "data:" in received[-1]:
                    return

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    until(lambda: received, "the connection")
    load = Load(one.url, clusters=1, batches=2, token=one.secret)
    load.start()
    listener.join(20)
    load.stop()

    assert any('data: ["cluster-0-0"]' in line for line in received)


def test_a_member_removed_at_one_server_loses_the_stream_of_the_other(tmp_path: Path, postgres: Postgres) -> None:
    settings: dict[str, Any] = {
        "database": postgres.prepared(),
        "store": str(tmp_path / "blobs"),
        "key_file": str(tmp_path / "key"),
    }
    with (
        HostedServer(tmp_path / "one", login=True, **settings) as one,
        HostedServer(tmp_path / "two", login=True, **settings) as two,
    ):
        one.make_account("ours", olga="owner", mia="member")
        request = urllib.request.Request(f"{two.url}/api/v1/live")
        request.add_header("Authorization", f"Bearer {two.make_token('mia', 'ours')}")
        with closing(urllib.request.urlopen(request, timeout=60)) as stream:
            assert stream.readline() == b": connected\n"
            # The other server listens once its connection is up.
            until(lambda: listening(postgres), "the relays")
            assert one.ask("DELETE", "/api/v1/members/mia", session=one.make_session("olga")).status == 200
            assert stream.read() == b"\n"


def listening(postgres: Postgres) -> bool:
    """Return whether both servers wait for notifications."""
    engine = sa.create_engine(postgres.url("postgres").replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:
        query = sa.text("SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN daskscope_changed'")
        found = int(connection.execute(query).scalar_one())
    engine.dispose()
    return found >= 2


def test_clusters_that_send_to_both_servers_are_counted_once(
    replicas: tuple[ServerProcess, ServerProcess], tmp_path: Path
) -> None:
    one, two = replicas
    # The same clusters and batches, sent to both at once.
    loads = [Load(server.url, clusters=2, batches=6, token=server.secret) for server in (one, two)]
    for load in loads:
        load.start()
    until(lambda: all(len(load.ended) >= 4 for load in loads), "the end of some clusters", 60)
    for load in loads:
        load.stop()

    archive = archive_of(tmp_path, database=one.flags[1], store=str(tmp_path / "blobs"))
    for load in loads:
        assert load.refused == []
        check_complete(load, archive)
    archive.database.close()
    states = [Server(server.url, token=server.secret).get("clusters", since="all")["states"] for server in (one, two)]
    assert states[0] == states[1]


@pytest.mark.parametrize("login", [False, True], ids=["with an account", "without an account"])
def test_a_server_with_another_master_key_does_not_start(
    tmp_path: Path,
    postgres: Postgres,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    login: bool,
) -> None:
    # Its handlers would write to the captured stream after this test.
    monkeypatch.setattr(server_run, "set_up_logging", lambda _: None)
    database, store = postgres.prepared(), str(tmp_path / "blobs")
    settings: dict[str, Any] = {"database": database, "store": store, "login": login}
    flags = ("--database", database, "--store", store, *(["--login"] if login else []))
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "master.key").write_bytes(base64.b64encode(b"k" * 32))
    with HostedServer(tmp_path / "one", **settings):
        for data in (tmp_path / "two", tmp_path / "three"):
            assert main(["serve", "--data", str(data), "--port", "0", *flags]) == 1
            said = capsys.readouterr().err
            assert "not the one of its database" in said
            assert "--key-file" in said
        # It would be taken for the right one later.
        assert not (tmp_path / "three" / "master.key").exists()
        key = str(tmp_path / "one" / "master.key")
        with HostedServer(tmp_path / "four", key_file=key, **settings) as shared:
            assert shared.ask("GET", "/readyz").status == 200


def test_announcements_of_many_runs_are_split() -> None:
    runs = {(1, f"Scheduler-{number:036d}") for number in range(1000)}

    parts = list(payloads("me", runs))

    assert len(parts) > 1
    assert all(len(part.encode()) < MAX_BYTES + 200 for part in parts)
