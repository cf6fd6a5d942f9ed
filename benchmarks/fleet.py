"""What a server with a year of a team's history takes to answer: 10,000 clusters, 200,000 computations, one run of 1 M tasks.

Rows are put into the catalog as they would be after all that had come in; how they come in is what ``ingest`` measures. Each
answer is asked for as the pages ask for it, and the median of some tries counts.
"""

from __future__ import annotations

import itertools
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from benchmarks import synthetic
from benchmarks.result import Result, at_most
from daskscope.server import metrics, rendering
from daskscope.server.services import Services, open_services
from daskscope.server.settings import Settings
from daskscope.storage import schema
from daskscope.storage.blobs import new_path
from daskscope.storage.clusters import ClusterFilter, count_clusters, find_cluster, list_clusters
from daskscope.storage.computations import list_computations
from daskscope.storage.failures import list_error_groups, list_exceptions
from daskscope.storage.ingest import SECRET
from daskscope.storage.parquet import to_parquet
from daskscope.storage.runs import Part, read_run
from daskscope.storage.usage import usage

CLUSTERS = 10_000
COMPUTATIONS = 20
FAILURES = 100_000
GROUPS = 500
TASKS = 1_000_000
DAY = 24 * 3600 * 1_000_000
NOW = 1_800_000_000_000_000
YEAR = 365 * DAY
LOST = 60_000_000
BAR_MS = 100.0
TRIES = 7


def run(clusters: int = CLUSTERS, tasks: int = TASKS) -> list[Result]:
    with tempfile.TemporaryDirectory() as directory:
        services = open_services(Settings(data=directory), clock=lambda: NOW)
        try:
            with services.database.write() as connection:
                _fill(connection, services, clusters)
            large = _large_run(services, tasks)
            return [*_lists(services, clusters), *_opening(services, large, tasks)]
        finally:
            services.close()


# ---------------------------------------------------------------- filling


def _fill(connection: Connection, services: Services, clusters: int) -> None:
    rng, account = random.Random(7), services.local_account
    _insert(connection, schema.runs, (_run(rng, n, account) for n in range(1, clusters + 1)))
    _insert(
        connection, schema.epochs, ({"run_id": n, "epoch": 1, "floor": 40, "taken": 40} for n in range(1, clusters + 1))
    )
    _insert(connection, schema.workers, _workers(clusters))
    starts = dict(connection.execute(sa.select(schema.runs.c.id, schema.runs.c.start_us)).tuples().all())
    code = [
        services.vault.seal_text(connection, account, f"result = x.sum(axis={n}).compute()\n" * 20) for n in range(50)
    ]
    _insert(connection, schema.computations, _computations(rng, starts, account, code))
    _insert(connection, schema.prefixes, _prefixes(rng, starts))
    _insert(connection, schema.days, _days(rng, starts, account))
    text = services.vault.seal_text(connection, account, json.dumps({"message": "m" * 100, "traceback": "t" * 3000}))
    groups = [f"{n:032x}" for n in range(GROUPS)]
    _insert(connection, schema.exceptions, _failures(rng, starts, account, groups, text))
    _insert(connection, schema.error_groups, (
        {"account_id": account, "fingerprint": name, "type": "ValueError", "sealed_sample": text, "count": FAILURES // GROUPS,
         "first_us": NOW - YEAR, "last_us": NOW - rng.randrange(YEAR), "state": rng.choice(("open", "open", "resolved", "ignored"))}
        for name in groups
    ))  # fmt: skip


def _insert(connection: Connection, table: sa.Table, given: Iterable[dict[str, Any]]) -> None:
    """By the driver itself: making SQL of a million rows one by one takes minutes."""
    iterator = iter(given)
    first = next(iterator)
    names = ", ".join(f'"{name}"' for name in first)
    statement = f'INSERT INTO "{table.name}" ({names}) VALUES ({", ".join("?" * len(first))})'
    cursor = connection.connection.cursor()
    cursor.execute(statement, tuple(first.values()))
    while rows := [tuple(row.values()) for row in itertools.islice(iterator, 10_000)]:
        cursor.executemany(statement, rows)


