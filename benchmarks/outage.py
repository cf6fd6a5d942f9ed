"""Measure how a server recovers from an outage: a hundred recorders send their backlog at once.

The outage itself takes no time here: the spools are filled with what a real recorder sends in as many minutes. The senders are
those of real recorders.
"""

from __future__ import annotations

import re
import tempfile
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.captured import Post, as_cluster, capture
from benchmarks.result import Result, at_most, equal
from benchmarks.serving import serve_data
from daskscope.collector.delivery.outbox import FrameQueue, Sealed
from daskscope.collector.delivery.poster import poster
from daskscope.collector.delivery.sender import Sender
from daskscope.collector.delivery.spool import Spool
from daskscope.wire.decode import read_frame

RECORDERS, MINUTES = 100, 10.0
CAPTURE_S = 15.0
LOOK_EVERY_S = 0.25
#: Progress stands still for longer if recorders back off together, or if the server does work that it throws away.
MAX_STILL_S = 10.0
SPOOL_NBYTES = 10**9


@dataclass
class Progress:
    """What the server has stored, over time."""

    peak_nbytes: int = 0
    fresh: int = 0
    longest_still_s: float = 0.0
    _moved: float = field(default_factory=time.monotonic)

    def look(self, process: psutil.Process, fresh: int) -> None:
        now = time.monotonic()
        self.peak_nbytes = max(self.peak_nbytes, process.memory_info().rss)
        if fresh > self.fresh:
            self.fresh, self._moved = fresh, now
        self.longest_still_s = max(self.longest_still_s, now - self._moved)


def counters(url: str, secret: str) -> dict[str, int]:
    """Return the batches that a server has received, by kind."""
    request = urllib.request.Request(f"{url}/metrics", headers={"Authorization": f"Bearer {secret}"})
    with urllib.request.urlopen(request, timeout=60) as response:
        text = response.read().decode()
    found = re.findall(r'^daskscope_batches_total\{kind="(\w+)"\} (\S+)', text, re.MULTILINE)
    return {kind: int(float(value)) for kind, value in found}


def backlog(posts: list[Post], cluster: str, minutes: float) -> list[Sealed]:
    """Return the frames that a recorder has on disk after an outage."""
    frames: list[Sealed] = []
    for epoch in range(1, max(1, round(minutes * 60 / CAPTURE_S)) + 1):
        for post in as_cluster(posts, cluster, epoch):
            offset = 0
            while offset < len(post.body):
                frame = read_frame(post.body, offset)
                head = frame.header
                frames.append(Sealed(head.sequence, head.table, head.rows, bytes(frame.whole)))
                offset += frame.size
    return frames


def _recorder(url: str, secret: str, directory: Path, number: int, frames: list[Sealed]) -> Sender:
    spool = Spool(directory, f"recorder-{number}", SPOOL_NBYTES)
    spool.append(frames)
    sender = Sender(poster(url, secret), FrameQueue(SPOOL_NBYTES), spool)
    sender.has_spooled = True
    return sender


def run(recorders: int = RECORDERS, minutes: float = MINUTES) -> list[Result]:
    posts = capture(CAPTURE_S)
    with tempfile.TemporaryDirectory() as spools, serve_data(Path(spools) / "data") as server:
        address, secret = server.url, server.secret
        senders, total = list[Sender](), 0
        for number in range(recorders):
            frames = backlog(posts, f"cluster-{number}", minutes)
            total += len(frames)
            senders.append(_recorder(address, secret, Path(spools) / str(number), number, frames))
        progress, began = Progress(), time.monotonic()
        for sender in senders:
            sender.start()
        while progress.fresh < total and time.monotonic() - began < 60 * minutes + 600:
            time.sleep(LOOK_EVERY_S)
            progress.look(server.process, counters(address, secret).get("fresh", 0))
        took = time.monotonic() - began
        found = counters(address, secret)
        stops = [threading.Thread(target=sender.stop, args=(5.0,)) for sender in senders]
        for thread in stops:
            thread.start()
        for thread in stops:
            thread.join()
    again = found.get("duplicate", 0) + found.get("skipped", 0)
    what = f"{recorders} recorders after {minutes:g} min of outage"
    return [
        Result(f"{what}: drain time", f"{took:.0f} s", note=f"{total:,} frames, {total / took:,.0f} a second"),
        equal(f"{what}: frames stored", progress.fresh, total),
        at_most(f"{what}: frames sent again", 100 * again / total, 1.0, " %", f"{again:,} duplicates"),
        at_most(f"{what}: longest time without progress", progress.longest_still_s, MAX_STILL_S, " s"),
        Result(f"{what}: peak memory of the server", f"{progress.peak_nbytes / 1e6:.0f} MB"),
    ]
