"""Browser sessions, device sign-ins that wait for confirmation, and the one-time setup secret."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa

from daskscope.model.states import SCOPES
from daskscope.storage import schema
from daskscope.storage.base.archive import Transaction
from daskscope.storage.base.database import insert
from daskscope.storage.people.tokens import digest

SESSION_US = 14 * 24 * 3600 * 1_000_000
#: Hexadecimal digits of a session's ID.
ID_LENGTH = 16
LOGIN_US = 10 * 60 * 1_000_000
#: Letters that are not confused when read aloud or typed: 20 letters, 8 per code, valid for ten minutes.
LETTERS = "BCDFGHJKLMNPQRSTVWXZ"


@dataclass(frozen=True)
class NewSession:
    """The secrets of a new session."""

    #: The value of its cookie.
    cookie: str
    #: What pages send in a header, see ``server.http.page_secret``.
    page: str


@dataclass(frozen=True)
class Session:
    """A valid session."""

    user_id: int
    page_digest: str


def open_session(tx: Transaction, user: int, agent: str, address: str = "", *, by_link: bool = False) -> NewSession:
    new = NewSession(secrets.token_urlsafe(32), secrets.token_urlsafe(32))
    digests = {"digest": digest(new.cookie), "page_digest": digest(new.page)}
    times = {"created_us": tx.now_us, "expires_us": tx.now_us + SESSION_US}
    values = {"user_id": user, "agent": agent[:200], "address": address, "by_link": int(by_link), **digests, **times}
    tx.execute(sa.insert(schema.sessions).values(values))
    tx.execute(sa.delete(schema.sessions).where(schema.sessions.c.expires_us < tx.now_us))
    return new


def find_session(tx: Transaction, cookie: str) -> Session | None:
    sessions = schema.sessions
    mine = (sessions.c.digest == digest(cookie)) & (sessions.c.expires_us > tx.now_us)
    return tx.row(Session, sa.select(sessions).where(mine))


def close_session(tx: Transaction, secret: str) -> None:
    tx.execute(sa.delete(schema.sessions).where(schema.sessions.c.digest == digest(secret)))


@dataclass(frozen=True)
class ListedSession:
    """A session as its user sees it."""

    #: The start of the digest of its cookie.
    id: str
    agent: str
    address: str
    created_us: int
    expires_us: int


def session_id(cookie: str) -> str:
    """Return the ID that lists show for a session. Nobody can derive the cookie from it."""
    return digest(cookie)[:ID_LENGTH]


def list_sessions(tx: Transaction, user: int) -> list[ListedSession]:
    sessions = schema.sessions
    mine = (sessions.c.user_id == user) & (sessions.c.expires_us > tx.now_us)
    number = sa.func.substr(sessions.c.digest, 1, ID_LENGTH).label("id")
    query = sa.select(number, sessions.c.agent, sessions.c.address, sessions.c.created_us, sessions.c.expires_us)
    return tx.rows(ListedSession, query.where(mine).order_by(sessions.c.created_us.desc()))


def end_session(tx: Transaction, user: int, number: str) -> ListedSession | None:
    """End a session of a user. Return None if there is no such session."""
    found = next((session for session in list_sessions(tx, user) if session.id == number), None)
    if found is not None:
        sessions = schema.sessions
        mine = (sessions.c.user_id == user) & sessions.c.digest.startswith(number, autoescape=True)
        tx.execute(sa.delete(sessions).where(mine))
    return found


@dataclass(frozen=True)
class Login:
    """A device sign-in: waiting or decided."""

    user_code: str
    label: str
    state: str
    user_id: int | None
    account_id: int | None
    #: The IP address of the requester.
    address: str
    #: The host name that the requester states.
    host: str
    #: The requested scopes, separated by spaces.
    scopes: str


def begin_login(
    tx: Transaction, label: str, *, address: str = "", host: str = "", scopes: Collection[str] = ()
) -> tuple[str, str]:
    """Begin a device sign-in. Return the secret for the command line and the code for the user."""
    logins = schema.logins
    tx.execute(sa.delete(logins).where(logins.c.expires_us < tx.now_us))
    secret = secrets.token_urlsafe(32)
    code = "".join(secrets.choice(LETTERS) for _ in range(8))
    code = f"{code[:4]}-{code[4:]}"
    values = {"device_digest": digest(secret), "user_code": code, "label": label[:200], "state": "waiting"}
    values |= {"address": address, "host": host[:200], "scopes": " ".join(name for name in SCOPES if name in scopes)}
    tx.execute(sa.insert(logins).values(created_us=tx.now_us, expires_us=tx.now_us + LOGIN_US, **values))
    return secret, code


def count_waiting(tx: Transaction) -> int:
    """Count the device sign-ins that can still be confirmed."""
    logins = schema.logins
    query = sa.select(sa.func.count()).select_from(logins).where(logins.c.expires_us > tx.now_us)
    return int(tx.execute(query).scalar_one())


def find_login(tx: Transaction, user_code: str) -> Login | None:
    logins = schema.logins
    query = sa.select(logins).where(logins.c.user_code == user_code.strip().upper(), logins.c.expires_us > tx.now_us)
    return tx.row(Login, query)


def decide_login(tx: Transaction, user_code: str, user: int, account: int, *, approve: bool) -> bool:
    logins = schema.logins
    waiting = (logins.c.user_code == user_code) & (logins.c.state == "waiting") & (logins.c.expires_us > tx.now_us)
    values = {"state": "approved" if approve else "denied", "user_id": user, "account_id": account}
    return bool(tx.execute(sa.update(logins).where(waiting).values(values)).rowcount)


def collect_login(tx: Transaction, secret: str) -> Login | None:
    """Return the result of a device sign-in. An approved one can be collected once."""
    logins = schema.logins
    mine = logins.c.device_digest == digest(secret)
    query = sa.select(logins).where(mine, logins.c.expires_us > tx.now_us)
    login = tx.row(Login, query.with_for_update())
    if login is None or login.state == "used":
        return None
    if login.state == "approved":
        tx.execute(sa.update(logins).where(mine).values(state="used"))
    return login


NAME = "setup"
#: Setup links that are valid at the same time.
MAX_SETUP_LINKS = 10


def offer_setup(tx: Transaction) -> str:
    """Create a setup secret. Empty if a user can already sign in.

    Earlier ones stay valid, up to a number: another server with the same database has printed its own link.
    """
    users = schema.users
    # The user of a server that had no sign-in before has no password, so nobody can sign in as them.
    if tx.execute(sa.select(users.c.id).where(users.c.password != "").limit(1)).scalar() is not None:
        return ""
    secret = secrets.token_urlsafe(24)
    valid = " ".join([digest(secret), *_setup_digests(tx)][:MAX_SETUP_LINKS])
    statement = insert(tx.connection, schema.facts).values(name=NAME, value=valid)
    changed = {"value": valid}
    tx.execute(statement.on_conflict_do_update(index_elements=["name"], set_=changed))
    return secret


def setup_matches(tx: Transaction, secret: str) -> bool:
    return any(hmac.compare_digest(stored, digest(secret)) for stored in _setup_digests(tx))


def _setup_digests(tx: Transaction) -> list[str]:
    """Return the digests of the valid setup secrets, the newest first."""
    facts = schema.facts
    return str(tx.execute(sa.select(facts.c.value).where(facts.c.name == NAME)).scalar() or "").split()


def end_setup(tx: Transaction) -> bool:
    """Invalidate all setup secrets. Return whether there were any: of two concurrent uses only one succeeds."""
    return bool(tx.execute(sa.delete(schema.facts).where(schema.facts.c.name == NAME)).rowcount)
