"""Replay what real recorders send, as many clusters at once: cost per post, frame and cluster, and how many one server serves.

The bulk figure of ``scripts/bench ingest`` is for bodies of 900 kB. Recorders send a few kilobytes, so what counts is the cost
of a post and of a frame. Every cluster has its own token and connection, and starts at a random point of the captured traffic.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.fleet import postgresql
from benchmarks.result import Result, at_most
from benchmarks.traffic_capture import IDLE, MEDIUM, SHAPES, Shape, Traffic, capture_traffic, load, resealer, save
from benchmarks.traffic_server import Server, cluster_name, serve_accounts
from daskscope.wire.layout import PREFIX

#: Clusters of the medium shape that are tried one after the other, until the server is busy.
STEPS = (10, 40, 100, 200, 400)
#: The same for the idle shape.
IDLE_STEPS = (250, 1_000, 5_000)
#: The limits: of acknowledgements, and of the CPU of server and database per second and cluster.
P99_MS, IDLE_P99_MS = 100.0, 250.0
CPU_MS, IDLE_CPU_MS = 3.6, 0.3
#: Share of a core at which no further clusters are tried.
BUSY_CORES = 0.8
#: Seconds of replay that are measured, and seconds before that.
MEASURED_S, SETTLE_S = 20.0, 5.0
#: Clusters whose first posts are sent at the same time.
INTRODUCED_AT_ONCE = 8
#: Give up on a reply after this time, so that an overloaded server does not hold the measurement up.
REPLY_S = 30.0


@dataclass
class Sent:
    """What one replay sent, and how long each acknowledgement took."""

    times_ms: list[float] = field(default_factory=list)
    frames: int = 0
    refused: int = 0


@dataclass(frozen=True)
class Cost:
    """The result of one replay."""

    clusters: int
    seconds: float
    sent: Sent
    server_s: float
    database_s: float

    @property
    def p50_ms(self) -> float:
        return float(np.quantile(self.sent.times_ms or [0.0], 0.5))

    @property
    def p99_ms(self) -> float:
        return float(np.quantile(self.sent.times_ms or [0.0], 0.99))

    @property
    def cores(self) -> float:
        """The share of a core that the server used."""
        return self.server_s / self.seconds

    @property
    def per_cluster_ms(self) -> float:
        """Milliseconds of CPU of server and database per second and cluster."""
        return (self.server_s + self.database_s) * 1000 / self.seconds / self.clusters

    def note(self) -> str:
        posts, frames = max(len(self.sent.times_ms), 1), max(self.sent.frames, 1)
        server, database = self.server_s * 1000, self.database_s * 1000
        hours = self.clusters * self.seconds / 3600
        return (
            f"{self.clusters} clusters, {posts / self.seconds:.0f} posts/s, {self.sent.refused} refused; CPU of server + database: "
            f"{server / posts:.2f} + {database / posts:.2f} ms per post, {server / frames:.2f} + {database / frames:.2f} "
            f"per frame, {self.server_s / hours:.1f} + {self.database_s / hours:.1f} s per cluster-hour; "
            f"{(self.server_s + self.database_s) / self.seconds:.0%} of a core; acknowledged in {self.p50_ms:.0f} ms (median), "
            f"{self.p99_ms:.0f} ms (99 %)"
        )


class Replayed:
    """One cluster: its connection, and the requests it sends next."""

    def __init__(self, server: Server, number: int, traffic: Traffic) -> None:
        self.server = server
        self.traffic = traffic
        self.reseal = resealer(cluster_name(number), epoch=1)
        self.secret = server.secrets[number]
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def introduce(self) -> None:
        """Send everything of the first seconds in one post."""
        await self.post(b"".join(post.body for post in self.traffic.opening), Sent())

    async def replay(self, began: float, until: float, sent: Callable[[], Sent]) -> None:
        """Send the captured posts at their pace, from a random point on, again and again."""
        window = self.traffic.window_s
        phase = random.uniform(0, window)
        posts = sorted(((post.at_s - phase) % window, post.body) for post in self.traffic.steady)
        turn = 0
        while posts:
            for at, body in posts:
                due = began + turn * window + at
                if due >= until:
                    return
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                await self.post(body, sent())
            turn += 1

    async def post(self, body: bytes, sent: Sent) -> None:
        sealed = self.reseal(body)
        head = (
            f"POST /api/v1/ingest HTTP/1.1\r\nHost: {self.server.host}\r\nAuthorization: Bearer {self.secret}\r\n"
            f"Content-Type: application/vnd.daskscope.frames\r\nDaskscope-Sent-Us: {time.time_ns() // 1000}\r\n"
            f"Content-Length: {len(sealed)}\r\n\r\n"
        ).encode()
        began = time.monotonic()
        status = await asyncio.wait_for(self._exchange(head + sealed), REPLY_S)
        sent.times_ms.append((time.monotonic() - began) * 1000)
        sent.frames += sum(1 for _ in frames_in(body))
        sent.refused += status != 200

    async def _exchange(self, request: bytes) -> int:
        """Send a request and return the status; on a new connection if the server closed the idle one, as recorders do."""
        while True:
            reused = self._streams is not None
            reader, writer = self._streams or await asyncio.open_connection("127.0.0.1", self.server.port)
            try:
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                lines = head.decode("latin-1").split("\r\n")
                length = next(int(line[15:]) for line in lines if line.lower().startswith("content-length:"))
                await reader.readexactly(length)
            except (OSError, EOFError):
                writer.close()
                self._streams = None
                if not reused:
                    raise
                continue
            self._streams = reader, writer
            return int(lines[0].split()[1])

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


def frames_in(body: bytes) -> Iterator[int]:
    """Yield the offset of each frame: cheaper than decoding its header."""
    offset = 0
    while offset < len(body):
        yield offset
        _, header, data, _ = PREFIX.unpack_from(body, offset)
        offset += PREFIX.size + header + data


def replay(server: Server, traffic: Traffic, numbers: list[int]) -> Cost:
    """Replay clusters with these numbers and return what it cost."""
    return asyncio.run(_replay(server, traffic, numbers))


async def _replay(server: Server, traffic: Traffic, numbers: list[int]) -> Cost:
    mine = [Replayed(server, number, traffic) for number in numbers]
    gate = asyncio.Semaphore(INTRODUCED_AT_ONCE)

    async def introduce(one: Replayed) -> None:
        async with gate:
            await one.introduce()

    await asyncio.gather(*map(introduce, mine))
    began = time.monotonic()
    until = began + SETTLE_S + MEASURED_S
    settling, measured = Sent(), Sent()

    def current() -> Sent:
        return settling if time.monotonic() < began + SETTLE_S else measured

    tasks = [asyncio.create_task(one.replay(began, until, current)) for one in mine]
    await asyncio.sleep(SETTLE_S)
    before, at = server.cpu_s(), time.monotonic()
    await asyncio.wait(tasks, timeout=MEASURED_S)
    # Posts that are late count with the time they have waited so far; the server's CPU ends here.
    after, seconds = server.cpu_s(), time.monotonic() - at
    _, late = await asyncio.wait(tasks, timeout=REPLY_S)
    for task in late:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for one in mine:
        one.close()
    return Cost(len(numbers), seconds, measured, after[0] - before[0], after[1] - before[1])


def run(posts: str = "", steps: tuple[int, ...] = STEPS, idle: tuple[int, ...] = IDLE_STEPS) -> list[Result]:
    """Measure; ``posts`` is a file of captured posts to replay instead of capturing new ones."""
    path = Path(posts or "benchmarks/results/traffic.posts")
    if not posts:
        save(path, capture_traffic())
    traffic = load(path)
    results = [
        Result(f"traffic of the recorder of a cluster: {shape.name}", "", note=_described(shape.name, traffic))
        for shape in SHAPES
    ]
    for where, database in {"SQLite": _sqlite, "PostgreSQL": postgresql}.items():
        for shape, tried, limit_ms, cpu_ms in (
            (MEDIUM, steps, P99_MS, CPU_MS),
            (IDLE, idle, IDLE_P99_MS, IDLE_CPU_MS),
        ):
            # A database of its own for each: its keys are wrapped by the master key of the first server.
            with database() as url:
                if database is postgresql and not url:
                    return [*results, Result("traffic on PostgreSQL", "not installed")]
                results += _summed(where, shape, _tried(url, where, shape, traffic, tried), limit_ms, cpu_ms)
    return results


def _described(name: str, traffic: dict[str, Traffic]) -> str:
    (shape,) = (shape for shape in SHAPES if shape.name == name)
    return f"{shape.workers} workers, {shape.tasks_per_s:.0f} tasks/s: {traffic[name].summary()}"


@contextmanager
def _sqlite() -> Iterator[str]:
    yield ""


def _tried(url: str, where: str, shape: Shape, traffic: dict[str, Traffic], steps: tuple[int, ...]) -> list[Cost]:
    """Replay more and more clusters of a shape, until the server is busy."""
    costs: list[Cost] = []
    with (
        tempfile.TemporaryDirectory() as directory,
        serve_accounts(Path(directory), url, sum(steps), prefix=shape.name) as server,
    ):
        numbers = itertools.count()
        while len(costs) < len(steps) and (not costs or costs[-1].cores < BUSY_CORES):
            mine = list(itertools.islice(numbers, steps[len(costs)]))
            costs.append(replay(server, traffic[shape.name], mine))
            print(f"    {where}, {shape.name}: {costs[-1].note()}", file=sys.stderr, flush=True)
    return costs


def _summed(where: str, shape: Shape, costs: list[Cost], limit_ms: float, cpu_ms: float) -> list[Result]:
    if not costs:
        return []
    good = [cost for cost in costs if cost.p99_ms <= limit_ms]
    served, best = (good[-1].clusters if good else 0), (good or costs)[-1]
    passed = next(
        (f"{cost.clusters} took {cost.p99_ms:.0f} ms" for cost in costs if cost.p99_ms > limit_ms),
        "more were not tried",
    )
    what = f"{shape.name} clusters with 99 % of acknowledgements in {limit_ms:.0f} ms ({where})"
    return [
        Result(what, f"{served:,}", note=passed),
        at_most(f"CPU per second and {shape.name} cluster ({where})", best.per_cluster_ms, cpu_ms, " ms", best.note()),
    ]