def _run(rng: random.Random, number: int, account: int) -> dict[str, Any]:
    start = NOW - rng.randrange(YEAR)
    length = rng.randrange(60_000_000, 8 * 3_600_000_000)
    living = start + length > NOW
    return {
        "id": number, "account_id": account, "cluster": f"Scheduler-{number:08x}-0000-4000-8000-{number:012x}",
        "name": f"{rng.choice(('etl', 'train', 'adhoc', 'nightly'))}-{number}", "user": f"user{rng.randrange(60)}",
        "host": f"node{rng.randrange(300)}", "address": "tcp://10.0.0.1:8786", "tags": json.dumps([f"queue-{number % 7}"]),
        "created_us": start, "received_us": min(start + length, NOW), "seen_us": min(start + length, NOW), "start_us": start,
        "end_us": 0 if living or number % 20 == 0 else start + length, "end_reason": "closed", "versions": "v" * 600,
        "platform": "p" * 200, "config": "c" * 3000, "tasks": 40_000, "exceptions": 10, "compute_us": length * 8,
        "thread_us": length * 20, "memory_byte_s": 1e12, "workers": 10, "threads": 20, "computations": COMPUTATIONS,
    }  # fmt: skip


def _workers(clusters: int) -> Iterator[dict[str, Any]]:
    for run_id in range(1, clusters + 1):
        for number in range(10):
            yield {"run_id": run_id, "server_id": f"Worker-{number}", "worker": f"tcp://10.0.1.{number}:3000", "nthreads": 2,
                   "memory_limit": 8 << 30, "seen_us": NOW, "start_us": NOW - DAY}  # fmt: skip


def _computations(
    rng: random.Random, starts: dict[int, int], account: int, code: list[Any]
) -> Iterator[dict[str, Any]]:
    for run_id, start in starts.items():
        for number in range(COMPUTATIONS):
            begin = start + number * 60_000_000
            yield {"run_id": run_id, "computation": f"computation-{run_id}-{number}", "account_id": account, "seen_us": begin,
                   "start_us": begin, "stop_us": begin + 30_000_000, "state": rng.choice(("done", "done", "erred", "running")),
                   "sealed_code": code[number], "code_file": "notebook.ipynb", "tasks": 2000}  # fmt: skip


def _prefixes(rng: random.Random, starts: dict[int, int]) -> Iterator[dict[str, Any]]:
    for run_id, start in starts.items():
        for number in range(COMPUTATIONS):
            for prefix in ("read-parquet", "getitem", "sum", "rechunk-merge"):
                yield {"run_id": run_id, "computation": f"computation-{run_id}-{number}", "prefix": prefix, "tasks": 500,
                       "compute_us": rng.randrange(10**9), "nbytes": 10**9, "first_us": start, "last_us": start}  # fmt: skip


def _days(rng: random.Random, starts: dict[int, int], account: int) -> Iterator[dict[str, Any]]:
    for run_id, start in starts.items():
        for prefix in ("read-parquet", "getitem", "sum", "rechunk-merge", f"user-{run_id % 400}"):
            yield {"run_id": run_id, "day": start // DAY, "prefix": prefix, "account_id": account, "tasks": 10_000,
                   "compute_us": rng.randrange(10**10), "nbytes": 10**10}  # fmt: skip


def _failures(
    rng: random.Random, starts: dict[int, int], account: int, groups: list[str], text: Any
) -> Iterator[dict[str, Any]]:
    numbers = list(starts)
    for _ in range(FAILURES):
        run_id = rng.choice(numbers)
        yield {"account_id": account, "run_id": run_id, "fingerprint": rng.choice(groups), "time_us": starts[run_id],
               "key": "k", "type": "ValueError", "sealed_text": text, "count": 1, "user": f"user{run_id % 60}"}  # fmt: skip


def _large_run(services: Services, tasks: int) -> int:
    """A finished run as compaction leaves it; its number."""
    recording, account = synthetic.recording(tasks), services.local_account
    start, stop = int(recording["tasks"]["start_us"].min()), int(recording["tasks"]["stop_us"].max())
    values = {"account_id": account, "cluster": "large", "name": "large", "start_us": start, "end_us": stop, "seen_us": stop,
              "tasks": tasks, "received_us": stop}  # fmt: skip
    with services.database.write() as connection:
        result = connection.execute(sa.insert(schema.runs).values(values))
        number = int(result.inserted_primary_key[0])  # type: ignore[index]
        connection.execute(sa.insert(schema.epochs).values(run_id=number, epoch=1, taken=50))
        for name, table in recording.tables.items():
            data = to_parquet(table)
            path = new_path(account, f"runs/{number}", f"{name}.parquet")
            stored = services.vault.seal(connection, account, data) if name in SECRET else data
            services.store.put(path, stored)
            row = {"run_id": number, "name": name, "path": path, "rows": table.rows, "nbytes": len(data)}
            connection.execute(sa.insert(schema.files).values(row))
    return number


