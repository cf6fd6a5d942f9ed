"""Links for users who cannot sign in: each works once, for an hour. Only a digest is stored."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import sqlalchemy as sa

from daskscope.storage import schema
from daskscope.storage.archive import Transaction
from daskscope.storage.tokens import digest

LINK_US = 3600 * 1_000_000


@dataclass(frozen=True)
class NewLink:
    """The secret of a new link."""

    secret: str
    expires_us: int


@dataclass(frozen=True)
class Link:
    """A link that was just used."""

    user_id: int
    #: Whether the user must choose a new password with it.
    sets_password: bool


def create_link(tx: Transaction, user: int, *, sets_password: bool) -> NewLink:
    """Create a link. It replaces the previous one of the user."""
    links = schema.sign_in_links
    tx.execute(sa.delete(links).where(sa.or_(links.c.user_id == user, links.c.expires_us <= tx.now_us)))
    new = NewLink(secrets.token_urlsafe(32), tx.now_us + LINK_US)
    values = {"digest": digest(new.secret), "user_id": user, "sets_password": int(sets_password)}
    tx.execute(sa.insert(links).values(created_us=tx.now_us, expires_us=new.expires_us, **values))
    return new


def find_link(tx: Transaction, secret: str) -> Link | None:
    """Return a link that can still be used."""
    links = schema.sign_in_links
    query = sa.select(links).where(links.c.digest == digest(secret), links.c.expires_us > tx.now_us)
    row = tx.execute(query).one_or_none()
    return Link(row.user_id, bool(row.sets_password)) if row is not None else None


def use_link(tx: Transaction, secret: str) -> Link | None:
    """Return a link and delete it: of two concurrent uses only one succeeds."""
    found = find_link(tx, secret)
    links = schema.sign_in_links
    if found is None or not tx.execute(sa.delete(links).where(links.c.digest == digest(secret))).rowcount:
        return None
    return found


def delete_links(tx: Transaction, user: int) -> None:
    links = schema.sign_in_links
    tx.execute(sa.delete(links).where(links.c.user_id == user))


def end_link_access(tx: Transaction, user: int) -> None:
    """End the sign-in links of a user and the sessions opened with one, because the user is about to get more rights.

    The owner who created a link may have used it. They own all that the user could see until now, but not what they see later.
    """
    links, sessions = schema.sign_in_links, schema.sessions
    tx.execute(sa.delete(links).where(links.c.user_id == user, links.c.sets_password == 0))
    tx.execute(sa.delete(sessions).where(sessions.c.user_id == user, sessions.c.by_link != 0))
