"""Tokens: credentials for programs. Only a digest is stored; the secret is shown once."""

from __future__ import annotations

import functools
import hashlib
import secrets
import zlib
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from daskscope.model.states import SCOPES, Scope
from daskscope.storage import schema
from daskscope.storage.base.archive import Transaction, announce_access
from daskscope.storage.base.database import InvalidInput, of_row

#: A prefix that secret scanners and people recognise.
PREFIX = "dscope_"
#: Lifetime of a token unless its creator chooses another one.
DEFAULT_DAYS = 90
#: A token that expires within this time is marked, and the command line warns of it.
EXPIRES_SOON_US = 14 * 24 * 3600 * 1_000_000
#: ``used_us`` is written at most this often: a write per request would make reading as expensive as writing. For a
#: recorder's token nobody sees it, and it only has to be renewed in time.
USED_STEP_US, RECORDER_STEP_US = 60 * 1_000_000, 3600 * 1_000_000
#: Lifetime of a recorder's token. It is renewed while the recorder uses it.
INGEST_US = 90 * 24 * 3600 * 1_000_000


@dataclass(frozen=True)
class Token:
    """A valid token."""

    id: int
    account: int
    user: int
    user_name: str
    #: What it allows in its account, and what it was created with: the role in another account may allow more.
    scopes: frozenset[str]
    granted: frozenset[str]
    #: The only cluster it can write to; empty means any cluster of the account.
    cluster: str
    used_us: int
    #: 0 means never.
    expires_us: int

    def is_unmarked(self, now_us: int) -> bool:
        """Return whether its use should be marked."""
        return now_us - self.used_us > (RECORDER_STEP_US if self.cluster else USED_STEP_US)


@dataclass(frozen=True, slots=True)
class ListedToken:
    """A token as lists show it, with the numbers of recorder tokens and other tokens created with it."""

    id: int
    hint: str
    label: str
    scopes: list[Scope]
    user: str
    created_us: int
    expires_us: int
    used_us: int
    revoked_us: int
    recorders: int
    children: int
    expired: bool
    expires_soon: bool


def new_secret() -> str:
    """Return 32 random bytes with a checksum, which tells a typo from an unknown token."""
    body = secrets.token_urlsafe(32)
    return f"{PREFIX}{body}{zlib.crc32(body.encode()):08x}"


def well_formed(secret: str) -> bool:
    body, checksum = secret[len(PREFIX) : -8], secret[-8:]
    return secret.startswith(PREFIX) and secret.isascii() and f"{zlib.crc32(body.encode()):08x}" == checksum


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def create_token(
    tx: Transaction,
    *,
    account: int,
    user: int,
    scopes: frozenset[str],
    label: str = "",
    expires_us: int = 0,
    cluster: str = "",
    parent: int = 0,
) -> tuple[int, str]:
    """Create a token and return its number and secret. A token with a ``parent`` ends when the parent is revoked."""
    unknown = scopes - set(SCOPES)
    if unknown or not scopes:
        raise InvalidInput(f"A token's scopes are some of {', '.join(SCOPES)}.")
    secret = new_secret()
    values = {
        "account_id": account,
        "user_id": user,
        "digest": digest(secret),
        "hint": secret[: len(PREFIX) + 4],
        "label": label,
        "scopes": " ".join(scope for scope in SCOPES if scope in scopes),
        "cluster": cluster,
        "created_us": tx.now_us,
        "expires_us": expires_us,
        "parent": parent,
    }
    result = tx.execute(sa.insert(schema.tokens).values(values))
    return int(result.inserted_primary_key[0]), secret  # type: ignore[index]


