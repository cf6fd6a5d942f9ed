"""Documents of a live run on two servers: built once, and shown by both although batches keep arriving."""

from __future__ import annotations

import http.client
import itertools
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.helpers.hosted import FRAMES, HttpResponse
from tests.helpers.samples import sample_frames, sample_tables
from tests.helpers.server_process import ServerProcess
from tests.helpers.services import Postgres

from daskscope.storage import schema
from daskscope.storage.base.database import Database
from daskscope.testing import make_frames

DOCUMENT = "/api/v1/clusters/c/document"


@pytest.fixture
def replicas(tmp_path: Path, postgres: Postgres) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    url, store, key = postgres.prepared(), str(tmp_path / "blobs"), str(tmp_path / "master.key")
    flags = ("--database", url, "--store", store, "--key-file", key)
    pair = ServerProcess(tmp_path / "one", *flags), ServerProcess(tmp_path / "two", *flags)
    for server in pair:
        server.start()
    yield pair
    for server in pair:
        assert server.stop() == 0


def ask(server: ServerProcess, path: str, body: bytes | None = None) -> HttpResponse:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        headers = {"Authorization": f"Bearer {server.secret}", "Content-Type": FRAMES}
        connection.request("POST" if body else "GET", path, body, headers)
        response = connection.getresponse()
        return HttpResponse(response.status, response.headers, response.read())


def builds(*servers: ServerProcess) -> int:
    """Return how many documents the servers have built."""
    texts = [ask(server, "/metrics").text for server in servers]
    return sum(int(n) for text in texts for n in re.findall(r"^daskscope_documents_total (\d+)", text, re.MULTILINE))


def tag_of(answer: HttpResponse) -> str:
    assert answer.status == 200, answer.body
    return answer.headers["ETag"].strip('"')


@contextmanager
def batches(server: ServerProcess) -> Iterator[threading.Event]:
    """Send small batches of the run all the time. The event is set with each."""
    ended, sent = threading.Event(), threading.Event()

    def send() -> None:
        for epoch in itertools.count(2):
            body = b"".join(make_frames({"tasks": sample_tables("c")["tasks"]}, cluster="c", epoch=epoch))
            assert ask(server, "/api/v1/ingest", body).status == 200
            sent.set()
            if ended.wait(0.01):
                return

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield sent
    finally:
        ended.set()
        thread.join()


def claim_tasks(server: ServerProcess, tasks: int) -> None:
    """Give the run the number of tasks of a large one, whose document is not built anew with every batch."""
    database = Database(server.flags[1])
    with database.write() as connection:
        connection.execute(sa.update(schema.runs).values(tasks=tasks))
    database.close()


def test_readers_of_a_live_run_share_one_document_on_both_servers(
    replicas: tuple[ServerProcess, ServerProcess],
) -> None:
    one, two = replicas
    assert ask(one, "/api/v1/ingest", sample_frames("c")).status == 200
    claim_tasks(one, 5_000_000)
    with batches(one) as sent, ThreadPoolExecutor(8) as threads:
        # All at once, and then one after the other.
        answers = list(threads.map(lambda n: ask(replicas[n % 2], f"{DOCUMENT}/report.json"), range(8)))
        for server in (one, two, one, two):
            sent.clear()
            assert sent.wait(30)
            answers.append(ask(server, f"{DOCUMENT}/report.json"))
        assert len({tag_of(answer) for answer in answers}) == 1
        assert builds(one, two) == 1

        column = answers[0].json()["stream"]["columns"]["gap"]["block"]
        blocks = [ask(server, f"{DOCUMENT}/blocks/{column}?of={tag_of(answers[0])}") for server in replicas]
        assert [block.status for block in blocks] == [200, 200]
        assert blocks[0].body == blocks[1].body


def test_columns_of_a_replaced_document_come_from_either_server(
    replicas: tuple[ServerProcess, ServerProcess],
) -> None:
    one, two = replicas
    assert ask(one, "/api/v1/ingest", sample_frames("c")).status == 200
    with batches(one) as sent:
        for builder, other in ((one, two), (two, one), (one, two)):
            # A small run: every reader gets the newest rows.
            sent.clear()
            assert sent.wait(30)
            before = ask(builder, f"{DOCUMENT}/report.json")
            sent.clear()
            assert sent.wait(30)
            assert tag_of(ask(other, f"{DOCUMENT}/report.json")) != tag_of(before)
            column = before.json()["stream"]["columns"]["gap"]["block"]
            assert ask(other, f"{DOCUMENT}/blocks/{column}?of={tag_of(before)}").status == 200


def test_a_run_that_has_ended_is_shown_to_its_end(replicas: tuple[ServerProcess, ServerProcess]) -> None:
    one, two = replicas
    # Both are created now: tasks that start before their scheduler are not part of its run.
    first, last = sample_frames("c"), sample_frames("c", "later", epoch=2, ended=True)
    assert ask(one, "/api/v1/ingest", first).status == 200
    claim_tasks(one, 5_000_000)
    before = ask(one, f"{DOCUMENT}/report.json")
    assert ask(one, "/api/v1/ingest", last).status == 200
    after = ask(two, f"{DOCUMENT}/report.json")
    assert tag_of(before) != tag_of(after)
    assert (before.json()["totals"]["tasks"], after.json()["totals"]["tasks"]) == (3, 6)


def test_the_build_of_a_killed_server_is_begun_anew(replicas: tuple[ServerProcess, ServerProcess]) -> None:
    one, two = replicas
    assert ask(one, "/api/v1/ingest", sample_frames("c")).status == 200
    database = Database(one.flags[1])
    with database.write() as connection:
        # As a server leaves it that is killed at this moment.
        run = connection.execute(sa.select(schema.runs.c.id)).scalar_one()
        now = int(connection.execute(sa.text("SELECT (extract(epoch FROM now()) * 1000000)::bigint")).scalar_one())
        row = {"run_id": run, "subject": "", "builder": "dead", "until_us": now + 3_000_000}
        connection.execute(sa.insert(schema.builds).values(row))
    database.close()
    assert ask(two, f"{DOCUMENT}/report.json").status == 200
    assert builds(one, two) == 1
