"""Accounts (teams), their members, and what they decided for themselves."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.storage import schema
from daskscope.storage.database import StorageError, insert
from daskscope.storage.vault import Vault

#: What a member may do: a viewer looks, a member also changes, an owner also decides who else may.
ROLES = ("viewer", "member", "owner")
NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
#: First parts of the server's own paths; an account of that name could not be reached.
RESERVED = frozenset(
    {"api", "assets", "healthz", "readyz", "metrics", "login", "logout", "setup", "device", "s", "static", "admin"}
)


@dataclass(frozen=True)
class Preferences:
    """What an account decides for itself; the server's settings are the defaults."""

    #: Whether a report is private where the user does not say so: ``public`` (whoever has the link) or ``private``.
    visibility: str = "public"
    #: Days after which rows, and after which also the sums, of a run are deleted; 0: never.
    keep_rows_days: int = 0
    keep_sums_days: int = 0
    #: Bytes of stored rows beyond which the oldest runs are deleted; 0: no limit.
    keep_rows_nbytes: int = 0
    #: Dollars an hour; overrides by instance type or queue, matched against a run's tags and worker names.
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


def create_account(connection: Connection, vault: Vault, name: str, now_us: int) -> Account:
    check_name(name, "account")
    number = insert_named(connection, schema.accounts, {"name": name, "created_us": now_us}, "an account")
    vault.add_key(connection, number)
    return Account(number, name, now_us, Preferences())


def open_account(connection: Connection, vault: Vault, name: str, now_us: int) -> Account:
    """The account of that name; made where there is none, by one of the servers that look at the same moment."""
    found = find_account(connection, name)
    if found is None:
        try:
            return create_account(connection, vault, name, now_us)
        except NameTaken:
            found = find_account(connection, name)
            if found is None:
                raise
    return found


class NameTaken(StorageError):
    """Somebody else has the name."""


def insert_named(connection: Connection, table: sa.Table, values: dict[str, Any], what: str) -> int:
    """Insert a row whose name nobody else may have, not even one of this moment; its number."""
    try:
        with connection.begin_nested():
            return int(connection.execute(sa.insert(table).values(values)).inserted_primary_key[0])  # type: ignore[index]
    except sa.exc.IntegrityError:
        raise NameTaken(f"There is {what} {values['name']} already. Choose another name.") from None


def check_name(name: str, what: str) -> None:
    if not NAME.fullmatch(name) or name in RESERVED:
        raise StorageError(
            f"{name[:60]!r} cannot be the name of {'an account' if what == 'account' else f'a {what}'}: use lower-case letters, "
            "digits and hyphens, at most 40, and none of the server's own words."
        )


def find_account(connection: Connection, name: str) -> Account | None:
    row = connection.execute(sa.select(schema.accounts).where(schema.accounts.c.name == name)).one_or_none()
    return _account(row) if row is not None else None


def get_account(connection: Connection, number: int) -> Account:
    return _account(connection.execute(sa.select(schema.accounts).where(schema.accounts.c.id == number)).one())


def list_accounts(connection: Connection) -> list[Account]:
    return [_account(row) for row in connection.execute(sa.select(schema.accounts).order_by(schema.accounts.c.name))]


def set_preferences(connection: Connection, account: int, preferences: Preferences) -> None:
    accounts = schema.accounts
    text = json.dumps(asdict(preferences))
    connection.execute(sa.update(accounts).where(accounts.c.id == account).values(preferences=text))


def _account(row: Any) -> Account:
    return Account(row.id, row.name, row.created_us, Preferences.of(row.preferences))


# ---------------------------------------------------------------- members


def set_member(connection: Connection, account: int, user: int, role: str, now_us: int) -> None:
    if role not in ROLES:
        raise StorageError(f"There is no role {role!r}. The roles are {', '.join(ROLES)}.")
    if role != "owner":
        _keep_an_owner(connection, account, user)
    statement = insert(connection, schema.members).values(account_id=account, user_id=user, role=role, since_us=now_us)
    connection.execute(statement.on_conflict_do_update(index_elements=["account_id", "user_id"], set_={"role": role}))


def remove_member(connection: Connection, account: int, user: int) -> bool:
    """Take a user out of an account, with the tokens they have for it."""
    _keep_an_owner(connection, account, user)
    members, tokens = schema.members, schema.tokens
    connection.execute(sa.delete(tokens).where(tokens.c.account_id == account, tokens.c.user_id == user))
    gone = connection.execute(sa.delete(members).where(members.c.account_id == account, members.c.user_id == user))
    return bool(gone.rowcount)


def _keep_an_owner(connection: Connection, account: int, user: int) -> None:
    members, users = schema.members, schema.users
    query = (
        sa.select(members.c.user_id)
        .join(users, users.c.id == members.c.user_id)
        .where(members.c.account_id == account, members.c.role == "owner", users.c.disabled_us == 0)
        .order_by(members.c.user_id)
        # Two owners who take each other out at once must not both succeed.
        .with_for_update(of=members)
    )
    if set(connection.execute(query).scalars()) == {user}:
        raise StorageError("This is the account's only owner. Make somebody else an owner first.")


def list_members(connection: Connection, account: int) -> list[dict[str, Any]]:
    users, members = schema.users, schema.members
    query = (
        sa.select(users.c.name, users.c.email, members.c.role, members.c.since_us)
        .join(members, members.c.user_id == users.c.id)
        .where(members.c.account_id == account, users.c.disabled_us == 0)
        .order_by(users.c.name)
    )
    return [dict(row) for row in connection.execute(query).mappings()]


def roles_of(connection: Connection, user: int) -> dict[int, str]:
    """The accounts a user belongs to, and as what."""
    members = schema.members
    query = sa.select(members.c.account_id, members.c.role).where(members.c.user_id == user)
    return {row.account_id: row.role for row in connection.execute(query)}