def find_token(tx: Transaction, secret: str) -> Token | None:
    """Return the token of a secret if it is not revoked or expired and its user is still a member of the account.

    All tokens it descends from must be valid too. This is checked each time although a revocation reaches all
    descendants: another server that cached an ancestor for half a minute may have created one meanwhile. The token of a
    recorder outlives the expiry of its ancestors, but not their revocation: a cluster that runs for months is recorded to
    its end.
    """
    row = tx.execute(_finding(), {"digest": digest(secret), "now": tx.now_us}).one_or_none()
    if row is None:
        return None
    if (
        row.parent
        and not tx.execute(_ancestors(is_recorder=bool(row.cluster)), {"first": row.parent, "now": tx.now_us}).first()
    ):
        return None
    granted = frozenset(row.scopes.split())
    scopes = granted & ALLOWED[row.role]
    return Token(
        row.id, row.account_id, row.user_id, row.user_name, scopes, granted, row.cluster, row.used_us, row.expires_us
    )


@functools.cache
def _finding() -> Any:
    """Select a valid token. Built once: that takes longer than running it."""
    tokens, users, members = schema.tokens, schema.users, schema.members
    return (
        sa.select(tokens, users.c.name.label("user_name"), members.c.role)
        .join(users, users.c.id == tokens.c.user_id)
        .join(members, (members.c.user_id == users.c.id) & (members.c.account_id == tokens.c.account_id))
        .where(tokens.c.digest == sa.bindparam("digest"), _active_at(tokens, sa.bindparam("now")))
        .where(users.c.disabled_us == 0)
    )


@functools.cache
def _ancestors(*, is_recorder: bool) -> Any:
    """Select a token that was created in a browser at the end of the chain of valid tokens from the token ``first`` upwards."""
    tokens = schema.tokens
    is_valid = tokens.c.revoked_us == 0 if is_recorder else _active_at(tokens, sa.bindparam("now"))
    first = sa.select(tokens.c.id, tokens.c.parent).where(tokens.c.id == sa.bindparam("first"), is_valid)
    chain = first.cte("chain", recursive=True)
    chain = chain.union(sa.select(tokens.c.id, tokens.c.parent).where(tokens.c.id == chain.c.parent, is_valid))
    return sa.select(chain.c.id).where(chain.c.parent == 0)


