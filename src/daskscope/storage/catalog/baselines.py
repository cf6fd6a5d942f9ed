"""Baselines: the measurements of benchmarks that later runs are compared with, by name and test."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from daskscope import units
from daskscope.storage import schema
from daskscope.storage.base.archive import Transaction
from daskscope.storage.base.bulk import summed
from daskscope.storage.base.database import StorageError, insert

#: Five repeats of a test with eight prefixes take 2.4 kB compressed: 1,000 tests with baselines of ten branches take 24 MB.
MAX_BASELINES, MAX_NBYTES = 10_000, 100_000_000


@dataclass(frozen=True, slots=True)
class Baseline:
    """A baseline of one test, without its runs."""

    name: str
    test: str
    repeats: int
    nbytes: int
    created_us: int
    changed_us: int
    user: str


class BaselinesFull(StorageError):
    """The account has reached its maximum number or bytes of baselines."""


def keep_baseline(
    tx: Transaction, account: int, user: str, name: str, test: str, runs: list[dict[str, Any]]
) -> Baseline:
    """Store the runs of a test as a baseline, in place of an earlier one."""
    table, accounts = schema.baselines, schema.accounts
    # Lock the account's row: processes of one pytest store at once, and must not exceed the limits together.
    tx.execute(sa.select(accounts.c.id).where(accounts.c.id == account).with_for_update(key_share=True))
    sealed = tx.seal(account, zlib.compress(json.dumps(runs).encode()), _place(name, test))
    _check_room(tx, account, name, test, len(sealed))
    values = {
        "repeats": len(runs),
        "changed_us": tx.now_us,
        "user": user,
        "nbytes": len(sealed),
        "sealed_runs": sealed,
    }
    new = {"account_id": account, "name": name, "test": test, "created_us": tx.now_us, **values}
    statement = insert(tx.connection, table).values(new)
    tx.execute(statement.on_conflict_do_update(index_elements=["account_id", "name", "test"], set_=values))
    kept = find_baseline(tx, account, name, test)
    assert kept is not None
    return kept


def _check_room(tx: Transaction, account: int, name: str, test: str, nbytes: int) -> None:
    """Refuse a baseline that does not fit beside the others of the account."""
    table = schema.baselines
    others = (table.c.account_id == account) & ~((table.c.name == name) & (table.c.test == test))
    count, used = tx.execute(sa.select(sa.func.count(), summed(table.c.nbytes)).where(others)).one()
    if count < MAX_BASELINES and int(used) + nbytes <= MAX_NBYTES:
        return
    raise BaselinesFull(
        f"The account has {count:,} of {MAX_BASELINES:,} baselines with {units.nbytes(int(used))} of {units.nbytes(MAX_NBYTES)}, "
        "and this one does not fit. Delete some with DELETE /api/v1/baselines/NAME/TEST."
    )


def find_baseline(tx: Transaction, account: int, name: str, test: str) -> Baseline | None:
    return tx.row(Baseline, sa.select(*_LISTED).where(_is(account, name, test)))


def find_runs(tx: Transaction, account: int, name: str, test: str) -> list[dict[str, Any]] | None:
    """Return the runs of a baseline, or None if it does not exist."""
    query = sa.select(schema.baselines.c.sealed_runs).where(_is(account, name, test))
    sealed = tx.execute(query).scalar_one_or_none()
    if sealed is None:
        return None
    runs: list[dict[str, Any]] = json.loads(zlib.decompress(tx.open(account, bytes(sealed), _place(name, test))))
    return runs


def list_baselines(
    tx: Transaction, account: int, *, name: str = "", limit: int = 100, after: tuple[str, str] | None = None
) -> list[Baseline]:
    """Return the baselines of an account, or those with a name, in the order of names and tests."""
    table = schema.baselines
    query = sa.select(*_LISTED).where(table.c.account_id == account)
    if name:
        query = query.where(table.c.name == name)
    if after is not None:
        query = query.where(sa.tuple_(table.c.name, table.c.test) > sa.tuple_(*map(sa.literal, after)))
    return tx.rows(Baseline, query.order_by(table.c.name, table.c.test).limit(limit))


def delete_baseline(tx: Transaction, account: int, name: str, test: str) -> bool:
    """Delete a baseline; return whether there was one."""
    return bool(tx.execute(sa.delete(schema.baselines).where(_is(account, name, test))).rowcount)


_LISTED = [schema.baselines.c[name] for name in Baseline.__dataclass_fields__]


def _is(account: int, name: str, test: str) -> sa.ColumnElement[bool]:
    table = schema.baselines
    return sa.and_(table.c.account_id == account, table.c.name == name, table.c.test == test)


def _place(name: str, test: str) -> str:
    return f"baseline {name} {test}"
