"""Tells other servers on the same PostgreSQL which runs got something new, and hears it from them.

Only ids travel: a notification of PostgreSQL holds 8,000 bytes. A server that misses some, while its connection is away, shows the
news with the next one; nothing that is stored depends on it.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
from collections.abc import Iterator

import psycopg

from daskscope.server.live import Live
from daskscope.storage.database import Database

logger = logging.getLogger("daskscope.server")

CHANNEL = "daskscope_changed"
MOST_BYTES = 7_000
RETRY_S = 5.0
LOOK_S = 1.0

Runs = set[tuple[int, str]]


class Relay:
    """Two connections of their own: one listens, one speaks."""

    def __init__(self, database: Database, live: Live) -> None:
        self.address = database.url.set(drivername="postgresql").render_as_string(hide_password=False)
        self.live = live
        self.name = secrets.token_hex(4)
        self._stop = threading.Event()
        self._speaking: psycopg.Connection[tuple[object, ...]] | None = None
        self._thread = threading.Thread(target=self._listen, name="daskscope-relay", daemon=True)

    def start(self) -> None:
        self.live.forward = self.tell
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(LOOK_S + 5)
        if self._speaking is not None:
            self._speaking.close()

    def tell(self, runs: Runs) -> None:
        """Called by the writer, from its thread; never a reason for a batch to fail."""
        try:
            if self._speaking is None or self._speaking.closed:
                self._speaking = psycopg.connect(self.address, autocommit=True)
            for payload in payloads(self.name, runs):
                self._speaking.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))
        except psycopg.Error:
            if self._speaking is not None:
                self._speaking.close()

    def _listen(self) -> None:
        while not self._stop.is_set():
            try:
                with psycopg.connect(self.address, autocommit=True) as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    while not self._stop.is_set():
                        for notice in connection.notifies(timeout=LOOK_S):
                            self._heard(notice.payload)
            except psycopg.Error:
                self._stop.wait(RETRY_S)

    def _heard(self, payload: str) -> None:
        speaker, runs = json.loads(payload)
        if speaker != self.name:
            self.live.deliver({(int(account), str(cluster)) for account, cluster in runs})


def payloads(speaker: str, runs: Runs) -> Iterator[str]:
    """The runs as notifications that are small enough."""
    part: list[tuple[int, str]] = []
    size = 0
    for account, cluster in sorted(runs):
        item = len(json.dumps([account, cluster])) + 2
        if part and size + item > MOST_BYTES:
            yield json.dumps([speaker, part])
            part, size = [], 0
        part.append((account, cluster))
        size += item
    if part:
        yield json.dumps([speaker, part])
