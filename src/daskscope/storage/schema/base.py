"""What every table of the catalog is made with."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Integer, MetaData, Text

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

#: SQLite numbers rows by itself only where the type is literally INTEGER.
Id = BigInteger().with_variant(Integer, "sqlite")


def text(name: str) -> Column[str]:
    return Column(name, Text, nullable=False, server_default="")


def number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default="0")


def real(name: str) -> Column[float]:
    return Column(name, Float, nullable=False, server_default="0")


def account_id() -> Column[int]:
    return Column("account_id", Id, ForeignKey("accounts.id", ondelete="CASCADE"), nullable=False)


def run_id(*, primary: bool = False) -> Column[int]:
    return Column("run_id", Id, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False, primary_key=primary)


def key(name: str) -> Column[str]:
    return Column(name, Text, primary_key=True, nullable=False)
