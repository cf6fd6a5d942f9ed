"""The files that a query of an account may read: links to its Parquet files, and rows that are not compacted yet."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import sqlalchemy as sa

from daskscope import units
from daskscope.storage import schema
from daskscope.storage.base.archive import Archive, Transaction
from daskscope.storage.base.blobs import LocalStore, MissingBlob
from daskscope.storage.runs.ingest import SECRET
from daskscope.storage.runs.read import ATTEMPTS, open_batch
from daskscope.storage.sql.check import SqlError
from daskscope.storage.sql.query import SqlFiles, frames_path

#: Maximum runs of a query; the newest are read.
MAX_RUNS = 5_000
#: Maximum bytes that are downloaded from an object store, and of rows that are not compacted yet.
MAX_DOWNLOAD = 1024 * 1024 * 1024
MAX_BUFFERED = 64 * 1024 * 1024
#: Runs per statement.
STEP = 500


@dataclass(frozen=True)
class SqlFilter:
    """The clusters that a query is about."""

    #: Clusters that were heard from since then.
    since_us: int = 0
    #: A single cluster; empty for all.
    cluster: str = ""


@dataclass
class PlacedFiles:
    """The files in a directory, and how many of the matching runs they are from."""

    directory: Path
    runs: int = 0
    all_runs: int = 0
    files: SqlFiles = field(default_factory=SqlFiles)
    #: Clusters that are left out, by the path of the first of their files that is missing.
    missing: dict[str, str] = field(default_factory=dict)

    def add(self, table: str, cluster: str) -> Path:
        """Return where to put another file of a cluster."""
        target = self.directory / self.files.add(table, cluster)
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    @property
    def is_complete(self) -> bool:
        """Whether no file was deleted since, because a compaction joined it with others."""
        paths = [self.directory / path for paths in self.files.paths.values() for path in paths]
        return all(path.exists() or frames_path(path).exists() for path in paths)


def check_tables(tables: Collection[str]) -> None:
    """Refuse tables that the server stores encrypted: a query would need them in plain on disk."""
    secret = sorted(SECRET.intersection(tables))
    if secret:
        raise SqlError(
            f"{' and '.join(secret)} contain{'s' if len(secret) == 1 else ''} text that the server stores encrypted. "
            "Query a recording file instead: daskscope sql QUERY FILE"
        )


def place_files(
    archive: Archive, account: int, tables: Collection[str], wanted: SqlFilter, directory: Path
) -> PlacedFiles:
    """Place the files of the given tables below a directory, but none of a cluster of which one is missing.

    A compaction at the same time may replace files: then start again.
    """
    check_tables(tables)
    for attempt in range(ATTEMPTS):
        placed = _place_files(archive, account, tables, wanted, directory / str(attempt))
        if _are_named(archive, placed.missing):
            break
    placed.files = placed.files.without(set(placed.missing.values()))
    return placed


def _are_named(archive: Archive, paths: Collection[str]) -> bool:
    """Return whether files are part of runs. Those that a compaction joined no longer are."""
    files = schema.files
    with archive.read() as tx:
        found = tx.execute(sa.select(sa.func.count()).where(files.c.path.in_(sorted(paths)[:STEP]))).scalar_one()
    return bool(found == min(len(paths), STEP))


def _place_files(
    archive: Archive, account: int, tables: Collection[str], wanted: SqlFilter, directory: Path
) -> PlacedFiles:
    directory.mkdir()
    with archive.snapshot() as tx:
        runs, all_runs = _runs(tx, account, wanted)
        placed = PlacedFiles(directory, len(runs), all_runs)
        left = MAX_DOWNLOAD
        for name, run, path, nbytes in _files(tx, runs, tables):
            local = _local(tx, path)
            left -= 0 if local else nbytes
            if left < 0:
                raise SqlError(
                    f"The query needs more than {units.nbytes(MAX_DOWNLOAD)} of files. Ask for fewer clusters."
                )
            try:
                _place(tx, path, local, placed.add(name, runs[run]))
            except MissingBlob:
                placed.missing[path] = runs[run]
        for name, run, frames in _buffered(tx, account, runs, tables):
            frames_path(placed.add(name, runs[run])).write_bytes(msgspec.msgpack.encode(frames))
    return placed


def _runs(tx: Transaction, account: int, wanted: SqlFilter) -> tuple[dict[int, str], int]:
    """Return the newest runs of an account by number, and how many there are."""
    runs = schema.runs
    mine = (runs.c.account_id == account) & (runs.c.received_us >= wanted.since_us)
    if wanted.cluster:
        mine &= runs.c.cluster == wanted.cluster
    total = tx.execute(sa.select(sa.func.count()).where(mine)).scalar_one()
    newest = sa.select(runs.c.id, runs.c.cluster).where(mine).order_by(runs.c.received_us.desc()).limit(MAX_RUNS)
    return {row.id: row.cluster for row in tx.execute(newest)}, total


def _files(tx: Transaction, runs: dict[int, str], tables: Collection[str]) -> Iterator[tuple[str, int, str, int]]:
    files, numbers = schema.files, sorted(runs)
    for first in range(0, len(numbers), STEP):
        mine = files.c.run_id.in_(numbers[first : first + STEP]) & files.c.name.in_(sorted(tables))
        for row in tx.execute(sa.select(files).where(mine).order_by(files.c.id)):
            yield row.name, row.run_id, row.path, row.nbytes


def _local(tx: Transaction, path: str) -> Path | None:
    """Return the file of a blob on this machine; None if the store is elsewhere."""
    return tx.store.local(path).resolve() if isinstance(tx.store, LocalStore) else None


def _place(tx: Transaction, path: str, local: Path | None, target: Path) -> None:
    """Link a file of this machine, or download it."""
    if local is None:
        target.write_bytes(tx.store.get(path))
    elif local.exists():
        target.symlink_to(local)
    else:
        raise MissingBlob(path)


def _buffered(
    tx: Transaction, account: int, runs: dict[int, str], tables: Collection[str]
) -> Iterator[tuple[str, int, list[bytes]]]:
    """Yield the frames of each run and table that are not in files yet; the newest runs first, up to a limit.

    The process of the query decodes them: 64 MB of frames may have a hundred million rows.
    """
    batches, left = schema.batches, MAX_BUFFERED
    for run in runs:
        mine = (batches.c.run_id == run) & batches.c.frame.is_not(None) & (batches.c.damage == "")
        query = sa.select(batches).where(mine & batches.c.name.in_(sorted(tables)))
        parts: dict[str, list[bytes]] = {}
        for row in tx.execute(query.order_by(batches.c.epoch, batches.c.sequence)):
            left -= len(row.frame)
            if left < 0:
                raise SqlError(
                    "Too many rows have arrived in the last minutes. Try again soon, or ask for fewer clusters."
                )
            parts.setdefault(row.name, []).append(open_batch(tx, account, run, row).frame)
        for name, found in parts.items():
            yield name, run, found
