"""Column types and helpers that all tables of the catalog share."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Integer, MetaData, Text
from sqlalchemy.types import TypeDecorator

from daskscope.model.untrusted import clean_text

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

#: SQLite numbers rows only if the type is literally INTEGER. Such tables use ``sqlite_autoincrement``: without it the
#: number of a deleted row is reused, and a compaction in progress or a cached key would take the new row for the old
#: one.
Id = BigInteger().with_variant(Integer, "sqlite")


class Words(TypeDecorator[str]):
    """Text that both databases accept: PostgreSQL refuses NUL, and both refuse lone surrogates.

    A query for a text that cannot be stored finds nothing instead of failing.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Any) -> str | None:  # noqa: ARG002 (SQLAlchemy's signature)
        return storable(value)


def storable(value: str | None) -> str | None:
    """Return a text that both databases accept."""
    return clean_text(value, len(value)) if value else value


def text(name: str) -> Column[str]:
    return Column(name, Words, nullable=False, server_default="")


def number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default="0")


def real(name: str) -> Column[float]:
    return Column(name, Float, nullable=False, server_default="0")


def account_id() -> Column[int]:
    return Column("account_id", Id, ForeignKey("accounts.id", ondelete="CASCADE"), nullable=False)


def run_id(*, primary: bool = False) -> Column[int]:
    return Column("run_id", Id, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False, primary_key=primary)


def key(name: str) -> Column[str]:
    return Column(name, Words, primary_key=True, nullable=False)
