"""Users: who they are, and the passwords they prove it with."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.storage import schema
from daskscope.storage.accounts import NameTaken, check_name, insert_named
from daskscope.storage.database import StorageError, insert

SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 1_000
#: Wrong passwords for one user or from one address within ``LOCK_US`` before further ones are refused unread.
MOST_ATTEMPTS = 10
LOCK_US = 15 * 60 * 1_000_000


class TooManyAttempts(StorageError):
    """Somebody is guessing."""


@dataclass(frozen=True)
class User:
    """One user."""

    id: int
    name: str
    email: str
    admin: bool


@functools.cache
def _hasher() -> Any:
    from argon2 import PasswordHasher

    # OWASP's smaller recommendation: 19 MiB and two passes, 28 ms; the library's default takes 200 ms of both cores.
    return PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)


@functools.cache
def _nobody() -> str:
    return str(_hasher().hash("a password nobody has"))


def hash_password(password: str) -> str:
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise StorageError(f"A password has at least {SHORTEST_PASSWORD} characters.")
    return str(_hasher().hash(password))


def create_user(
    connection: Connection, name: str, password_hash: str, now_us: int, *, email: str = "", admin: bool = False
) -> User:
    check_name(name, "user")
    values = {"name": name, "email": email, "password": password_hash, "created_us": now_us, "admin": int(admin)}
    return User(insert_named(connection, schema.users, values, "a user"), name, email, admin)


def open_user(connection: Connection, name: str, now_us: int, *, admin: bool = False) -> User:
    """The user of that name; made, without a password, where there is none, by one of the servers that look at the same moment."""
    found = find_user(connection, name)
    if found is None:
        try:
            return create_user(connection, name, "", now_us, admin=admin)
        except NameTaken:
            found = find_user(connection, name)
            if found is None:
                raise
    return found


def find_user(connection: Connection, name: str) -> User | None:
    users = schema.users
    query = sa.select(users).where(users.c.name == name, users.c.disabled_us == 0)
    return _user(connection.execute(query).one_or_none())


def get_user(connection: Connection, number: int) -> User | None:
    users = schema.users
    query = sa.select(users).where(users.c.id == number, users.c.disabled_us == 0)
    return _user(connection.execute(query).one_or_none())


def _user(row: Any) -> User | None:
    return User(row.id, row.name, row.email, bool(row.admin)) if row is not None else None


def stored_password(connection: Connection, name: str) -> tuple[int, str]:
    """The number and the password hash of a user; a hash nobody can match where there is no such user."""
    users = schema.users
    query = sa.select(users.c.id, users.c.password).where(users.c.name == name, users.c.disabled_us == 0)
    row = connection.execute(query).one_or_none()
    # Comparing takes as long for a name that does not exist: the time tells nobody which names do.
    return (row.id, row.password) if row is not None and row.password else (0, _nobody())


def password_matches(password: str, stored: str) -> bool:
    from argon2.exceptions import Argon2Error, InvalidHashError

    try:
        return bool(_hasher().verify(stored, password[:LONGEST_PASSWORD]))
    except (Argon2Error, InvalidHashError):
        return False


def set_password(connection: Connection, user: int, password_hash: str) -> None:
    """A new password ends every session: whoever knew the old one is out."""
    users, sessions = schema.users, schema.sessions
    connection.execute(sa.update(users).where(users.c.id == user).values(password=password_hash))
    connection.execute(sa.delete(sessions).where(sessions.c.user_id == user))


def check_attempts(connection: Connection, subjects: list[str], now_us: int) -> None:
    attempts = schema.attempts
    for row in connection.execute(sa.select(attempts).where(attempts.c.subject.in_(subjects))):
        if row.tries >= MOST_ATTEMPTS and now_us - row.since_us < LOCK_US:
            raise TooManyAttempts("Too many wrong passwords. Try again in a quarter of an hour.")


def count_attempt(connection: Connection, subjects: list[str], now_us: int) -> None:
    attempts = schema.attempts
    # What is long ago counts no more; whoever tries many names must not fill the table either.
    connection.execute(sa.delete(attempts).where(attempts.c.since_us <= now_us - LOCK_US))
    for subject in sorted(set(subjects)):
        # In one statement: guesses that come at the same moment, at whichever server, all count.
        statement = insert(connection, attempts).values(subject=subject, tries=1, since_us=now_us)
        changes = {"tries": attempts.c.tries + 1}
        connection.execute(statement.on_conflict_do_update(index_elements=["subject"], set_=changes))


def forget_attempts(connection: Connection, subject: str) -> None:
    connection.execute(sa.delete(schema.attempts).where(schema.attempts.c.subject == subject))
