"""Ingest has connections of its own: readers that use up all others do not stop it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from tests.helpers.hosted import HostedServer
from tests.helpers.samples import sample_frames
from tests.helpers.services import Postgres


def test_ingest_works_while_readers_hold_all_connections(tmp_path: Path, postgres: Postgres) -> None:
    settings: dict[str, Any] = {"database": postgres.prepared(), "database_connections": 2, "max_storage": 10**9}
    with HostedServer(tmp_path, login=True, **settings) as server, contextlib.ExitStack() as readers:
        server.make_account("ours", mia="member")
        token = server.make_token("mia", "ours")
        for _ in range(2):
            readers.enter_context(server.services.archive.read())
        # A new token, a new cluster, its storage, and whether it was asked to close: each is a query.
        for epoch in (1, 2):
            answer = server.send(sample_frames("c", epoch=epoch), token=token)
            assert (answer.status, answer.json()["taken"]) == (200, 7), answer.text
        # Pages wait for a connection, and say so.
        assert server.ask("GET", "/api/v1/clusters", token=token).status == 503
        readers.close()
        assert server.ask("GET", "/api/v1/clusters", token=token).json()["items"][0]["n_tasks"] == 6
