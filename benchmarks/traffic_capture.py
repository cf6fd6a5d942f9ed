"""Capture what the recorders of an idle, a small and a medium cluster send, and repeat it as any number of clusters.

Posts are captured from real recorders, so that the figures follow the code of the recorder and not an assumption about it.
Encoded rows stay as they were captured; only the header of a frame (cluster, epoch, sequence number) is written anew.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import dask
import msgspec
from distributed import Client, LocalCluster

from benchmarks.captured import Post, capture
from daskscope import analytics
from daskscope.wire.decode import read_frame
from daskscope.wire.encode import Body, seal

#: The first seconds are not repeated: agents start, versions are sent, everything is new.
WARM_UP_S = 20.0
#: Seconds that are repeated. An idle recorder posts twice in that time.
WINDOW_S = 64.0


@dataclass(frozen=True)
class Shape:
    """A kind of cluster, and what runs on it."""

    name: str
    workers: int
    threads: int
    #: Tasks of one computation, and how many seconds later the next one begins; no tasks for an idle cluster.
    tasks: int
    every_s: float

    @property
    def tasks_per_s(self) -> float:
        return self.tasks / self.every_s if self.tasks else 0.0


IDLE = Shape("idle", workers=2, threads=2, tasks=0, every_s=1.0)
SMALL = Shape("small", workers=2, threads=2, tasks=50, every_s=2.5)
MEDIUM = Shape("medium", workers=10, threads=1, tasks=250, every_s=2.5)
SHAPES = (IDLE, SMALL, MEDIUM)


class Traffic(msgspec.Struct, frozen=True):
    """The posts of one cluster: those that introduce it, and those of ``window_s`` seconds afterwards."""

    shape: str
    opening: list[Post]
    steady: list[Post]
    window_s: float

    @property
    def frames(self) -> int:
        return sum(1 for post in self.steady for _ in bodies_of(post.body))

    @property
    def rows(self) -> int:
        return sum(body.rows for post in self.steady for body in bodies_of(post.body))

    @property
    def nbytes(self) -> int:
        return sum(len(post.body) for post in self.steady)

    def summary(self) -> str:
        """Return the statistics that decide the cost: posts per second, frames and rows per post, bytes per second."""
        posts = max(len(self.steady), 1)
        return (
            f"{len(self.steady) / self.window_s:.2f} posts/s, {self.frames / posts:.1f} frames and {self.rows / posts:.0f} rows "
            f"per post, {self.nbytes / self.window_s:,.0f} B/s"
        )


def capture_traffic() -> dict[str, Traffic]:
    """Run one cluster of each shape at the same time and return what their recorders sent."""
    names: dict[str, str] = {}
    posts = capture(WARM_UP_S + WINDOW_S + 5, partial(_work_all, names))
    mine: dict[str, list[Post]] = {}
    for post in posts:
        cluster = read_frame(post.body).header.cluster
        mine.setdefault(cluster, []).append(post)
    return {names[cluster]: _traffic(names[cluster], found) for cluster, found in mine.items()}


def _traffic(name: str, posts: list[Post]) -> Traffic:
    begin = posts[0].at_s + WARM_UP_S
    opening = [post for post in posts if post.at_s < begin]
    steady = [Post(post.at_s - begin, post.body) for post in posts if begin <= post.at_s < begin + WINDOW_S]
    return Traffic(name, opening, steady, WINDOW_S)


def _work_all(names: dict[str, str], url: str, seconds: float) -> None:
    """Run all shapes; ``names`` gets the shape of each cluster ID."""
    options = {"daskscope.server": url, "distributed.comm.timeouts.connect": "120s"}
    with dask.config.set(options), ExitStack() as stack:
        # One after the other: fourteen processes that start at once do not all make it in time on two cores.
        clients = [stack.enter_context(_started(shape)) for shape in SHAPES]
        for shape, client in zip(SHAPES, clients, strict=True):
            names[str(client.scheduler_info()["id"])] = shape.name
            analytics.register(client)
        threads = [threading.Thread(target=_work, args=pair) for pair in zip(SHAPES, clients, [seconds] * len(SHAPES))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


@contextmanager
def _started(shape: Shape) -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=shape.workers, threads_per_worker=shape.threads, dashboard_address=":0", silence_logs=50
        ) as cluster,
        # Not the default client: the clusters run in threads of one process.
        Client(cluster, set_as_default=False) as client,
    ):
        client.gather(client.map(_step, range(20), pure=False))
        yield client


def _work(shape: Shape, client: Client, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        if shape.tasks:
            results = client.map(_step, range(shape.tasks - 1), pure=False)
            client.submit(sum, results).result()
        time.sleep(max(0.0, began + shape.every_s - time.monotonic()))


def _step(number: int) -> int:
    time.sleep(0.02)
    return number


def bodies_of(body: bytes) -> Iterator[Body]:
    """Yield the encoded rows of each frame of a request body."""
    offset = 0
    while offset < len(body):
        frame = read_frame(body, offset)
        head = frame.header
        yield Body(head.table, head.rows, head.t0, head.t1, head.raw, bytes(frame.body))
        offset += frame.size


def resealer(cluster: str, epoch: int) -> Callable[[bytes], bytes]:
    """Return a function that writes request bodies anew as the next ones of another cluster."""
    sequence = 0
    kept: dict[str, int] = {}

    def reseal(body: bytes) -> bytes:
        nonlocal sequence
        frames = []
        for part in bodies_of(body):
            kept[part.table] = kept.get(part.table, 0) + part.rows
            numbers = {"sequence": sequence, "kept": kept[part.table], "dropped": 0}
            frames.append(seal(part, cluster=cluster, epoch=epoch, **numbers))
            sequence += 1
        return b"".join(frames)

    return reseal


def save(path: Path, traffic: dict[str, Traffic]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(msgspec.msgpack.encode(traffic))


def load(path: Path) -> dict[str, Traffic]:
    return msgspec.msgpack.decode(path.read_bytes(), type=dict[str, Traffic])
