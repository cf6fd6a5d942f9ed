"""Find files of rows that the store has lost, or cut off, without reading them."""

from __future__ import annotations

import sqlalchemy as sa

from daskscope.storage import schema
from daskscope.storage.archive import Archive
from daskscope.storage.database import StorageError


class LostFiles(StorageError):
    """Files of rows are missing. The message contains neither names nor paths."""


def lost_rows(archive: Archive) -> dict[int, int]:
    """Return how many rows are in files that are missing or shorter than when they were written, by run."""
    files = schema.files
    named = sa.select(files.c.run_id, files.c.path, files.c.rows, files.c.nbytes)
    with archive.read() as tx:
        rows = tx.execute(named).all()
    # List the store after the catalog: a file that is written and named meanwhile is then in the list.
    sizes = {path: size for path, size, _ in archive.store.list()}
    # An encrypted file is longer than its rows.
    suspects = [row for row in rows if sizes.get(row.path, -1) < row.nbytes]
    if not suspects:
        return {}
    with archive.read() as tx:
        # A compaction may have replaced and deleted some since.
        still = set(tx.execute(sa.select(files.c.path)).scalars())
    found: dict[int, int] = {}
    for row in suspects:
        if row.path in still:
            found[row.run_id] = found.get(row.run_id, 0) + row.rows
    return found
