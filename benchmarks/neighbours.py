"""Measure how much one account at full speed slows down another.

Both send what a real recorder sent. The quiet account has clusters that send at their own pace, and people who open pages. The busy
account sends as fast as it can, and reads pages as fast as it can; a hostile one sends the most expensive requests there are. The
quiet one is measured alone and beside each, in turns, on the same server, on SQLite and on PostgreSQL.
"""

from __future__ import annotations

import http.client
import itertools
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil

from benchmarks import hostile
from benchmarks.captured import Post, as_cluster, capture
from benchmarks.fleet import postgresql
from benchmarks.ingest import START
from benchmarks.result import Result, at_most
from daskscope.server.services import open_services
from daskscope.server.settings import Settings
from daskscope.storage.people.accounts import create_account, set_member
from daskscope.storage.people.tokens import create_token
from daskscope.storage.people.users import open_user

CAPTURE_S = 15.0
#: Clusters of the quiet account, and connections of the busy one.
CLUSTERS = 10
SENDERS = 4
READERS = 2
ROUNDS = 2
PAGE_EVERY_S = 0.25
PAGES = ("clusters?limit=100", "clusters/quiet-0", "computations", "errors", "usage", "overview")
LIMIT = 2.0
#: Connections of the hostile account by kind of request.
HOSTILE = ("sql", "sql", "compare", "report")
#: Memory of the server's own process.
MAX_GIB = 1.75


@dataclass
class Times:
    """How long requests took."""

    acknowledgements: list[float] = field(default_factory=list)
    pages: list[float] = field(default_factory=list)
    #: Requests of the busy account that were taken, and refused.
    taken: int = 0
    refused: int = 0
    #: Pages that the busy account read.
    read: int = 0
    #: Largest memory of the server, and of its processes together.
    memory: int = 0
    children_memory: int = 0

    def add(self, other: Times) -> None:
        """Add the times of another round."""
        self.acknowledgements += other.acknowledgements
        self.pages += other.pages
        self.taken += other.taken
        self.refused += other.refused
        self.read += other.read
        self.memory = max(self.memory, other.memory)
        self.children_memory = max(self.children_memory, other.children_memory)


#: Start what an account does beside the quiet one.
Start = Callable[[threading.Event, Times], list[threading.Thread]]


@contextmanager
def _served(database: str = "") -> Iterator[tuple[int, dict[str, str], int]]:
    """Yield the port of a server with two accounts, a token of each, and the ID of its process."""
    with tempfile.TemporaryDirectory() as directory:
        data = str(Path(directory) / "data")
        services = open_services(Settings(port=0, data=data, database=database, login=True).checked())
        secrets = {}
        with services.archive.write() as tx:
            user = open_user(tx, "olga", admin=False)
            for name in ("quiet", "busy"):
                account = create_account(tx, name)
                set_member(tx, account.id, user.id, "owner")
                scopes = frozenset({"ingest", "read"})
                secrets[name] = create_token(tx, account=account.id, user=user.id, scopes=scopes)[1]
        services.close()
        command = [sys.executable, "-c", START, "serve", "--login", "--port", "0", "--data", data]
        command += ["--database", database] if database else []
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline().strip().rpartition(":")[2]), secrets, process.pid
        finally:
            process.terminate()
            process.wait(30)


class Connection:
    """A connection of an account that stays open."""

    def __init__(self, port: int, secret: str) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, float, float]:
        """Return the status, the seconds it took, and the seconds to wait before the next request."""
        began = time.perf_counter()
        try:
            response = self._request(method, path, body)
        except (OSError, http.client.HTTPException):
            # The server closes connections that are idle for five seconds. Recorders connect again, too.
            self._http.close()
            response = self._request(method, path, body)
        response.read()
        return response.status, time.perf_counter() - began, float(response.headers.get("Retry-After") or 0)

    def _request(self, method: str, path: str, body: bytes | None) -> http.client.HTTPResponse:
        self._http.request(method, f"/api/v1/{path}", body, self._headers)
        return self._http.getresponse()


def _send(connection: Connection, posts: list[Post], delay_s: float, times: list[float]) -> None:
    """Send posts at the pace they were captured."""
    began = time.monotonic() + delay_s
    for post in posts:
        time.sleep(max(0.0, began + post.at_s - time.monotonic()))
        status, took, _ = connection.ask("POST", "ingest", post.body)
        assert status == 200, status
        times.append(took)


def _browse(connection: Connection, ended: threading.Event, times: list[float]) -> None:
    for path in itertools.cycle(PAGES):
        if ended.wait(PAGE_EVERY_S):
            return
        status, took, _ = connection.ask("GET", path)
        assert status == 200, (path, status)
        times.append(took)


def _flood(connection: Connection, bodies: Iterator[bytes], ended: threading.Event, times: Times) -> None:
    while not ended.is_set():
        body = next(bodies)
        status, _, wait = connection.ask("POST", "ingest", body)
        if status == 200:
            times.taken += 1
        else:
            times.refused += 1
            ended.wait(min(wait, 1.0))


def _read(connection: Connection, ended: threading.Event, times: Times) -> None:
    """Open pages without a pause; one that is refused is asked for again after the time that the server names."""
    for path in itertools.cycle(page.replace("quiet-0", "busy-0") for page in PAGES):
        if ended.is_set():
            return
        status, _, wait = connection.ask("GET", path)
        if status == 200:
            times.read += 1
        elif status == 429:
            ended.wait(min(wait, 1.0))


