"""Measure what it costs if many people open a large run that nobody has opened before, and what other clusters notice of it."""

from __future__ import annotations

import http.client
import multiprocessing
import re
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import sqlalchemy as sa

from benchmarks.captured import Post, as_cluster, capture
from benchmarks.history import large_run
from benchmarks.neighbours import CLUSTERS, Connection, _send
from benchmarks.result import Result, at_most, equal
from benchmarks.serving import serve_data
from daskscope.server.services import open_services
from daskscope.server.settings import Settings
from daskscope.storage import schema

TASKS, READERS = 5_000_000, 20
CAPTURE_S = 15.0
#: Rounds of captured posts without readers.
ROUNDS = 2
MAX_GB, MAX_RATIO = 2.0, 2.0
#: Limits of the process that builds the document.
MAX_BUILD_S, MAX_BUILD_GB = 10.0, 1.0


def _prepare(data: str, tasks: int) -> None:
    services = open_services(Settings(data=data))
    number, runs = large_run(services, tasks), schema.runs
    with services.archive.write() as tx:
        # Its tasks are of 2023: retention would delete it.
        tx.execute(sa.update(runs).where(runs.c.id == number).values(received_us=tx.now_us))
    services.close()


class Watch(threading.Thread):
    """Measures the memory of a server and of its processes until it is stopped, and how long the longest of them lived."""

    def __init__(self, process: psutil.Process) -> None:
        super().__init__(daemon=True)
        self.process = process
        self.peak_nbytes = self.alone_nbytes = self.child_nbytes = 0
        self.child_s = self.child_cpu_s = 0.0
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.02):
            mine = self.process.memory_info().rss
            total = mine
            for child in self.process.children():
                try:
                    total += child.memory_info().rss
                    self.child_nbytes = max(self.child_nbytes, _peak_nbytes(child.pid))
                    self.child_s = max(self.child_s, time.time() - child.create_time())
                    times = child.cpu_times()
                    self.child_cpu_s = max(self.child_cpu_s, times.user + times.system)
                except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
                    continue
            self.alone_nbytes, self.peak_nbytes = max(self.alone_nbytes, mine), max(self.peak_nbytes, total)


def _peak_nbytes(pid: int) -> int:
    """Return the peak memory of a process, from the kernel: samples miss short peaks. A process that just ended has none."""
    found = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def _open(port: int, secret: str, answers: list[tuple[int, float, str]]) -> None:
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=900)
    connection.request(
        "GET", "/api/v1/clusters/large/document/report.json", headers={"Authorization": f"Bearer {secret}"}
    )
    response = connection.getresponse()
    response.read()
    answers.append((response.status, time.perf_counter() - began, response.headers.get("ETag", "")))
    connection.close()


def _round(port: int, secret: str, posts: list[Post], epoch: int, times: list[float]) -> None:
    """Send what ten clusters send, at their own pace."""
    senders = [
        threading.Thread(
            target=_send,
            args=(Connection(port, secret), as_cluster(posts, f"other-{n}", epoch), n * 2.0 / CLUSTERS, times),
        )
        for n in range(CLUSTERS)
    ]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()


def _builds(port: int, secret: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {secret}"})
    text = connection.getresponse().read().decode()
    connection.close()
    found = re.search(r"^daskscope_documents_total (\d+)", text, re.MULTILINE)
    return int(found[1]) if found else 0


def run(tasks: int = TASKS, readers: int = READERS) -> list[Result]:
    posts = capture(CAPTURE_S)
    with tempfile.TemporaryDirectory() as directory:
        data = str(Path(directory) / "data")
        # In a process of its own: making five million rows takes gigabytes.
        maker = multiprocessing.get_context("spawn").Process(target=_prepare, args=(data, tasks))
        maker.start()
        maker.join()
        with serve_data(Path(data)) as server:
            port, secret = server.port, server.secret
            alone, beside = list[float](), list[float]()
            _round(port, secret, posts[:3], 1, [])
            for number in range(ROUNDS):
                _round(port, secret, posts, 10 + number, alone)
            answers: list[tuple[int, float, str]] = []
            watch = Watch(server.process)
            watch.start()
            began = time.perf_counter()
            people = [threading.Thread(target=_open, args=(port, secret, answers)) for _ in range(readers)]
            for person in people:
                person.start()
            number = 100
            while any(person.is_alive() for person in people):
                number += 1
                _round(port, secret, posts, number, beside)
            watch.ended.set()
            took = max(seconds for _, seconds, _ in answers)
            builds = _builds(port, secret)
            print(f"    {time.perf_counter() - began:.0f} s with readers")
    statuses, tags = {status for status, _, _ in answers}, {tag for _, _, tag in answers}
    assert statuses == {200}, statuses
    (a50, a99), (b50, b99) = (np.quantile(np.array(times) * 1000, (0.5, 0.99)).tolist() for times in (alone, beside))
    what = f"{readers} readers of a new run of {tasks:,} tasks"
    detail = f"median / 99 %: alone {a50:.1f} / {a99:.1f} ms, meanwhile {b50:.1f} / {b99:.1f} ms"
    return [
        equal(f"{what}: builds", builds, 1, f"{len(tags)} documents; the last reader had it after {took:.0f} s"),
        at_most(
            f"{what}: time to build the document",
            watch.child_s,
            MAX_BUILD_S,
            " s",
            # The process has a lower priority than others, so its time depends on what else the machine does.
            f"{watch.child_cpu_s:.1f} s of CPU time",
        ),
        at_most(f"{what}: peak memory of the process that builds it", watch.child_nbytes / 1e9, MAX_BUILD_GB, " GB"),
        at_most(
            f"{what}: peak memory of the server and its processes",
            watch.peak_nbytes / 1e9,
            MAX_GB,
            " GB",
            f"the server alone {watch.alone_nbytes / 1e9:.2g} GB",
        ),
        at_most(
            f"{what}: 99 % of other acknowledgements, over alone",
            b99 / a99,
            MAX_RATIO,
            "×",
            f"{detail}; {len(alone)} and {len(beside)}",
        ),
    ]