# ---------------------------------------------------------------- asking


def _median_ms(action: Callable[[], Any]) -> float:
    times = []
    for _ in range(TRIES):
        began = time.perf_counter()
        action()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def _lists(services: Services, clusters: int) -> list[Result]:
    vault, account = services.vault, services.local_account
    middle = NOW - YEAR // 2

    def ask(action: Callable[[Connection], Any]) -> Callable[[], Any]:
        def asked() -> Any:
            with services.database.read() as connection:
                return action(connection)

        return asked

    def found(**wanted: Any) -> Callable[[Connection], Any]:
        return lambda c: list_clusters(c, account, ClusterFilter(**wanted), NOW, LOST)

    def computed(**wanted: Any) -> Callable[[Connection], Any]:
        return lambda c: list_computations(c, vault, account, NOW, LOST, **wanted)

    with services.database.read() as connection:
        (row,) = list_clusters(connection, account, ClusterFilter(limit=1, after=(middle, 0)), NOW, LOST)
    questions: dict[str, Callable[[Connection], Any]] = {
        "clusters, the newest 100": found(),
        "clusters, a page in the middle": found(after=(middle, 0)),
        "clusters by state and user": found(states=("lost",), user="user7"),
        "clusters by text that few have": found(search="etl-77"),
        "clusters by tag, 30 days": found(tag="queue-3", since_us=NOW - 30 * DAY),
        "clusters counted by state": lambda c: count_clusters(c, account, NOW, LOST),
        "one cluster": lambda c: find_cluster(c, account, row["cluster"], NOW, LOST),
        "computations, the newest 100": computed(),
        "computations, a page in the middle": computed(after=(middle, "x")),
        "computations of one cluster": computed(run=row["id"]),
        "computations, 30 days": computed(since_us=NOW - 30 * DAY),
        "failures, the newest 100": lambda c: list_exceptions(c, vault, account),
        "failures of one user": lambda c: list_exceptions(c, vault, account, user="user7"),
        "groups of failures, the newest 100": lambda c: list_error_groups(c, vault, account),
        "groups of failures, open": lambda c: list_error_groups(c, vault, account, states=("open",)),
        "usage of a year by day": lambda c: usage(c, account, "day", (NOW - YEAR) // DAY),
        "usage of 30 days by user": lambda c: usage(c, account, "user", NOW // DAY - 30),
        "usage of a year by prefix": lambda c: usage(c, account, "prefix", (NOW - YEAR) // DAY),
    }
    note = f"{clusters:,} clusters, {clusters * COMPUTATIONS:,} computations, {FAILURES:,} failures; SQLite"
    results = [at_most(what, _median_ms(ask(action)), BAR_MS, " ms", note) for what, action in questions.items()]
    return [
        *results,
        at_most("numbers for Prometheus", _median_ms(lambda: metrics.exposition(services)), BAR_MS, " ms", note),
    ]


def _opening(services: Services, number: int, tasks: int) -> list[Result]:
    account = services.local_account
    began = time.perf_counter()
    rendering.of_run(services, account, number, "large")
    made = time.perf_counter() - began

    def cold() -> None:
        rendering._cache = rendering.RenderingCache()
        rendering.of_run(services, account, number, "large")

    with services.database.read() as connection:
        span = connection.execute(
            sa.select(schema.runs.c.start_us, schema.runs.c.end_us).where(schema.runs.c.id == number)
        ).one()
    width = (span.end_us - span.start_us) // 100

    def window() -> None:
        first = span.start_us + 37 * width
        part = Part(("tasks",), window=(first, first + width), columns=WINDOW_COLUMNS)
        with services.database.read() as connection:
            table = read_run(connection, services.vault, services.store, account, number, "large", part)["tasks"]
        inside = np.flatnonzero((table["stop_us"] >= first) & (table["start_us"] <= first + width))
        chosen = table.take(inside)
        assert all(len(chosen[name].tolist()) == len(inside) > 0 for name in WINDOW_COLUMNS)

    note = f"a finished run of {tasks:,} tasks"
    return [
        at_most("opening a finished run", _median_ms(cold), 300.0, " ms", f"{note}, from what is kept of it"),
        Result("opening it for the first time", f"{made:.3g} s", note="made from its rows, once"),
        at_most("a window of its tasks", _median_ms(window), BAR_MS, " ms", f"one hundredth of {note}"),
    ]


WINDOW_COLUMNS = ("key", "prefix", "worker", "status", "computation", "start_us", "stop_us", "thread", "nbytes")
