"""Code of computations, stored once per content and account: a notebook that is run a hundred times has one text, not a hundred."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from daskscope.storage import schema
from daskscope.storage.base.archive import Transaction
from daskscope.storage.base.bulk import among
from daskscope.storage.base.database import in_steps, insert


def text_digest(code: str) -> str:
    """Return the digest that identifies a text; empty for no text."""
    return hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest() if code else ""


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
