"""Measure what other clusters notice of a giant run, while it is compacted, and its document is built and opened."""

from __future__ import annotations

import multiprocessing
import sqlite3
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np

from benchmarks import synthetic
from benchmarks.captured import capture
from benchmarks.ingest import ROWS, _columns
from benchmarks.neighbours import Connection
from benchmarks.readers import CAPTURE_S, Watch, _open, _round
from benchmarks.result import Result, at_most
from benchmarks.serving import serve_data
from daskscope.wire.encode import encode_body, seal

TASKS = 10_000_000
CLUSTER = "large"
#: Rounds of captured posts before the giant run ends, and at least afterwards.
ROUNDS = 3
MAX_RATIO = 2.0
#: Memory that the server may use to build documents.
BUILD_NBYTES = 4 << 30
#: Seconds without a batch after which the run counts as over.
QUIET_S = 15


def _send(port: int, secret: str, tasks: int) -> None:
    """Send a run as fast as the server takes it."""
    recording, connection = synthetic.recording(tasks), Connection(port, secret)
    sequence = 0
    for name, table in recording.tables.items():
        for first in range(0, table.rows, ROWS):
            part = table.take(np.arange(first, min(first + ROWS, table.rows)))
            columns = (
                _columns(part)
                if name == "tasks"
                else {column: part[column].tolist() for column in part.definition.names}
            )
            kept = first + part.rows
            body = seal(encode_body(name, columns), cluster=CLUSTER, epoch=1, sequence=sequence, kept=kept, dropped=0)
            sequence += 1
            status, _, _ = connection.ask("POST", "ingest", body)
            assert status == 200, status


def _buffered(data: Path) -> int:
    """Return the bytes of the giant run that are not compacted."""
    with closing(sqlite3.connect(f"file:{data / 'catalog.db'}?mode=ro", uri=True)) as database:
        return int(database.execute("SELECT buffered_nbytes FROM runs WHERE cluster = ?", (CLUSTER,)).fetchone()[0])


def run(tasks: int = TASKS) -> list[Result]:
    posts = capture(CAPTURE_S)
    limits = ("--rows-per-minute", "0", "--bytes-per-minute", "0", "--compact-after", str(QUIET_S))
    # The default of 1.75 GiB was enough for 4.5 million tasks, and not for ten.
    flags = (*limits, "--build-memory", str(BUILD_NBYTES))
    with tempfile.TemporaryDirectory() as directory, serve_data(data := Path(directory) / "data", *flags) as server:
        port, secret = server.port, server.secret
        alone, beside = list[float](), list[float]()
        _round(port, secret, posts[:3], 1, [])
        for number in range(ROUNDS):
            _round(port, secret, posts, 10 + number, alone)
        watch = Watch(server.process)
        watch.start()
        # In a process of its own: making ten million rows takes gigabytes.
        maker = multiprocessing.get_context("spawn").Process(target=_send, args=(port, secret, tasks))
        maker.start()
        maker.join()
        assert maker.exitcode == 0
        answers: list[tuple[int, float, str]] = []
        began, compacted = time.perf_counter(), list[float]()

        def finish() -> None:
            """Wait until the run is compacted, then open it."""
            while _buffered(data):
                time.sleep(1)
            compacted.append(time.perf_counter() - began)
            _open(port, secret, answers)

        person = threading.Thread(target=finish)
        person.start()
        number = 100
        while person.is_alive() or number < 100 + ROUNDS:
            _round(port, secret, posts, number, beside)
            number += 1
        watch.ended.set()
    ((status, opened_s, _),) = answers
    assert status == 200, status
    (a50, a99), (b50, b99) = (np.quantile(np.array(times) * 1000, (0.5, 0.99)).tolist() for times in (alone, beside))
    detail = f"median / 99 %: alone {a50:.1f} / {a99:.1f} ms, meanwhile {b50:.1f} / {b99:.1f} ms; {len(alone)} and {len(beside)}"
    memory = f"{watch.peak_nbytes / 1e9:.2g} GB for the server and its processes, {watch.alone_nbytes / 1e9:.2g} for the server"
    return [
        at_most(
            f"99 % of acknowledgements beside a run of {tasks:,} tasks, over alone", b99 / a99, MAX_RATIO, "×", detail
        ),
        Result(
            "compacted / its document opened after",
            f"{compacted[0]:.0f} / {opened_s:.0f} s",
            note=f"{QUIET_S} s of it until the run counts as over; {memory}",
        ),
    ]
