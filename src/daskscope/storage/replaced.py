"""Replaced files: named by nothing, but kept for a while.

A catalog that is restored from a backup names files that were replaced since. And a page that was opened from one server asks
another for the parts of a document that a newer one has replaced meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from daskscope.storage import schema
from daskscope.storage.archive import Archive, Transaction
from daskscope.storage.clock_check import time_of

#: How long a replaced document stays. It can be made again, so only pages that are open need it.
KEEP_DOCUMENT_US = 10 * 60 * 1_000_000
#: Files to delete in one transaction, and in one pass. Passes are five minutes apart, and a busy server replaces a file a second.
STEP, MAX_PASS = 200, 2_000


def replace_files(tx: Transaction, run: int, paths: Iterable[str], keep_us: int) -> None:
    """Remember files of a run to delete after some time."""
    rows = [{"path": path, "run_id": run, "delete_us": time_of(tx) + keep_us} for path in paths]
    if rows:
        tx.execute(sa.insert(schema.replaced_files), rows)


def delete_replaced(archive: Archive, now_us: int) -> int:
    """Delete replaced files whose time has come at the given time, at most as many as one pass may, and return how many."""
    table, total = schema.replaced_files, 0
    while True:
        with archive.read() as tx:
            query = sa.select(table.c.path).where(table.c.delete_us <= now_us).order_by(table.c.delete_us).limit(STEP)
            paths = list(tx.execute(query).scalars())
        # The files first: a row without a file is deleted next time, a file without a row only by the sweep.
        for path in paths:
            archive.store.delete(path)
        with archive.write() as tx:
            tx.execute(sa.delete(table).where(table.c.path.in_(paths)))
        total += len(paths)
        if len(paths) < STEP or total >= MAX_PASS:
            return total
