"""A server's storage without the server: a catalog, a vault and a store, and what a test does with them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from daskscope.analysis.rollup import roll_up
from daskscope.model.recording import Recording
from daskscope.storage import schema
from daskscope.storage.accounts import create_account
from daskscope.storage.blobs import BlobStore
from daskscope.storage.clusters import find_cluster
from daskscope.storage.compaction import Compacted, compact
from daskscope.storage.database import Database
from daskscope.storage.ingest import Batch, take
from daskscope.storage.runs import WHOLE, Part, read_run
from daskscope.storage.vault import Vault
from daskscope.wire.decode import read_frame
from daskscope.wire.encode import encode_body, seal
from daskscope.wire.rows import Row, columns_of_rows

MASTER = bytes(range(32))
MINUTE = 60_000_000
DAY = 24 * 60 * MINUTE
#: Some moment on a server's clock.
NOW = 1_800_000_000_000_000
LOST_AFTER = MINUTE


@dataclass
class Archive:
    """The storage of one server with an account in it."""

    database: Database
    store: BlobStore
    vault: Vault = field(default_factory=lambda: Vault([MASTER]))
    account: int = 0
    now_us: int = NOW

    def __post_init__(self) -> None:
        if not self.account:
            self.account = self.new_account("team")

    def new_account(self, name: str) -> int:
        with self.database.write() as connection:
            return create_account(connection, self.vault, name, self.now_us).id

    def take(self, frames: Iterable[bytes], *, account: int = 0, user: str = "") -> list[bool]:
        """Ingest frames in one transaction; for each whether it was new."""
        batches = [batch_of(frame, account or self.account, user) for frame in frames]
        with self.database.write() as connection:
            return take(connection, self.vault, batches, self.now_us)

    def run(self, cluster: str = "c", account: int = 0) -> dict[str, Any]:
        with self.database.read() as connection:
            row = find_cluster(connection, account or self.account, cluster, self.now_us, LOST_AFTER)
        assert row is not None, f"there is no run of {cluster}"
        return row

    def compact(self, run: int, *, over: bool = True) -> Compacted | None:
        return compact(self.database, self.vault, self.store, self.account, run, self.now_us, over=over)

    def read(self, run: int, part: Part = WHOLE) -> Recording:
        with self.database.read() as connection:
            return read_run(connection, self.vault, self.store, self.account, run, "test", part)

    def rows(self, table: sa.Table, *names: str, order: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Rows of a table of the catalog; all columns, or those named."""
        columns = [table.c[name] for name in names] or list(table.c)
        query = sa.select(*columns).order_by(*(table.c[name] for name in order or [c.name for c in table.primary_key]))
        with self.database.read() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def count(self, table: sa.Table) -> int:
        with self.database.read() as connection:
            return int(connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())

    def execute(self, statement: Any) -> None:
        with self.database.write() as connection:
            connection.execute(statement)

    def blobs(self) -> list[str]:
        return sorted(path for path, _, _ in self.store.list())

    def tables_naming(self, run: int) -> list[str]:
        """The tables that have a row of a run."""
        found = []
        for table in schema.metadata.sorted_tables:
            name = "run_id" if "run_id" in table.c else "id" if table is schema.runs else ""
            if name:
                with self.database.read() as connection:
                    query = sa.select(sa.func.count()).select_from(table).where(table.c[name] == run)
                    if connection.execute(query).scalar_one():
                        found.append(table.name)
        return found


def batch_of(frame: bytes, account: int, user: str = "") -> Batch:
    """As the server makes it of what came in."""
    read = read_frame(frame)
    return Batch(account, user, read.header, frame, roll_up(read.without_keys()))


def frame(
    table: str,
    rows: Sequence[Row],
    sequence: int = 0,
    *,
    cluster: str = "c",
    epoch: int = 1,
    kept: int = 0,
    dropped: int = 0,
) -> bytes:
    """One sealed frame."""
    body = encode_body(table, columns_of_rows(table, rows))
    return seal(body, cluster=cluster, epoch=epoch, sequence=sequence, kept=kept or len(rows), dropped=dropped)


def frames_of_file(data: bytes, offset: int) -> Iterator[bytes]:
    """The frames of a recording file, as they are."""
    while offset < len(data):
        size = read_frame(data, offset).size
        yield data[offset : offset + size]
        offset += size


def task(number: int, **values: Any) -> dict[str, Any]:
    """A row of tasks: one second each, one after the other."""
    start = NOW + number * 1_000_000
    row = {
        "key": f"('inc-1234', {number})",
        "group": "inc-1234",
        "prefix": "inc",
        "computation": "comp",
        "worker": "tcp://10.0.0.1:1",
        "status": "ok",
        "start_us": start,
        "stop_us": start + 1_000_000,
        "nbytes": 100,
    }
    return {**row, **values}


def numbered(rows: Sequence[Sequence[Row]], table: str = "tasks", **where: Any) -> list[bytes]:
    """Frames of one table, numbered from 0, that say truly how many rows were kept so far."""
    kept = itertools.accumulate(len(part) for part in rows)
    return [frame(table, part, n, kept=count, **where) for n, (part, count) in enumerate(zip(rows, kept))]
