"""Write a year of a team's history directly to a catalog.

10,000 clusters, 200,000 computations, 100,000 failures in 500 groups. ``ingest`` measures how such data arrives.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from benchmarks import synthetic
from daskscope.server.services import Services
from daskscope.storage import schema
from daskscope.storage.base.archive import Transaction
from daskscope.storage.base.blobs import new_path
from daskscope.storage.catalog.code_texts import store_codes, text_digest
from daskscope.storage.catalog.error_groups import error_place
from daskscope.storage.catalog.reports import NewReport, add_report
from daskscope.storage.people.accounts import set_member
from daskscope.storage.people.users import create_user
from daskscope.storage.runs.ingest import SECRET, code_digest
from daskscope.storage.runs.parquet import to_parquet

CLUSTERS = 10_000
#: Per cluster.
COMPUTATIONS = 20
FAILURES = 100_000
GROUPS = 500
USERS = 60
REPORTS = 300
SECOND = 1_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR
YEAR = 365 * DAY
#: Sums of ten seconds: 1,400 for an average cluster. Only clusters younger than this have them, as pages show no others.
TIMELINE = 14 * DAY
PREFIXES = ("read-parquet", "getitem", "sum", "rechunk-merge")
CODES = 50

Rows = Iterator[dict[str, Any]]


@dataclass(frozen=True)
class Life:
    """When a cluster of the history started and was last seen."""

    number: int
    start_us: int
    seen_us: int


class History:
    """The year before ``now_us``, reproducible by its seed."""

    def __init__(self, services: Services, now_us: int, clusters: int = CLUSTERS) -> None:
        self.services = services
        self.account = services.local_account
        self.now_us = now_us
        self.rng = random.Random(7)
        self.lives = [self._life(number) for number in range(1, clusters + 1)]

    def fill(self) -> None:
        with self.services.archive.write() as tx:
            self._fill(tx)
        if not self.services.archive.database.is_sqlite:
            # The database does this itself within a minute of so many changes.
            with self.services.archive.database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as tx:
                tx.execute(sa.text("ANALYZE"))

    def _fill(self, tx: Transaction) -> None:
        account = self.account
        code = [f"result = x.sum(axis={n}).compute()\n" * 20 for n in range(CODES)]
        texts = json.dumps({"message": "m" * 100, "traceback": "t" * 3000})
        failures = [tx.seal_text(account, texts, error_place(group_name(n))) for n in range(GROUPS)]
        insert(tx.connection, schema.runs, map(self._run, self.lives))
        epochs = ({"run_id": life.number, "epoch": 1, "floor": 40, "taken": 40} for life in self.lives)
        insert(tx.connection, schema.epochs, epochs)
        insert(tx.connection, schema.workers, self._workers())
        store_codes(tx, account, code)
        insert(tx.connection, schema.computations, self._computations(code))
        insert(tx.connection, schema.prefixes, self._prefixes())
        insert(tx.connection, schema.days, self._days())
        insert(tx.connection, schema.timeline, self._timeline())
        insert(tx.connection, schema.exceptions, self._failures(failures))
        insert(tx.connection, schema.error_groups, self._groups(failures))
        _follow(tx.connection, schema.runs)
        for number in range(USERS):
            user = create_user(tx, f"user{number}", "")
            set_member(tx, account, user.id, "member")
        for number in range(REPORTS):
            new = NewReport(
                f"report-{number}.html", f"Nightly {number}", "recording", f"none/{number}", 10**6, "public"
            )
            add_report(tx, account, self.services.local_user, new)

    def _life(self, number: int) -> Life:
        start = self.now_us - self.rng.randrange(YEAR)
        return Life(number, start, min(start + self.rng.randrange(60 * SECOND, 8 * HOUR), self.now_us))

    def _run(self, life: Life) -> dict[str, Any]:
        number, rng, length = life.number, self.rng, life.seen_us - life.start_us
        # One of twenty clusters was killed.
        over = life.seen_us < self.now_us and number % 20 != 0
        idle = life.seen_us == self.now_us and number % 3 == 0
        return {
            "id": number, "account_id": self.account, "cluster": cluster_name(number),
            "name": f"{rng.choice(('etl', 'train', 'adhoc', 'nightly'))}-{number}", "user": f"user{rng.randrange(USERS)}",
            "host": f"node{rng.randrange(300)}", "address": "tcp://10.0.0.1:8786", "tags": json.dumps([f"queue-{number % 7}"]),
            "created_us": life.start_us, "received_us": life.seen_us, "seen_us": life.seen_us, "start_us": life.start_us,
            "end_us": life.seen_us if over else 0, "end_reason": "closed", "idle_since_us": life.seen_us - SECOND if idle else 0,
            "versions": "v" * 600, "platform": "p" * 200, "config": "c" * 3000, "tasks": 40_000, "exceptions": 10,
            "compute_us": length * 8, "thread_us": length * 20, "memory_byte_s": 1e12, "workers": 10, "threads": 20,
            "computations": COMPUTATIONS, "peak_workers": 10, "peak_threads": 20, "peak_memory_limit": 80 << 30,
        }  # fmt: skip

    def _workers(self) -> Rows:
        for life in self.lives:
            for n in range(10):
                yield {"run_id": life.number, "server_id": f"Worker-{n}", "worker": f"tcp://10.0.1.{n}:3000", "nthreads": 2,
                       "memory_limit": 8 << 30, "seen_us": life.seen_us, "start_us": life.start_us}  # fmt: skip

    def _computations(self, code: list[str]) -> Rows:
        digests = [{"code_text": text_digest(text), "code_digest": code_digest(text, 1)} for text in code]
        for life in self.lives:
            for n in range(COMPUTATIONS):
                begin = life.start_us + n * 60 * SECOND
                yield {"run_id": life.number, "computation": computation_name(life.number, n), "account_id": self.account,
                       "seen_us": begin, "start_us": begin, "stop_us": begin + 30 * SECOND,
                       "state": self.rng.choice(("done", "done", "erred", "running")),
                       **digests[(life.number + n) % CODES], "code_file": "notebook.ipynb", "tasks": 2000}  # fmt: skip

    def _prefixes(self) -> Rows:
        for life in self.lives:
            for n in range(COMPUTATIONS):
                for prefix in PREFIXES:
                    yield {"run_id": life.number, "computation": computation_name(life.number, n), "prefix": prefix, "tasks": 500,
                           "compute_us": self.rng.randrange(10**9), "nbytes": 10**9, "first_us": life.start_us,
                           "last_us": life.start_us}  # fmt: skip

    def _days(self) -> Rows:
        for life in self.lives:
            for prefix in (*PREFIXES, f"user-{life.number % 400}"):
                yield {"run_id": life.number, "day": life.start_us // DAY, "prefix": prefix, "account_id": self.account,
                       "tasks": 10_000, "compute_us": self.rng.randrange(10**10), "nbytes": 10**10}  # fmt: skip

    def _timeline(self) -> Rows:
        step = 10 * SECOND
        for life in self.lives:
            if life.start_us > self.now_us - TIMELINE:
                for bucket in range(life.start_us // step * step, life.seen_us, step):
                    yield {
                        "run_id": life.number,
                        "bucket": bucket,
                        "tasks": 28,
                        "compute_us": self.rng.randrange(20 * step),
                    }

    def _failures(self, texts: list[Any]) -> Rows:
        for n in range(FAILURES):
            life = self.rng.choice(self.lives)
            yield {"account_id": self.account, "run_id": life.number, "fingerprint": group_name(n % GROUPS),
                   "time_us": life.start_us, "key": "k", "type": "ValueError", "sealed_text": texts[n % GROUPS], "count": 1,
                   "user": f"user{life.number % USERS}"}  # fmt: skip

    def _groups(self, texts: list[Any]) -> Rows:
        for n in range(GROUPS):
            yield {"account_id": self.account, "fingerprint": group_name(n), "type": "ValueError", "sealed_sample": texts[n],
                   "count": FAILURES // GROUPS, "first_us": self.now_us - YEAR,
                   "last_us": self.now_us - self.rng.randrange(YEAR),
                   "state": self.rng.choice(("open", "open", "resolved", "ignored"))}  # fmt: skip


def cluster_name(number: int) -> str:
    return f"Scheduler-{number:08x}-0000-4000-8000-{number:012x}"


def computation_name(number: int, n: int) -> str:
    return f"computation-{number}-{n}"


def group_name(n: int) -> str:
    return f"{n:032x}"


def insert(connection: Connection, table: sa.Table, given: Iterable[dict[str, Any]]) -> None:
    """Insert rows with the driver: SQLAlchemy takes minutes for a million rows."""
    iterator = iter(given)
    first = next(iterator)
    rows = itertools.chain([first], iterator)
    names = ", ".join(f'"{name}"' for name in first)
    cursor: Any = connection.connection.cursor()
    if connection.dialect.name != "sqlite":
        with cursor.copy(f'COPY "{table.name}" ({names}) FROM STDIN') as copy:
            for row in rows:
                copy.write_row(tuple(row.values()))
        return
    statement = f'INSERT INTO "{table.name}" ({names}) VALUES ({", ".join("?" * len(first))})'
    while part := [tuple(row.values()) for row in itertools.islice(rows, 10_000)]:
        cursor.executemany(statement, part)


def _follow(tx: Connection, table: sa.Table) -> None:
    """Advance the sequences beyond the inserted IDs, which SQLite does automatically."""
    if tx.dialect.name != "sqlite":
        text = f"SELECT setval(pg_get_serial_sequence(:name, 'id'), (SELECT max(id) FROM {table.name}))"
        tx.execute(sa.text(text), {"name": table.name})


def large_run(services: Services, tasks: int) -> int:
    """Write a finished and compacted run; return its ID."""
    recording, account = synthetic.recording(tasks), services.local_account
    start, stop = int(recording["tasks"]["start_us"].min()), int(recording["tasks"]["stop_us"].max())
    values = {"account_id": account, "cluster": "large", "name": "large", "start_us": start, "end_us": stop, "seen_us": stop,
              "tasks": tasks, "received_us": stop}  # fmt: skip
    with services.archive.write() as tx:
        result = tx.execute(sa.insert(schema.runs).values(values))
        assert result.inserted_primary_key is not None
        number = int(result.inserted_primary_key[0])
        tx.execute(sa.insert(schema.epochs).values(run_id=number, epoch=1, taken=50))
        for name, table in recording.tables.items():
            data = to_parquet(table)
            path = new_path(account, f"runs/{number}", f"{name}.parquet")
            stored = tx.seal(account, data, path) if name in SECRET else data
            services.archive.store.put(path, stored)
            row = {"run_id": number, "name": name, "path": path, "rows": table.rows, "nbytes": len(data)}
            tx.execute(sa.insert(schema.files).values(row))
    return number
