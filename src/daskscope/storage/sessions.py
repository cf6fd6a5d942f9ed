"""Browser sessions, and logins of a command line that wait to be confirmed in a browser."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.storage import schema
from daskscope.storage.tokens import digest

SESSION_US = 14 * 24 * 3600 * 1_000_000
LOGIN_US = 10 * 60 * 1_000_000
#: Letters that are not taken for one another when read aloud or typed: 20 of them, 8 a code, ten minutes to guess one.
LETTERS = "BCDFGHJKLMNPQRSTVWXZ"


def open_session(connection: Connection, user: int, agent: str, now_us: int) -> str:
    secret = secrets.token_urlsafe(32)
    values = {"digest": digest(secret), "user_id": user, "created_us": now_us, "expires_us": now_us + SESSION_US}
    connection.execute(sa.insert(schema.sessions).values(agent=agent[:200], **values))
    connection.execute(sa.delete(schema.sessions).where(schema.sessions.c.expires_us < now_us))
    return secret


def session_user(connection: Connection, secret: str, now_us: int) -> int | None:
    sessions = schema.sessions
    query = sa.select(sessions.c.user_id).where(sessions.c.digest == digest(secret), sessions.c.expires_us > now_us)
    return connection.execute(query).scalar()


def close_session(connection: Connection, secret: str) -> None:
    connection.execute(sa.delete(schema.sessions).where(schema.sessions.c.digest == digest(secret)))


@dataclass(frozen=True)
class Login:
    """A login that waits, or that was decided."""

    user_code: str
    label: str
    state: str
    user: int | None
    account: int | None


def begin_login(connection: Connection, label: str, now_us: int) -> tuple[str, str]:
    """A new login: the secret the command line asks with, and the code a person compares."""
    logins = schema.logins
    connection.execute(sa.delete(logins).where(logins.c.expires_us < now_us))
    secret = secrets.token_urlsafe(32)
    code = "".join(secrets.choice(LETTERS) for _ in range(8))
    code = f"{code[:4]}-{code[4:]}"
    values = {"device_digest": digest(secret), "user_code": code, "label": label[:200], "state": "waiting"}
    connection.execute(sa.insert(logins).values(created_us=now_us, expires_us=now_us + LOGIN_US, **values))
    return secret, code


def count_waiting(connection: Connection, now_us: int) -> int:
    """Logins that somebody may still confirm."""
    logins = schema.logins
    query = sa.select(sa.func.count()).select_from(logins).where(logins.c.expires_us > now_us)
    return int(connection.execute(query).scalar_one())


def find_login(connection: Connection, user_code: str, now_us: int) -> Login | None:
    logins = schema.logins
    query = sa.select(logins).where(logins.c.user_code == user_code.strip().upper(), logins.c.expires_us > now_us)
    row = connection.execute(query).one_or_none()
    return Login(row.user_code, row.label, row.state, row.user_id, row.account_id) if row is not None else None


def decide_login(
    connection: Connection, user_code: str, user: int, account: int, now_us: int, *, approve: bool
) -> bool:
    logins = schema.logins
    waiting = (logins.c.user_code == user_code) & (logins.c.state == "waiting") & (logins.c.expires_us > now_us)
    values = {"state": "approved" if approve else "denied", "user_id": user, "account_id": account}
    return bool(connection.execute(sa.update(logins).where(waiting).values(values)).rowcount)


def collect_login(connection: Connection, secret: str, now_us: int) -> Login | None:
    """What became of a login; one that was approved can be collected once."""
    logins = schema.logins
    mine = logins.c.device_digest == digest(secret)
    query = sa.select(logins).where(mine, logins.c.expires_us > now_us)
    row = connection.execute(query.with_for_update()).one_or_none()
    if row is None or row.state == "used":
        return None
    if row.state == "approved":
        connection.execute(sa.update(logins).where(mine).values(state="used"))
    return Login(row.user_code, row.label, row.state, row.user_id, row.account_id)
