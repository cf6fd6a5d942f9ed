"""Users and their passwords."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from daskscope.storage import schema
from daskscope.storage.base.archive import Transaction, announce_access
from daskscope.storage.base.database import InvalidInput, insert
from daskscope.storage.people.accounts import check_name, find_or_create, insert_named
from daskscope.storage.people.tokens import delete_links, end_link_access, revoke_tokens_of_user

SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 1_000
#: How long attempts count, and are refused after too many.
LOCK_US = 15 * 60 * 1_000_000


class TooManyAttempts(InvalidInput):
    """Too many failed attempts."""


@dataclass(frozen=True)
class User:
    """A user."""

    id: int
    name: str
    email: str
    admin: bool


@functools.cache
def _hasher() -> Any:
    from argon2 import PasswordHasher

    # OWASP's smaller recommendation: 19 MiB and two passes take 28 ms; the library's default takes 200 ms of both
    # cores.
    return PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)


@functools.cache
def _nobody() -> str:
    return str(_hasher().hash("a password nobody has"))


def hash_password(password: str) -> str:
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise InvalidInput(f"A password has at least {SHORTEST_PASSWORD} characters.")
    return str(_hasher().hash(password))


def create_user(tx: Transaction, name: str, password_hash: str, *, email: str = "", admin: bool = False) -> User:
    check_name(name, "user")
    values = {"name": name, "email": email, "password": password_hash, "created_us": tx.now_us, "admin": int(admin)}
    return User(insert_named(tx, schema.users, values, "a user"), name, email, admin)


def open_user(tx: Transaction, name: str, *, admin: bool = False) -> User:
    """Return the user with this name; create it without a password if needed."""
    return find_or_create(lambda: find_user(tx, name), lambda: create_user(tx, name, "", admin=admin))


def find_user(tx: Transaction, name: str) -> User | None:
    return _user(tx, schema.users.c.name == name)


def get_user(tx: Transaction, number: int) -> User | None:
    return _user(tx, schema.users.c.id == number)


def _user(tx: Transaction, mine: sa.ColumnElement[bool]) -> User | None:
    row = tx.execute(sa.select(schema.users).where(mine, schema.users.c.disabled_us == 0)).one_or_none()
    return User(row.id, row.name, row.email, bool(row.admin)) if row is not None else None


def find_any_user(tx: Transaction, name: str) -> User | None:
    """Return the user with this name, even if disabled."""
    row = tx.execute(sa.select(schema.users).where(schema.users.c.name == name)).one_or_none()
    return User(row.id, row.name, row.email, bool(row.admin)) if row is not None else None


@dataclass(frozen=True, slots=True)
class ListedUser:
    """A user as lists show it."""

    name: str
    email: str
    admin: int
    created_us: int
    #: 0 means enabled.
    disabled_us: int


def list_users(tx: Transaction) -> list[ListedUser]:
    return tx.rows(ListedUser, sa.select(schema.users).order_by(schema.users.c.name))


def set_admin(tx: Transaction, user: int, *, admin: bool) -> None:
    if admin:
        end_link_access(tx, user)
    else:
        _keep_an_administrator(tx, user)
    tx.execute(sa.update(schema.users).where(schema.users.c.id == user).values(admin=int(admin)))
    announce_access(tx)


def disable_user(tx: Transaction, user: int) -> int:
    """Disable a user: end their sessions, tokens and links. Return the number of tokens that were revoked."""
    _keep_an_administrator(tx, user)
    users, sessions = schema.users, schema.sessions
    enabled = (users.c.id == user) & (users.c.disabled_us == 0)
    tx.execute(sa.update(users).where(enabled).values(disabled_us=tx.now_us))
    tx.execute(sa.delete(sessions).where(sessions.c.user_id == user))
    delete_links(tx, user)
    return revoke_tokens_of_user(tx, user)


def enable_user(tx: Transaction, user: int) -> None:
    """Let a user sign in again. Their tokens stay revoked."""
    tx.execute(sa.update(schema.users).where(schema.users.c.id == user).values(disabled_us=0))


def _keep_an_administrator(tx: Transaction, user: int) -> None:
    users = schema.users
    active = (users.c.admin != 0) & (users.c.disabled_us == 0)
    # Lock the administrators: two who remove each other at the same time must not both succeed.
    query = sa.select(users.c.id).where(active).order_by(users.c.id).with_for_update()
    if set(tx.execute(query).scalars()) == {user}:
        raise InvalidInput("This is the only administrator of the server. Make somebody else an administrator first.")


def stored_password(tx: Transaction, name: str) -> tuple[int, str]:
    """Return the number and password hash of a user; a hash that nothing matches if there is no such user."""
    users = schema.users
    query = sa.select(users.c.id, users.c.password).where(users.c.name == name, users.c.disabled_us == 0)
    row = tx.execute(query).one_or_none()
    # Comparing takes as long for unknown names, so that timing does not reveal which names exist.
    return (row.id, row.password) if row is not None and row.password else (0, _nobody())


def password_matches(password: str, stored: str) -> bool:
    from argon2.exceptions import Argon2Error, InvalidHashError

    try:
        return bool(_hasher().verify(stored, password[:LONGEST_PASSWORD]))
    except (Argon2Error, InvalidHashError):
        return False


def set_password(tx: Transaction, user: int, password_hash: str) -> None:
    """Set a new password, and end every session and sign-in link."""
    users, sessions = schema.users, schema.sessions
    tx.execute(sa.update(users).where(users.c.id == user).values(password=password_hash))
    tx.execute(sa.delete(sessions).where(sessions.c.user_id == user))
    delete_links(tx, user)


def count_attempt(tx: Transaction, limits: Mapping[str, int]) -> list[str]:
    """Count an attempt for each of its subjects, and refuse it if one is at its limit.

    Return the subjects that are at their limit now: if this attempt is wrong, it locks them.
    Count before checking, so that concurrent guesses cannot exceed the limit.
    """
    attempts = schema.attempts
    # Forget old attempts. Attempts with many names must not fill the table.
    tx.execute(sa.delete(attempts).where(attempts.c.since_us <= tx.now_us - LOCK_US))
    for subject in sorted(limits):
        # One statement, so that concurrent guesses on any server all count.
        statement = insert(tx.connection, attempts).values(subject=subject, tries=1, since_us=tx.now_us)
        changes = {"tries": attempts.c.tries + 1}
        tx.execute(statement.on_conflict_do_update(index_elements=["subject"], set_=changes))
    rows = tx.execute(sa.select(attempts).where(attempts.c.subject.in_(sorted(limits)))).all()
    if any(row.tries > limits[row.subject] for row in rows):
        raise TooManyAttempts(f"Too many attempts. Try again in {LOCK_US // 60_000_000} minutes.")
    return [row.subject for row in rows if row.tries == limits[row.subject]]


def forget_attempts(tx: Transaction, subject: str) -> None:
    tx.execute(sa.delete(schema.attempts).where(schema.attempts.c.subject == subject))


def forget_attempt(tx: Transaction, subject: str) -> None:
    """Uncount a correct attempt; earlier wrong ones still count."""
    attempts = schema.attempts
    tx.execute(sa.update(attempts).where(attempts.c.subject == subject).values(tries=attempts.c.tries - 1))


def has_password(tx: Transaction, user: int, stored: str) -> bool:
    """Return whether a user's password is still the compared one; it may have changed meanwhile."""
    users = schema.users
    query = sa.select(users.c.password).where(users.c.id == user, users.c.disabled_us == 0)
    return tx.execute(query).scalar() == stored


def disable_tokens(tx: Transaction, name: str) -> None:
    """Revoke the tokens and rights of a user without a password: nobody can prove to be this user."""
    users = schema.users
    mine = (users.c.name == name) & (users.c.password == "")
    number = tx.execute(sa.select(users.c.id).where(mine)).scalar()
    if number is None:
        return
    tx.execute(sa.update(users).where(users.c.id == number).values(admin=0))
    revoke_tokens_of_user(tx, number)
