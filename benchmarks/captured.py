"""Capture what a real recorder sends: a cluster runs a workload and registers at a server that keeps every request body."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dask
import dask.array as da
import dask.bag as db
from distributed import Client, LocalCluster, wait

from daskscope import analytics
from daskscope.server.routes import ingest
from daskscope.server.run import address, listen, make_server
from daskscope.server.services import open_services
from daskscope.server.settings import Settings
from daskscope.wire.decode import Frame, read_frame
from daskscope.wire.encode import Body, seal


@dataclass(frozen=True)
class Post:
    """A request body, and when it was sent after the first one."""

    at_s: float
    body: bytes


@contextmanager
def received() -> Iterator[tuple[str, list[tuple[float, bytes]]]]:
    """Yield the URL of a server in this process, and a list of the times and bodies of the posts it gets."""
    posts: list[tuple[float, bytes]] = []
    split = ingest.split

    def keep(body: bytes) -> list[Frame]:
        posts.append((time.monotonic(), body))
        return split(body)

    with tempfile.TemporaryDirectory() as directory:
        settings = Settings(port=0, data=str(Path(directory) / "data")).checked()
        listening = listen(settings)
        services = open_services(settings)
        services.url = address(settings, listening.getsockname()[1])
        server = make_server(services)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        ingest.split = keep
        thread.start()
        try:
            yield services.entry_url, posts
        finally:
            ingest.split = split
            server.should_exit = True
            thread.join(30)
            services.close()
            listening.close()


def capture(seconds: float, work: Callable[[str, float], None] | None = None) -> list[Post]:
    """Run a workload for some time and return what its recorders sent to the server at the URL that ``work`` gets."""
    with received() as (url, posts):
        (work or _work)(url, seconds)
    first = posts[0][0]
    return [Post(at - first, body) for at, body in posts]


def _work(url: str, seconds: float) -> None:
    """Arrays, bags and futures, with a failure now and then, and pauses between them."""
    with (
        dask.config.set({"daskscope.server": url}),
        LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None, silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        analytics.register(client)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            array = da.random.random((2_000, 2_000), chunks=(250, 250))
            (array @ array.T).sum().compute()
            db.range(2_000, npartitions=40).map(lambda n: n % 7).frequencies().compute()
            wait(client.map(_half, range(-1, 200), pure=False))
            time.sleep(1)


def _half(number: int) -> float:
    if number < 0:
        raise ValueError(f"{number} is negative")
    return number / 2


def as_cluster(posts: list[Post], cluster: str, epoch: int) -> list[Post]:
    """Return the same posts as if another cluster had sent them."""
    return [Post(post.at_s, b"".join(_renamed(post.body, cluster, epoch))) for post in posts]


def _renamed(body: bytes, cluster: str, epoch: int) -> list[bytes]:
    frames, offset = [], 0
    while offset < len(body):
        frame = read_frame(body, offset)
        head = frame.header
        data = bytes(frame.body)
        same = Body(head.table, head.rows, head.t0, head.t1, head.raw, data)
        numbers = {"sequence": head.sequence, "kept": head.kept, "dropped": head.dropped}
        frames.append(seal(same, cluster=cluster, epoch=epoch, **numbers))
        offset += frame.size
    return frames