def is_active(tx: Transaction, tokens: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return the SQL condition that a token is neither revoked nor expired."""
    return _active_at(tokens, tx.now_us)


def _active_at(tokens: sa.FromClause, now_us: Any) -> sa.ColumnElement[bool]:
    return (tokens.c.revoked_us == 0) & sa.or_(tokens.c.expires_us == 0, tokens.c.expires_us > now_us)


#: The maximum scopes by the user's current role: a user who becomes a viewer has no token that can write.
ALLOWED: dict[str, frozenset[str]] = {
    "viewer": frozenset({"read", "accounts"}),
    "member": frozenset({"ingest", "read", "write", "tokens", "accounts"}),
    "owner": frozenset(SCOPES),
}


def has_cluster_token(tx: Transaction, account: int, user: int, cluster: str) -> bool:
    """Return whether a user has registered a cluster: it has a token that is not revoked."""
    tokens = schema.tokens
    mine = (tokens.c.account_id == account) & (tokens.c.user_id == user) & (tokens.c.cluster == cluster)
    query = sa.select(tokens.c.id).where(mine, tokens.c.revoked_us == 0).limit(1)
    return tx.execute(query).scalar() is not None


def mark_used(tx: Transaction, token: int) -> None:
    tx.execute(sa.update(schema.tokens).where(schema.tokens.c.id == token).values(used_us=tx.now_us))


def renewed_us(tx: Transaction, token: Token) -> int:
    """Extend a recorder's token in the last third of its life, and return when it expires."""
    if not token.cluster or not 0 < token.expires_us < tx.now_us + INGEST_US // 3:
        return token.expires_us
    expires_us = tx.now_us + INGEST_US
    tx.execute(sa.update(schema.tokens).where(schema.tokens.c.id == token.id).values(expires_us=expires_us))
    return expires_us


def list_tokens(tx: Transaction, account: int, user: int | None, *, include_inactive: bool) -> list[ListedToken]:
    """Return the tokens of an account, or of one of its users.

    Recorder tokens are counted at the token they were created with.
    """
    tokens, users = schema.tokens, schema.users
    below = tokens.alias("below")
    mine = (below.c.parent == tokens.c.id) & is_active(tx, below)
    count = sa.select(sa.func.count()).select_from(below)
    query = (
        sa.select(
            tokens,
            users.c.name.label("user"),
            count.where(mine, below.c.cluster != "").scalar_subquery().label("recorders"),
            count.where(mine, below.c.cluster == "").scalar_subquery().label("children"),
        )
        .join(users, users.c.id == tokens.c.user_id)
        .where(tokens.c.account_id == account, tokens.c.cluster == "")
        .order_by(tokens.c.id)
    )
    if user is not None:
        query = query.where(tokens.c.user_id == user)
    if not include_inactive:
        query = query.where(is_active(tx, tokens))
    return [_listed(tx, row) for row in tx.execute(query).mappings()]


def _listed(tx: Transaction, row: sa.RowMapping) -> ListedToken:
    expires = row["expires_us"]
    soon = not row["revoked_us"] and tx.now_us < expires <= tx.now_us + EXPIRES_SOON_US
    return of_row(
        ListedToken, row, scopes=row["scopes"].split(), expired=0 < expires <= tx.now_us, expires_soon=soon
    )  # fmt: skip


@dataclass(frozen=True)
class UserToken:
    """An active token of a user in any account."""

    account: str
    hint: str
    label: str
    expires_us: int


def tokens_of_user(tx: Transaction, user: int) -> list[UserToken]:
    """Return the active tokens of a user in all accounts, without tokens of recorders."""
    tokens, accounts = schema.tokens, schema.accounts
    query = (
        sa.select(accounts.c.name.label("account"), tokens.c.hint, tokens.c.label, tokens.c.expires_us)
        .join(accounts, accounts.c.id == tokens.c.account_id)
        .where(tokens.c.user_id == user, tokens.c.cluster == "", is_active(tx, tokens))
        .order_by(tokens.c.id)
    )
    return tx.rows(UserToken, query)


@dataclass(frozen=True)
class Revoked:
    """What a revocation ended besides the token itself."""

    hint: str
    label: str
    user: int
    #: Tokens of recorders, and other tokens, that were created with it or with such a token.
    recorders: int
    children: int


def revoke_token(tx: Transaction, account: int, user: int | None, token: int) -> Revoked | None:
    """Revoke a token and all tokens that descend from it. Return None if there is no such token."""
    tokens = schema.tokens
    mine = (tokens.c.account_id == account) & (tokens.c.id == token) & (tokens.c.revoked_us == 0)
    if user is not None:
        mine &= tokens.c.user_id == user
    row = tx.execute(sa.select(tokens).where(mine)).one_or_none()
    if row is None or not tx.execute(sa.update(tokens).where(mine).values(revoked_us=tx.now_us)).rowcount:
        return None
    below = sa.select(tokens.c.id).where(tokens.c.parent == token).cte("below", recursive=True)
    below = below.union(sa.select(tokens.c.id).where(tokens.c.parent == below.c.id))
    alive = tokens.c.id.in_(sa.select(below.c.id)) & (tokens.c.revoked_us == 0)
    # Count first: SQLite does not say how many rows an update with a recursive query changed.
    clusters = list(tx.execute(sa.select(tokens.c.cluster).where(alive)).scalars())
    tx.execute(sa.update(tokens).where(alive).values(revoked_us=tx.now_us))
    announce_access(tx)
    recorders = sum(bool(cluster) for cluster in clusters)
    return Revoked(row.hint, row.label, row.user_id, recorders, len(clusters) - recorders)


def revoke_tokens_of_user(tx: Transaction, user: int) -> int:
    """Revoke all tokens of a user in all accounts, including tokens of recorders. Return how many."""
    tokens = schema.tokens
    mine = (tokens.c.user_id == user) & (tokens.c.revoked_us == 0)
    announce_access(tx)
    return tx.execute(sa.update(tokens).where(mine).values(revoked_us=tx.now_us)).rowcount


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
