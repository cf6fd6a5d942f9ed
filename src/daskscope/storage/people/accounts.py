"""Accounts (teams), their members and their preferences."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import sqlalchemy as sa

from daskscope.model.states import ROLES, Role
from daskscope.storage import schema
from daskscope.storage.base.archive import Transaction, announce_access
from daskscope.storage.base.database import InvalidInput, T, insert
from daskscope.storage.people.tokens import end_link_access

NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
#: First segments of the server's own paths. An account with such a name would be unreachable.
RESERVED = frozenset(
    {"api", "assets", "healthz", "readyz", "metrics", "login", "logout", "setup", "device", "s", "static", "admin"}
)


@dataclass(frozen=True)
class Preferences:
    """Preferences of an account. The server's settings are the defaults."""

    #: Visibility of a new report unless the user sets it: ``public`` (anyone with the link) or ``private``.
    visibility: str = "public"
    #: Days after which the rows of a run are deleted, and days after which its sums are deleted too. 0 keeps them.
    keep_rows_days: int = 0
    keep_sums_days: int = 0
    #: Maximum bytes of stored rows; beyond it the oldest runs are deleted. 0 means no limit.
    keep_rows_nbytes: int = 0
    #: Dollars per hour. Overrides are by instance type or queue, matched against a run's tags and worker names.
    core_hour: float = 0.05
    gib_hour: float = 0.005
    price_overrides: dict[str, dict[str, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> Preferences:
        known = {item.name for item in fields(cls)}
        return cls(**{name: value for name, value in json.loads(text or "{}").items() if name in known})


@dataclass(frozen=True)
class Account:
    """One account."""

    id: int
    name: str
    created_us: int
    preferences: Preferences


def create_account(tx: Transaction, name: str) -> Account:
    check_name(name, "account")
    number = insert_named(tx, schema.accounts, {"name": name, "created_us": tx.now_us}, "an account")
    tx.vault.add_key(tx.connection, number)
    return Account(number, name, tx.now_us, Preferences())


def open_account(tx: Transaction, name: str) -> Account:
    """Return the account with this name; create it if needed."""
    return find_or_create(lambda: find_account(tx, name), lambda: create_account(tx, name))


def find_or_create(find: Callable[[], T | None], create: Callable[[], T]) -> T:
    """Return the row if it exists, else create it: once, even if several servers start at the same time."""
    found = find()
    if found is None:
        try:
            return create()
        except NameTaken:
            found = find()
            if found is None:
                raise
    return found


class NameTaken(InvalidInput):
    """The name is already in use."""


def insert_named(tx: Transaction, table: sa.Table, values: dict[str, Any], what: str) -> int:
    """Insert a row with a unique name and return its number, even if another transaction inserts the same name."""
    try:
        with tx.connection.begin_nested():
            return int(tx.execute(sa.insert(table).values(values)).inserted_primary_key[0])  # type: ignore[index]
    except sa.exc.IntegrityError:
        raise NameTaken(f"There is {what} {values['name']} already. Choose another name.") from None


def check_name(name: str, what: str) -> None:
    if not NAME.fullmatch(name) or name in RESERVED:
        raise InvalidInput(
            f"{name[:60]!r} cannot be the name of {'an account' if what == 'account' else f'a {what}'}: use lower-case letters, "
            "digits and hyphens, at most 40, and none of the server's own words."
        )


def find_account(tx: Transaction, name: str) -> Account | None:
    row = tx.execute(sa.select(schema.accounts).where(schema.accounts.c.name == name)).one_or_none()
    return _account(row) if row is not None else None


def get_account(tx: Transaction, number: int) -> Account:
    return _account(tx.execute(sa.select(schema.accounts).where(schema.accounts.c.id == number)).one())


def list_accounts(tx: Transaction) -> list[Account]:
    return [_account(row) for row in tx.execute(sa.select(schema.accounts).order_by(schema.accounts.c.name))]


def set_preferences(tx: Transaction, account: int, preferences: Preferences) -> None:
    accounts = schema.accounts
    text = json.dumps(asdict(preferences))
    tx.execute(sa.update(accounts).where(accounts.c.id == account).values(preferences=text))
    announce_access(tx)


def _account(row: Any) -> Account:
    return Account(row.id, row.name, row.created_us, Preferences.of(row.preferences))


# ---------------------------------------------------------------- members


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an account."""

    name: str
    email: str
    role: Role
    since_us: int


def set_member(tx: Transaction, account: int, user: int, role: str) -> None:
    if role not in ROLES:
        raise InvalidInput(f"There is no role {role!r}. The roles are {', '.join(ROLES)}.")
    if role != "owner":
        _keep_an_owner(tx, account, user)
    if account not in roles_of(tx, user):
        end_link_access(tx, user)
    statement = insert(tx.connection, schema.members).values(
        account_id=account, user_id=user, role=role, since_us=tx.now_us
    )
    tx.execute(statement.on_conflict_do_update(index_elements=["account_id", "user_id"], set_={"role": role}))
    announce_access(tx)


def remove_member(tx: Transaction, account: int, user: int) -> bool:
    """Remove a user from an account and revoke their tokens for it."""
    _keep_an_owner(tx, account, user)
    members, tokens = schema.members, schema.tokens
    tx.execute(sa.delete(tokens).where(tokens.c.account_id == account, tokens.c.user_id == user))
    gone = tx.execute(sa.delete(members).where(members.c.account_id == account, members.c.user_id == user))
    announce_access(tx)
    return bool(gone.rowcount)


def _keep_an_owner(tx: Transaction, account: int, user: int) -> None:
    members, users = schema.members, schema.users
    query = (
        sa.select(members.c.user_id)
        .join(users, users.c.id == members.c.user_id)
        .where(members.c.account_id == account, members.c.role == "owner", users.c.disabled_us == 0)
        .order_by(members.c.user_id)
        # Lock the owners: two owners who remove each other at the same time must not both succeed.
        .with_for_update(of=members)
    )
    if set(tx.execute(query).scalars()) == {user}:
        raise InvalidInput("This is the account's only owner. Make somebody else an owner first.")


def list_members(tx: Transaction, account: int) -> list[Member]:
    users, members = schema.users, schema.members
    query = (
        sa.select(users.c.name, users.c.email, members.c.role, members.c.since_us)
        .join(members, members.c.user_id == users.c.id)
        .where(members.c.account_id == account, users.c.disabled_us == 0)
        .order_by(users.c.name)
    )
    return tx.rows(Member, query)


def roles_of(tx: Transaction, user: int) -> dict[int, str]:
    """Return the accounts of a user and their role in each."""
    members = schema.members
    query = sa.select(members.c.account_id, members.c.role).where(members.c.user_id == user)
    return {row.account_id: row.role for row in tx.execute(query)}
