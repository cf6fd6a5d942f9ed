"""Exchange notifications with other servers on the same PostgreSQL: of changed runs for open pages, and of changed access.

Only servers on PostgreSQL import this module.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Iterable, Iterator

import psycopg

from daskscope.server.caches import TokenCache
from daskscope.server.live import Live
from daskscope.storage.base.archive import ACCESS_CHANNEL
from daskscope.storage.base.database import CONNECT_S, Database
from daskscope.storage.base.postgresql import SILENT_HOST, BoundedConnection, Patience, connect

CHANNEL = "daskscope_changed"
#: A channel of its own: servers of earlier versions would not understand its messages.
WATCHED_CHANNEL = "daskscope_watched"
MAX_BYTES = 7_000
#: Name of the connection that listens, in ``pg_stat_activity``.
LISTENER = "daskscope listener"
RETRY_S = 5.0
LOOK_S = 1.0
#: How long a notification may take to send, and how often a silent connection is checked.
SPEAK_S, CHECK_S = 5, 30.0

Runs = set[tuple[int, str]]


class Relay:
    """Two connections: one listens, one notifies."""

    def __init__(self, database: Database, live: Live, token_cache: TokenCache) -> None:
        self.address = database.url.set(drivername="postgresql").render_as_string(hide_password=False)
        self.live = live
        self.token_cache = token_cache
        self.name = secrets.token_hex(4)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._speaking: BoundedConnection | None = None
        self._thread = threading.Thread(target=self._listen, name="daskscope-relay", daemon=True)

    def start(self) -> None:
        self.live.forward, self.live.forward_end = self.tell, self.tell_end
        self.live.watched.forward = self.tell_watched
        self.live.followed.forward = self.tell_followed
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(LOOK_S + 5)
        if self._speaking is not None:
            self._speaking.close()

    def tell(self, runs: Runs) -> None:
        """Notify the other servers. The writer calls this from its thread; it never fails a batch."""
        self._notify(payloads(self.name, runs))

    def tell_end(self, user: int, account: int) -> None:
        """Tell the other servers to end the streams of a user. Requests call this from their threads."""
        self._notify([json.dumps([self.name, [], [user, account]])])

    def tell_watched(self, account: int, cluster: str) -> None:
        """Tell the other servers that somebody looks at a cluster: its recorder may send to any of them."""
        self._notify([json.dumps([self.name, account, cluster])], WATCHED_CHANNEL)

    def tell_followed(self, account: int, cluster: str) -> None:
        """Tell the other servers that somebody has the live view of a cluster open."""
        self._notify([json.dumps([self.name, account, cluster, "followed"])], WATCHED_CHANNEL)

    def _notify(self, texts: Iterable[str], channel: str = CHANNEL) -> None:
        with self._lock:
            try:
                if self._speaking is None or self._speaking.closed:
                    self._speaking = self._connect("daskscope notifier")
                for text in texts:
                    self._speaking.execute("SELECT pg_notify(%s, %s)", (channel, text))
            except psycopg.Error:
                if self._speaking is not None:
                    self._speaking.close()

    def _listen(self) -> None:
        while not self._stop.is_set():
            try:
                with self._connect(LISTENER) as tx:
                    for channel in (ACCESS_CHANNEL, WATCHED_CHANNEL, CHANNEL):
                        tx.execute(f"LISTEN {channel}")
                    # Revocations may have been missed while nobody listened.
                    self.token_cache.clear()
                    checked = time.monotonic()
                    while not self._stop.is_set():
                        for notice in tx.notifies(timeout=LOOK_S):
                            self._heard(notice.channel, notice.payload)
                        if time.monotonic() - checked > CHECK_S:
                            # A listener hears nothing from a server that is gone.
                            tx.execute("SELECT 1")
                            checked = time.monotonic()
            except psycopg.Error:
                self._stop.wait(RETRY_S)

    def _connect(self, name: str) -> BoundedConnection:
        # The writer waits for a notification to be sent.
        patience = Patience(SPEAK_S, self._stop)
        options = {"connect_timeout": CONNECT_S, "application_name": name, **SILENT_HOST}
        return connect(patience, self.address, autocommit=True, **options)

    def _heard(self, channel: str, payload: str) -> None:
        if channel == ACCESS_CHANNEL:
            self.token_cache.clear()
            return
        if channel == WATCHED_CHANNEL:
            speaker, account, cluster, *followed = json.loads(payload)
            if speaker != self.name:
                seen = self.live.followed if followed else self.live.watched
                seen.heard(int(account), str(cluster))
            return
        speaker, runs, *ended = json.loads(payload)
        if speaker != self.name:
            self.live.deliver({(int(account), str(cluster)) for account, cluster in runs})
            for user, account in ended:
                self.live.end_own_streams(int(user), int(account))


def payloads(speaker: str, runs: Runs) -> Iterator[str]:
    """Split the runs into notifications that are small enough."""
    part: list[tuple[int, str]] = []
    size = 0
    for account, cluster in sorted(runs):
        item = len(json.dumps([account, cluster])) + 2
        if part and size + item > MAX_BYTES:
            yield json.dumps([speaker, part])
            part, size = [], 0
        part.append((account, cluster))
        size += item
    if part:
        yield json.dumps([speaker, part])
