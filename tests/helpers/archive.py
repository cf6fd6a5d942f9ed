"""A server's storage without the server: a catalog, a vault and a blob store, with helpers for tests."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.analysis.running.rollup import roll_up
from daskscope.model.recording import Recording
from daskscope.storage import schema
from daskscope.storage.base import archive as storage
from daskscope.storage.base.blobs import BlobStore, LocalStore
from daskscope.storage.base.database import Database
from daskscope.storage.base.vault import Vault
from daskscope.storage.catalog.clusters import Cluster, find_cluster, state_of
from daskscope.storage.doctor import examine
from daskscope.storage.people.accounts import create_account
from daskscope.storage.runs.compaction import Compacted, compact
from daskscope.storage.runs.ingest import Batch, store_batches
from daskscope.storage.runs.read import WHOLE, Part, read_run
from daskscope.wire.decode import read_frame
from daskscope.wire.encode import encode_body, seal
from daskscope.wire.file import Row, columns_of_rows

MASTER = bytes(range(32))
MINUTE = 60_000_000
DAY = 24 * 60 * MINUTE
#: An arbitrary time on the server's clock.
NOW = 1_800_000_000_000_000
LOST_AFTER = MINUTE


class Archive(storage.Archive):
    """An archive with one account and a clock that tests set."""

    def __init__(
        self, database: Database, store: BlobStore, vault: Vault | None = None, account: int = 0, now_us: int = NOW
    ) -> None:
        self.now_us = now_us
        super().__init__(database, vault or Vault([MASTER]), store, lambda: self.now_us, LOST_AFTER)
        self.account = account or self.new_account("team")

    def with_store(self, store: BlobStore) -> Archive:
        """Return the same archive on another store."""
        return Archive(self.database, store, self.vault, self.account, self.now_us)

    def new_account(self, name: str) -> int:
        with self.write() as tx:
            return create_account(tx, name).id

    def ingest(self, frames: Iterable[bytes], *, account: int = 0, user: str = "") -> list[bool]:
        """Ingest frames in one transaction; return for each whether it was new."""
        batches = [batch_of(frame, account or self.account, user) for frame in frames]
        with self.write() as tx:
            return store_batches(tx, batches).fresh

    def run(self, cluster: str = "c", account: int = 0) -> dict[str, Any]:
        with self.read() as tx:
            query = sa.select(schema.runs, state_of(tx.lost_before_us).label("state"))
            mine = (schema.runs.c.account_id == (account or self.account)) & (schema.runs.c.cluster == cluster)
            row = tx.execute(query.where(mine)).mappings().one_or_none()
        assert row is not None, f"no run of cluster {cluster}"
        return dict(row)

    def cluster(self, name: str) -> Cluster:
        with self.read() as tx:
            found = find_cluster(tx, self.account, name)
        assert found is not None, f"no run of cluster {name}"
        return found

    def compact(self, run: int, *, over: bool = True) -> Compacted | None:
        return compact(self, self.account, run, over=over)

    def recording(self, run: int, part: Part = WHOLE) -> Recording:
        with self.read() as tx:
            return read_run(tx, self.account, run, "test", part)

    def rows(self, table: sa.Table, *names: str, order: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Return the rows of a catalog table: all columns, or the named ones."""
        columns = [table.c[name] for name in names] or list(table.c)
        query = sa.select(*columns).order_by(*(table.c[name] for name in order or [c.name for c in table.primary_key]))
        with self.read() as tx:
            return [dict(row) for row in tx.execute(query).mappings()]

    def count(self, table: sa.Table) -> int:
        with self.read() as tx:
            return int(tx.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())

    def execute(self, statement: Any) -> None:
        with self.write() as tx:
            tx.execute(statement)

    def blobs(self) -> list[str]:
        return sorted(path for path, _, _ in self.store.list())

    def tables_naming(self, run: int) -> list[str]:
        """Return the names of the tables with rows of a run."""
        found = []
        for table in schema.metadata.sorted_tables:
            name = "run_id" if "run_id" in table.c else "id" if table is schema.runs else ""
            if name:
                with self.read() as tx:
                    query = sa.select(sa.func.count()).select_from(table).where(table.c[name] == run)
                    if tx.execute(query).scalar_one():
                        found.append(table.name)
        return found


def transaction(connection: Connection, vault: Vault, directory: Path = Path()) -> storage.Transaction:
    """Return a transaction on a given connection with a given vault."""
    return storage.Transaction(connection, vault, LocalStore(directory), NOW, LOST_AFTER)


def at(tx: storage.Transaction, now_us: int) -> storage.Transaction:
    """Return the transaction as if it had begun at another time."""
    return replace(tx, now_us=now_us)


def batch_of(frame: bytes, account: int, user: str = "") -> Batch:
    """Return the batch that the server makes of a frame."""
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
    """Return one sealed frame."""
    body = encode_body(table, columns_of_rows(table, rows))
    return seal(body, cluster=cluster, epoch=epoch, sequence=sequence, kept=kept or len(rows), dropped=dropped)


def frames_of_file(data: bytes, offset: int) -> Iterator[bytes]:
    """Yield the frames of a recording file unchanged."""
    while offset < len(data):
        size = read_frame(data, offset).size
        yield data[offset : offset + size]
        offset += size


def task(number: int, **values: Any) -> dict[str, Any]:
    """Return a row of ``tasks``: each takes one second, and they run one after the other."""
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
    """Return frames of one table, numbered from 0, with the correct number of rows kept so far."""
    kept = itertools.accumulate(len(part) for part in rows)
    return [frame(table, part, n, kept=count, **where) for n, (part, count) in enumerate(zip(rows, kept))]


def archive_paths(archive: Archive) -> list[str]:
    """Return the files that the catalog names, including replaced ones."""
    return sorted(row["path"] for table in (schema.files, schema.replaced_files) for row in archive.rows(table, "path"))


def problem_texts(archive: Archive) -> dict[str, list[str]]:
    """Return the problems by check, without the checks that found nothing."""
    return {name: [f.text for f in found] for name, found in examine(archive) if found}


def cluster_row(cluster: str, /, **values: Any) -> dict[str, Any]:
    return {
        "cluster": cluster,
        "name": f"the {cluster}",
        "seen_us": NOW,
        "start_us": NOW - MINUTE,
        "user": "ann",
        **values,
    }


def add_cluster(archive: Archive, cluster: str, /, **values: Any) -> int:
    archive.ingest([frame("clusters", [cluster_row(cluster, **values)], cluster=cluster)])
    return int(archive.run(cluster)["id"])
