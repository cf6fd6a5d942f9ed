"""Search error groups by words of their texts, which are stored encrypted.

A text index of the database would hold the texts in plain. Instead each group has keyed hashes of its words
(``error_words``): a query hashes its words with the account's key and finds the groups that have all of them. Parts of words
are only found in the most recent groups, whose texts are decrypted and read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import sqlalchemy as sa

from daskscope.storage import schema
from daskscope.storage.base.archive import Transaction
from daskscope.storage.base.database import insert

#: Maximum words per group. A traceback of 30 frames has 150 different ones.
MAX_WORDS = 200
#: Shorter words are not indexed.
MIN_LENGTH = 2

_WORD = re.compile(r"[^\W_]+(?:_[^\W_]+)*")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_A-Za-z]+")


def words_of(text: str) -> list[str]:
    """Return the different words of a text in lower case, and the parts of ``snake_case`` and ``CamelCase``."""
    found: dict[str, None] = {}
    for word in _WORD.findall(text):
        for part in (word, *word.split("_"), *_PART.findall(word)):
            if len(part) >= MIN_LENGTH:
                found[part.casefold()] = None
    return list(found)


def words_of_query(text: str) -> list[str]:
    """Return the words that a group must have."""
    return list(dict.fromkeys(word.casefold() for word in _WORD.findall(text) if len(word) >= MIN_LENGTH))


def with_words(tx: Transaction, account: int, find: str) -> sa.ColumnElement[bool]:
    """Return the SQL condition that an error group has all the words."""
    table, wanted = schema.error_words, words_of_query(find)
    if not wanted:
        return sa.false()
    hashes = [tx.vault.word_hash(tx.connection, account, word) for word in wanted]
    found = (
        sa.select(table.c.fingerprint)
        .where(table.c.account_id == account, table.c.word.in_(hashes))
        .group_by(table.c.fingerprint)
        .having(sa.func.count() == len(set(hashes)))
    )
    return schema.error_groups.c.fingerprint.in_(found)


def forget_words(tx: Transaction, account: int, fingerprint: str) -> None:
    """Delete the words of a group whose text changed, so that it is indexed again."""
    table, groups = schema.error_words, schema.error_groups
    tx.execute(sa.delete(table).where(table.c.account_id == account, table.c.fingerprint == fingerprint))
    mine = (groups.c.account_id == account) & (groups.c.fingerprint == fingerprint)
    tx.execute(sa.update(groups).where(mine).values(is_indexed=0))


def index_words(tx: Transaction, account: int, texts: Sequence[tuple[str, str]]) -> None:
    """Index groups of an account, given as fingerprint and text."""
    rows = [
        {"account_id": account, "fingerprint": fingerprint, "word": tx.vault.word_hash(tx.connection, account, word)}
        for fingerprint, text in texts
        for word in words_of(text)[:MAX_WORDS]
    ]
    if rows:
        # Two words may have the same hash, and another server may index the same group.
        tx.execute(insert(tx.connection, schema.error_words).on_conflict_do_nothing(), rows)
    groups = schema.error_groups
    for fingerprint, _ in texts:
        mine = (groups.c.account_id == account) & (groups.c.fingerprint == fingerprint)
        tx.execute(sa.update(groups).where(mine).values(is_indexed=1))
