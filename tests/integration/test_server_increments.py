"""A page that follows a live cluster gets each execution once, from whichever server it asks."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask.config
import distributed
import pytest
from tests.helpers.archive import frame, task
from tests.helpers.hosted import HostedServer
from tests.helpers.increment_reader import Decoded, Reader
from tests.helpers.services import Postgres
from tests.helpers.waiting import until

from daskscope import analytics
from daskscope.server.increments import IncrementHistory, known_until_us, window_s
from daskscope.storage.catalog.clusters import find_cluster
from daskscope.storage.runs.compaction import compact
from daskscope.testing import make_recording


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HostedServer]:
    with HostedServer(tmp_path) as server:
        yield server


def now_us() -> int:
    return time.time_ns() // 1000


def cluster_row(**more: Any) -> dict[str, Any]:
    now = now_us()
    return {"cluster": "c", "name": "live", "seen_us": now, "start_us": now - 60_000_000, **more}


def executions(first: int, count: int, **more: Any) -> list[dict[str, Any]]:
    stop = now_us() - 1_000_000
    return [task(n, key=f"key-{n}", start_us=stop - 500_000, stop_us=stop, **more) for n in range(first, first + count)]


def tasks(sequence: int, first: int, count: int, **more: Any) -> bytes:
    return frame("tasks", executions(first, count, **more), sequence, kept=first + count)


def begin(server: HostedServer) -> None:
    assert server.send(frame("clusters", [cluster_row()], 0), tasks(1, 0, 3)).status == 200


def test_a_page_gets_every_execution_once(server: HostedServer) -> None:
    begin(server)
    reader = Reader("c")
    assert reader.read(server).header["is_first"]
    for sequence in range(2, 6):
        server.send(tasks(sequence, 10 * sequence, 4))
        assert not reader.read(server).header["is_first"]
    assert sorted(reader.keys) == sorted(
        [f"key-{n}" for n in (0, 1, 2)] + [f"key-{10 * s + n}" for s in range(2, 6) for n in range(4)]
    )
    assert reader.read(server).header["keys"] == []


def test_a_request_is_answered_as_soon_as_a_batch_arrives(server: HostedServer) -> None:
    begin(server)
    reader = Reader("c")
    reader.read(server)
    answers: list[Decoded] = []
    waiting = threading.Thread(target=lambda: answers.append(reader.read(server, wait=25)))
    waiting.start()
    until(lambda: server.services.live.listening, "the request to wait")
    assert not answers
    server.send(tasks(2, 50, 1))
    waiting.join(20)
    assert answers[0].header["keys"] == ["key-50"]
    assert not server.services.live.listening


def test_a_request_without_news_ends_after_its_wait(server: HostedServer) -> None:
    begin(server)
    reader = Reader("c")
    reader.read(server)
    cursor = reader.cursor
    found = reader.read(server, wait=0.2)
    assert (found.header["keys"], found.header["cursor"], found.header["is_live"]) == ([], cursor, True)


def test_a_cluster_that_ended_is_not_waited_for(server: HostedServer) -> None:
    begin(server)
    server.send(frame("clusters", [cluster_row(end_us=now_us(), end_reason="closed")], 2))
    reader = Reader("c")
    reader.read(server)
    assert not reader.read(server, wait=25).header["is_live"]


def test_what_is_known_of_a_silent_cluster(server: HostedServer) -> None:
    """An idle one sends every half minute only, and its threads are idle meanwhile; of a working one, rows are still to come."""
    begin(server)
    with server.services.archive.read() as tx:
        cluster = find_cluster(tx, server.services.local_account, "c")
    assert cluster is not None
    now = cluster.seen_us + 20_000_000
    tables = {"tasks": [task(0, stop_us=cluster.seen_us + 4_000_000), task(1, stop_us=now + 9_000_000)]}
    assert known_until_us(cluster, make_recording({}), now) == cluster.seen_us
    assert known_until_us(cluster, make_recording(tables), now) == cluster.seen_us + 4_000_000
    assert known_until_us(replace(cluster, state="idle"), make_recording({}), now) == now


def test_only_one_computation(server: HostedServer) -> None:
    server.send(frame("clusters", [cluster_row()], 0), tasks(1, 0, 2, computation="a"), tasks(2, 5, 1, computation="b"))
    reader = Reader("c", computation="b")
    header = reader.read(server).header
    assert reader.keys == ["key-5"]
    assert header["is_first"] and header["history"] is None, "the sums of the cluster include other computations"


def test_a_page_continues_after_a_compaction(server: HostedServer) -> None:
    begin(server)
    reader = Reader("c")
    reader.read(server)
    archive = server.services.archive
    with archive.read() as tx:
        row = find_cluster(tx, server.services.local_account, "c")
    assert row is not None
    server.send(tasks(2, 10, 2))
    compact(archive, server.services.local_account, row.id, over=False)
    server.send(tasks(3, 20, 1))
    # The rows that the page missed are no longer in batches: it gets everything again.
    assert reader.read(server).header["is_first"]
    assert sorted(reader.keys) == sorted(f"key-{n}" for n in (0, 1, 2, 10, 11, 20))
    server.send(tasks(4, 30, 1))
    assert not reader.read(server).header["is_first"]


def test_history_covers_the_time_before_the_window(server: HostedServer) -> None:
    hour_ago = now_us() - 3600_000_000
    old = [task(n, start_us=hour_ago, stop_us=hour_ago + 2_000_000) for n in range(5)]
    server.send(
        frame("clusters", [cluster_row(start_us=hour_ago - 1_000_000)], 0),
        frame("tasks", old, 1, kept=5),
        tasks(2, 10, 1),
    )
    found = Reader("c").read(server)
    assert found.header["keys"] == ["key-10"]
    history = found.header["history"]
    assert sum(history["tasks"]) == 6
    assert sum(history["us"]) == 5 * 2_000_000 + 500_000


@pytest.mark.parametrize(
    ("tasks_per_step", "seconds"), [([1] * 90, 600), ([50_000] * 90, 40), ([10**9] * 90, 30), ([5], 600), ([], 600)]
)
def test_the_first_increment_of_a_busy_run_covers_less_time(tasks_per_step: list[int], seconds: int) -> None:
    count = len(tasks_per_step)
    history: IncrementHistory = {
        "step": 10.0,
        "seconds": list(range(0, 10 * count, 10)),
        "us": [0] * count,
        "tasks": tasks_per_step,
        "errors": [0] * count,
    }
    assert window_s(history) == seconds


@pytest.mark.parametrize(
    "cursor", ["x", "1", "1.2", "1.2.3-", "a.b.c", "-1.2.3", "1.2.3.4", "9" * 40, "1.2.3-" * 60 + "1.2.3"]
)
def test_an_invalid_cursor_is_refused(server: HostedServer, cursor: str) -> None:
    begin(server)
    answer = Reader("c", cursor=cursor).ask(server)
    assert (answer.status, answer.code) == (400, "bad_request")


@pytest.mark.parametrize("cursor", ["1.999999.5", "7.1.1", "1.0.0", "0.0.0"])
def test_a_cursor_that_does_not_fit_starts_anew_or_continues(server: HostedServer, cursor: str) -> None:
    begin(server)
    reader = Reader("c", cursor=cursor)
    reader.read(server)
    server.send(tasks(2, 10, 1))
    reader.read(server)
    assert "key-10" in reader.keys


@pytest.mark.parametrize("wait", ["-1", "26", "nan", "x"])
def test_an_invalid_wait_is_refused(server: HostedServer, wait: str) -> None:
    begin(server)
    assert server.ask("GET", f"/api/v1/clusters/c/increments?wait={wait}").status == 400


def test_another_account_sees_nothing(tmp_path: Path) -> None:
    with HostedServer(tmp_path, login=True) as server:
        server.make_account("ours", olga="owner")
        server.make_account("theirs", eve="owner")
        server.send(frame("clusters", [cluster_row()], 0), tasks(1, 0, 3), token=server.make_token("olga", "ours"))
        mine = Reader("c", token=server.make_token("olga", "ours", "read"))
        mine.read(server)
        assert len(mine.keys) == 3
        other = Reader("c", token=server.make_token("eve", "theirs"), cursor=mine.cursor)
        assert other.ask(server).status == 404


def test_a_removed_member_waits_no_longer(tmp_path: Path) -> None:
    with HostedServer(tmp_path, login=True) as server:
        server.make_account("ours", olga="owner", max="member")
        server.send(frame("clusters", [cluster_row()], 0), tasks(1, 0, 3), token=server.make_token("olga", "ours"))
        reader = Reader("c", token=server.make_token("max", "ours", "read"))
        reader.read(server)
        statuses: list[int] = []
        waiting = threading.Thread(target=lambda: statuses.append(reader.ask(server, wait=25).status))
        waiting.start()
        until(lambda: server.services.live.listening, "the request to wait")
        owner = server.make_session("olga")
        assert server.ask("DELETE", "/api/v1/members/max", session=owner).status == 200
        waiting.join(20)
        assert not waiting.is_alive()
        assert reader.ask(server).status in (401, 403)


def test_any_replica_continues_from_the_cursor_of_another(tmp_path: Path, postgres: Postgres) -> None:
    shared: dict[str, Any] = {
        "database": postgres.prepared(),
        "store": str(tmp_path / "blobs"),
        "key_file": str(tmp_path / "master.key"),
    }
    with HostedServer(tmp_path / "one", **shared) as one, HostedServer(tmp_path / "two", **shared) as two:
        begin(one)
        reader = Reader("c")
        for sequence in range(2, 10):
            reader.read((one, two)[sequence % 2])
            (two, one)[sequence % 3 == 0].send(tasks(sequence, 10 * sequence, 2))
        reader.read(one)
        assert reader.resets == 1
        assert len(reader.keys) == len(set(reader.keys)) == 3 + 8 * 2


def rest(number: int) -> int:
    time.sleep(0.01)
    return number


def test_keys_of_a_real_cluster(server: HostedServer, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The truth is the list of keys that the client submitted."""
    monkeypatch.setenv("DASKSCOPE_TOKEN", server.secret)
    with dask.config.set({"daskscope.server": server.url}):
        analytics.register(client)
    reader = Reader(client.scheduler_info()["id"])
    submitted: list[str] = []
    for _ in range(4):
        futures = client.map(rest, range(25), pure=False)
        distributed.wait(futures)
        submitted += [future.key for future in futures]
        while len(reader.keys) < len(submitted):
            reader.read(server, wait=20)
    assert sorted(reader.keys) == sorted(submitted)
    assert reader.resets == 1
