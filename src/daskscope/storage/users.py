"""Users: who they are, and the passwords they prove it with."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.storage import schema
from daskscope.storage.accounts import NameTaken, check_name, insert_named
from daskscope.storage.database import StorageError, insert

SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 1_000
#: Wrong passwords within ``LOCK_US`` before further ones are refused unread: from one address, and for one user from anywhere.
#: The latter are more, or ten guesses by anybody would keep a user out.
MOST_ATTEMPTS, MOST_FOR_A_USER = 10, 100
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


def count_attempt(connection: Connection, limits: Mapping[str, int], now_us: int) -> None:
    """Count a try by each of its subjects, and refuse it where one has had as many as it may.

    Before it is looked at: of sixty that come at once, the limit are looked at.
    """
    attempts = schema.attempts
    # What is long ago counts no more; whoever tries many names must not fill the table either.
    connection.execute(sa.delete(attempts).where(attempts.c.since_us <= now_us - LOCK_US))
    for subject in sorted(limits):
        # In one statement: guesses that come at the same moment, at whichever server, all count.
        statement = insert(connection, attempts).values(subject=subject, tries=1, since_us=now_us)
        changes = {"tries": attempts.c.tries + 1}
        connection.execute(statement.on_conflict_do_update(index_elements=["subject"], set_=changes))
    for row in connection.execute(sa.select(attempts).where(attempts.c.subject.in_(sorted(limits)))):
        if row.tries > limits[row.subject]:
            raise TooManyAttempts("Too many tries. Try again in a quarter of an hour.")


def forget_attempts(connection: Connection, subject: str) -> None:
    connection.execute(sa.delete(schema.attempts).where(schema.attempts.c.subject == subject))


def take_back_attempt(connection: Connection, subject: str) -> None:
    """A try that was right does not count; those before it, for whomever, still do."""
    attempts = schema.attempts
    connection.execute(sa.update(attempts).where(attempts.c.subject == subject).values(tries=attempts.c.tries - 1))


def has_password(connection: Connection, user: int, stored: str) -> bool:
    """Whether a user's password is still the one that was compared: it may have been changed meanwhile."""
    users = schema.users
    mine = (users.c.id == user) & (users.c.disabled_us == 0)
    return connection.execute(sa.select(users.c.password).where(mine)).scalar() == stored


def shut_out(connection: Connection, name: str, now_us: int) -> None:
    """End the tokens of a user who has no password, and what they may do: nobody can be asked whether they are still theirs."""
    users, tokens = schema.users, schema.tokens
    mine = (users.c.name == name) & (users.c.password == "")
    number = connection.execute(sa.select(users.c.id).where(mine)).scalar()
    if number is None:
        return
    connection.execute(sa.update(users).where(users.c.id == number).values(admin=0))
    alive = (tokens.c.user_id == number) & (tokens.c.revoked_us == 0)
    connection.execute(sa.update(tokens).where(alive).values(revoked_us=now_us))