def _attack(connection: Connection, kind: str, ended: threading.Event, times: Times) -> None:
    """Send the most expensive requests of a kind, without a pause."""
    for method, path, body in hostile.requests(kind):
        if ended.is_set():
            return
        status, _, wait = connection.ask(method, path, body)
        if status == 200:
            times.taken += 1
        else:
            times.refused += 1
            ended.wait(min(wait, 1.0) if status == 429 else 0.0)


def _watch_memory(pid: int, ended: threading.Event, times: Times) -> None:
    """Note the largest memory of the server, and of its processes together."""
    server = psutil.Process(pid)
    while not ended.wait(0.1):
        children = 0
        for child in server.children():
            try:
                children += child.memory_info().rss
            except psutil.Error:
                continue
        times.memory = max(times.memory, server.memory_info().rss)
        times.children_memory = max(times.children_memory, children)


def _hostile_threads(port: int, secret: str, pid: int, ended: threading.Event, times: Times) -> list[threading.Thread]:
    attacks = [
        threading.Thread(target=_attack, args=(Connection(port, secret), kind, ended, times)) for kind in HOSTILE
    ]
    return [*attacks, threading.Thread(target=_watch_memory, args=(pid, ended, times))]


def _busy_threads(
    port: int, secret: str, busy: Iterator[bytes], ended: threading.Event, times: Times
) -> list[threading.Thread]:
    lock = threading.Lock()

    def shared() -> Iterator[bytes]:
        while True:
            with lock:
                body = next(busy)
            yield body

    senders = [
        threading.Thread(target=_flood, args=(Connection(port, secret), shared(), ended, times)) for _ in range(SENDERS)
    ]
    readers = [threading.Thread(target=_read, args=(Connection(port, secret), ended, times)) for _ in range(READERS)]
    return [*senders, *readers]


def _round(port: int, secrets: dict[str, str], posts: list[Post], number: int, start: Start | None = None) -> Times:
    times, ended = Times(), threading.Event()
    gap = 2.0 / CLUSTERS
    quiet = [
        threading.Thread(
            target=_send,
            args=(
                Connection(port, secrets["quiet"]),
                as_cluster(posts, f"quiet-{n}", number),
                n * gap,
                times.acknowledgements,
            ),
        )
        for n in range(CLUSTERS)
    ]
    others = [threading.Thread(target=_browse, args=(Connection(port, secrets["quiet"]), ended, times.pages))]
    if start is not None:
        others += start(ended, times)
    for thread in (*quiet, *others):
        thread.start()
    for thread in quiet:
        thread.join()
    ended.set()
    for thread in others:
        thread.join()
    return times


def _endless(posts: list[Post]) -> Iterator[bytes]:
    """Yield the posts of ever new clusters."""
    for number in itertools.count():
        yield from (post.body for post in as_cluster(posts, f"busy-{number % 50}", number))


def run() -> list[Result]:
    posts = capture(CAPTURE_S)
    results = _measure(posts, "SQLite")
    with postgresql() as url:
        if not url:
            return [*results, Result("neighbours on PostgreSQL", "not installed")]
        return [*results, *_measure(posts, "PostgreSQL", url)]


def _measure(posts: list[Post], store: str, database: str = "") -> list[Result]:
    alone, beside, attacked = Times(), Times(), Times()
    with _served(database) as (port, secrets, pid):
        bodies = _endless(posts)

        def busy(ended: threading.Event, times: Times) -> list[threading.Thread]:
            return _busy_threads(port, secrets["busy"], bodies, ended, times)

        def attack(ended: threading.Event, times: Times) -> list[threading.Thread]:
            return _hostile_threads(port, secrets["busy"], pid, ended, times)

        _round(port, secrets, posts[:3], 1)
        sender = Connection(port, secrets["busy"])
        for body in hostile.recordings():
            status, _, _ = sender.ask("POST", "ingest", body)
            assert status == 200, status
        starts: tuple[tuple[Times, Start | None], ...] = ((alone, None), (beside, busy), (attacked, attack))
        for number, (times, start) in enumerate(starts * ROUNDS):
            times.add(_round(port, secrets, posts, 10 + number, start))
    size = sum(len(post.body) for post in posts) / len(posts)
    counts = (
        f"the busy account had {beside.taken:,} taken and {beside.refused:,} refused, and read {beside.read:,} pages"
    )
    load = f"{len(posts)} captured posts of {size / 1e3:.1f} kB on average; {counts}"
    attacks = f"{attacked.taken:,} hostile requests taken and {attacked.refused:,} refused"
    children = f"its processes together {attacked.children_memory / 2**30:.2f} GiB; {attacks}"
    return [
        _compared(
            f"acknowledgements ({store}) beside a busy account", alone.acknowledgements, beside.acknowledgements, load
        ),
        _compared(f"pages ({store}) beside a busy account", alone.pages, beside.pages, f"{len(PAGES)} pages"),
        _compared(
            f"acknowledgements ({store}) beside a hostile account",
            alone.acknowledgements,
            attacked.acknowledgements,
            attacks,
        ),
        _compared(f"pages ({store}) beside a hostile account", alone.pages, attacked.pages, attacks),
        at_most(f"server memory ({store}) with a hostile account", attacked.memory / 2**30, MAX_GIB, " GiB", children),
    ]


def _compared(what: str, alone: list[float], beside: list[float], note: str) -> Result:
    (a50, a99), (b50, b99) = (np.quantile(np.array(times) * 1000, (0.5, 0.99)).tolist() for times in (alone, beside))
    detail = f"median / 99 %: alone {a50:.1f} / {a99:.1f} ms, beside {b50:.1f} / {b99:.1f} ms; {len(alone)} and {len(beside)}"
    return at_most(f"99 % of {what}, over alone", b99 / a99, LIMIT, "×", f"{detail}; {note}")
