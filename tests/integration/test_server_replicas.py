"""Two servers on one PostgreSQL: pages at one hear of what the other took, and each batch is counted once."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.server_process import ServerProcess, check_whole, patient_of
from tests.services import Postgres

from daskscope.client.server import Server
from daskscope.server.relay import MOST_BYTES, payloads
from daskscope.testing.load import Load
from daskscope.testing.processes import until


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
    patient = patient_of(tmp_path, database=url, store=store)
    patient.database.close()


def test_a_page_at_one_server_hears_of_what_the_other_took(replicas: tuple[ServerProcess, ServerProcess]) -> None:
    one, two = replicas
    heard: list[str] = []

    def listen() -> None:
        with closing(urllib.request.urlopen(f"{two.url}/api/v1/live", timeout=60)) as stream:
            for line in stream:
                heard.append(line.decode())
                if "data:" in heard[-1]:
                    return

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    until(lambda: heard, "the connection")
    load = Load(one.url, clusters=1, batches=2)
    load.start()
    listener.join(20)
    load.stop()

    assert any('data: ["cluster-0-0"]' in line for line in heard)


def test_clusters_that_send_to_both_are_counted_once(
    replicas: tuple[ServerProcess, ServerProcess], tmp_path: Path
) -> None:
    one, two = replicas
    # The same clusters, the same batches, to both at once.
    loads = [Load(server.url, clusters=2, batches=6) for server in (one, two)]
    for load in loads:
        load.start()
    until(lambda: all(len(load.ended) >= 4 for load in loads), "some lives", 60)
    for load in loads:
        load.stop()

    patient = patient_of(tmp_path, database=one.flags[1], store=str(tmp_path / "blobs"))
    for load in loads:
        assert load.refused == []
        check_whole(load, patient)
    patient.database.close()
    assert (
        Server(one.url).get("clusters", since="all")["states"] == Server(two.url).get("clusters", since="all")["states"]
    )


def test_many_runs_are_told_in_parts_that_fit() -> None:
    runs = {(1, f"Scheduler-{number:036d}") for number in range(1000)}

    parts = list(payloads("me", runs))

    assert len(parts) > 1
    assert all(len(part.encode()) < MOST_BYTES + 200 for part in parts)
