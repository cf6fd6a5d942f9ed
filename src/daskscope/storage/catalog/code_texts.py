"""Code of computations, stored once per content and account: a notebook that is run a hundred times has one text, not a hundred."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from daskscope.model.untrusted import clean_text
from daskscope.storage import schema
from daskscope.storage.base.archive import Archive, Transaction
from daskscope.storage.base.bulk import among
from daskscope.storage.base.database import StorageError, in_steps, insert

#: Computations of earlier versions to move in one transaction.
STEP = 500


def text_digest(code: str) -> str:
    """Return the digest that identifies a text; empty for no text."""
    return hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest() if code else ""


def code_place(run: int, computation: str) -> str:
    """Return the place that code in a computation's row is bound to, with the name as it is stored."""
    return f"code {run} {clean_text(computation, len(computation))}"


def text_place(digest: str) -> str:
    """Return the place that a text is bound to."""
    return f"code text {digest}"


def store_codes(tx: Transaction, account: int, codes: Iterable[str]) -> None:
    """Store the texts that the account does not have yet."""
    texts = {text_digest(code): code for code in codes if code}
    table = schema.code_texts
    known: set[str] = set()
    for part in in_steps(sorted(texts)):
        asked = {"account": account, "digests": part}
        known |= set(tx.execute(_known_texts(tx.connection.dialect.name), asked).scalars())
    rows = [
        {
            "account_id": account,
            "digest": digest,
            "sealed": tx.seal(account, texts[digest].encode(), text_place(digest)),
        }
        for digest in sorted(texts.keys() - known)
    ]
    if rows:
        tx.execute(insert(tx.connection, table).on_conflict_do_nothing(), rows)


@functools.cache
def _known_texts(dialect: str) -> Any:
    table = schema.code_texts
    mine = sa.select(table.c.digest).where(
        table.c.account_id == sa.bindparam("account"), among(dialect, table.c.digest, "digests")
    )
    # Locked, so that a deletion waits until the computation that uses the text is stored.
    return mine.with_for_update(read=True, key_share=True)


def open_code(tx: Transaction, account: int, row: sa.RowMapping | Mapping[str, object]) -> str:
    """Return the code of a computation's row, joined with its text. Servers of earlier versions store it in the row itself."""
    in_row, shared = row["sealed_code"], row["sealed_text"]
    if in_row:
        return tx.open_text(account, _bytes(in_row), code_place(int(str(row["run_id"])), str(row["computation"])))
    return tx.open_text(account, _bytes(shared), text_place(str(row["code_text"]))) if shared else ""


def _bytes(value: object) -> bytes:
    assert isinstance(value, bytes | memoryview)
    return bytes(value)


def of_computation() -> sa.ColumnElement[bool]:
    """Return the SQL condition that a text is the code of a computation."""
    table, computations = schema.code_texts, schema.computations
    return (table.c.account_id == computations.c.account_id) & (table.c.digest == computations.c.code_text)


def remove_unused_codes(tx: Transaction, account: int) -> int:
    """Delete the texts of an account that no computation has, and return how many."""
    table = schema.code_texts
    unused = (table.c.account_id == account) & ~sa.exists().where(of_computation())
    # Lock them first, and look again: a batch that was being stored may use one of them now.
    found = list(tx.execute(sa.select(table.c.digest).where(unused).with_for_update()).scalars())
    removed = 0
    for part in in_steps(found):
        removed += tx.execute(sa.delete(table).where(unused, table.c.digest.in_(part))).rowcount
    return removed


def move_codes(archive: Archive) -> int:
    """Move code that servers of earlier versions stored in the rows of computations. Return how many computations had some."""
    after, total = (0, ""), 0
    while True:
        with archive.write() as tx:
            rows = _unmoved(tx, after)
            for row in rows:
                total += _move(tx, row)
        if len(rows) < STEP:
            return total
        after = rows[-1].run_id, rows[-1].computation


def _unmoved(tx: Transaction, after: tuple[int, str]) -> list[sa.Row[tuple[int, str, int, bytes]]]:
    table = schema.computations
    place = sa.tuple_(table.c.run_id, table.c.computation)
    query = (
        sa.select(table.c.run_id, table.c.computation, table.c.account_id, table.c.sealed_code)
        .where(table.c.sealed_code.is_not(None), place > sa.tuple_(sa.literal(after[0]), sa.literal(after[1])))
        .order_by(table.c.run_id, table.c.computation)
        .limit(STEP)
        # A batch that updates a computation at this moment stores its code anew.
        .with_for_update(skip_locked=True)
    )
    return list(tx.execute(query))


def _move(tx: Transaction, row: sa.Row[tuple[int, str, int, bytes]]) -> bool:
    try:
        code = tx.open_text(row.account_id, row.sealed_code, code_place(row.run_id, row.computation))
    except StorageError:
        # It was changed, or its key is missing. It stays as it is.
        return False
    store_codes(tx, row.account_id, [code])
    table = schema.computations
    mine = (table.c.run_id == row.run_id) & (table.c.computation == row.computation)
    tx.execute(sa.update(table).where(mine).values(sealed_code=None, code_text=text_digest(code)))
    return True
