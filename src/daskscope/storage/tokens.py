"""Tokens: what programs prove themselves with. Only a digest is kept; the secret is shown once."""

from __future__ import annotations

import hashlib
import secrets
import zlib
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.storage import schema
from daskscope.storage.database import StorageError

#: So that a secret scanner, or a person, knows what was found.
PREFIX = "dscope_"
SCOPES = ("ingest", "read", "write", "admin")
#: ``used_us`` is written at most this often: a write for each request would make reading as dear as writing.
USED_STEP_US = 60 * 1_000_000


@dataclass(frozen=True)
class Token:
    """A token that is valid now."""

    id: int
    account: int
    user: int
    user_name: str
    scopes: frozenset[str]
    #: The only cluster it may write to; empty: any of the account.
    cluster: str
    used_us: int
    #: 0: never.
    expires_us: int


def new_secret() -> str:
    """32 random bytes with a checksum, so that a typo is told from a token that is not known."""
    body = secrets.token_urlsafe(32)
    return f"{PREFIX}{body}{zlib.crc32(body.encode()):08x}"


def well_formed(secret: str) -> bool:
    body, checksum = secret[len(PREFIX) : -8], secret[-8:]
    return secret.startswith(PREFIX) and secret.isascii() and f"{zlib.crc32(body.encode()):08x}" == checksum


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def create_token(
    connection: Connection,
    *,
    account: int,
    user: int,
    scopes: frozenset[str],
    now_us: int,
    label: str = "",
    expires_us: int = 0,
    cluster: str = "",
    parent: int = 0,
) -> tuple[int, str]:
    """A new token: its number and its secret. One with a ``parent`` ends when that token is revoked."""
    unknown = scopes - set(SCOPES)
    if unknown or not scopes:
        raise StorageError(f"A token's scopes are some of {', '.join(SCOPES)}.")
    secret = new_secret()
    values = {
        "account_id": account,
        "user_id": user,
        "digest": digest(secret),
        "hint": secret[: len(PREFIX) + 4],
        "label": label,
        "scopes": " ".join(scope for scope in SCOPES if scope in scopes),
        "cluster": cluster,
        "created_us": now_us,
        "expires_us": expires_us,
        "parent": parent,
    }
    result = connection.execute(sa.insert(schema.tokens).values(values))
    return int(result.inserted_primary_key[0]), secret  # type: ignore[index]


def find_token(connection: Connection, secret: str, now_us: int) -> Token | None:
    """The token of a secret, where it is neither revoked nor expired and its user still belongs to the account.

    Nor may the token it was made with be revoked or gone. That is looked up each time, although a revocation reaches those below
    as well: another server that remembered the token for half a minute may have made one from it meanwhile.
    """
    tokens, users, members = schema.tokens, schema.users, schema.members
    parent = tokens.alias("parent")
    query = (
        sa.select(tokens, users.c.name.label("user_name"), members.c.role)
        .join(users, users.c.id == tokens.c.user_id)
        .join(members, (members.c.user_id == users.c.id) & (members.c.account_id == tokens.c.account_id))
        .outerjoin(parent, parent.c.id == tokens.c.parent)
        .where(
            tokens.c.digest == digest(secret),
            tokens.c.revoked_us == 0,
            sa.or_(tokens.c.parent == 0, parent.c.revoked_us == 0),
            users.c.disabled_us == 0,
            sa.or_(tokens.c.expires_us == 0, tokens.c.expires_us > now_us),
        )
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    scopes = frozenset(row.scopes.split()) & ALLOWED[row.role]
    return Token(row.id, row.account_id, row.user_id, row.user_name, scopes, row.cluster, row.used_us, row.expires_us)


#: What a token may do at most, by its user's role at the moment: somebody made a viewer has no token that writes.
ALLOWED: dict[str, frozenset[str]] = {
    "viewer": frozenset({"read"}),
    "member": frozenset({"ingest", "read", "write"}),
    "owner": frozenset(SCOPES),
}


def has_cluster_token(connection: Connection, account: int, user: int, cluster: str) -> bool:
    """Whether a user registered a cluster: there is a token for it that was not revoked."""
    tokens = schema.tokens
    mine = (tokens.c.account_id == account) & (tokens.c.user_id == user) & (tokens.c.cluster == cluster)
    query = sa.select(tokens.c.id).where(mine, tokens.c.revoked_us == 0).limit(1)
    return connection.execute(query).scalar() is not None


def mark_used(connection: Connection, token: int, now_us: int) -> None:
    connection.execute(sa.update(schema.tokens).where(schema.tokens.c.id == token).values(used_us=now_us))


def list_tokens(
    connection: Connection, account: int, user: int | None, *, include_inactive: bool, now_us: int
) -> list[dict[str, Any]]:
    """The tokens of an account, or of one user in it; tokens of single clusters are counted below the one they were made with."""
    tokens, users = schema.tokens, schema.users
    below = tokens.alias("below")
    alive = (below.c.revoked_us == 0) & sa.or_(below.c.expires_us == 0, below.c.expires_us > now_us)
    recorders = sa.select(sa.func.count()).select_from(below).where(below.c.parent == tokens.c.id, alive)
    query = (
        sa.select(tokens, users.c.name.label("user"), recorders.scalar_subquery().label("recorders"))
        .join(users, users.c.id == tokens.c.user_id)
        .where(tokens.c.account_id == account, tokens.c.cluster == "")
        .order_by(tokens.c.id)
    )
    if user is not None:
        query = query.where(tokens.c.user_id == user)
    if not include_inactive:
        query = query.where(tokens.c.revoked_us == 0, sa.or_(tokens.c.expires_us == 0, tokens.c.expires_us > now_us))
    names = ("id", "hint", "label", "scopes", "user", "created_us", "expires_us", "used_us", "revoked_us", "recorders")
    rows = [{name: row[name] for name in names} for row in connection.execute(query).mappings()]
    return [{**row, "scopes": row["scopes"].split(), "expired": 0 < row["expires_us"] <= now_us} for row in rows]


@dataclass(frozen=True)
class Revoked:
    """What a revocation ended besides the token itself."""

    #: Tokens of recorders that were made with it.
    recorders: int


def revoke_token(connection: Connection, account: int, user: int | None, token: int, now_us: int) -> Revoked | None:
    """Revoke a token of an account (of one user in it) with those of recorders made from it; None where there was none."""
    tokens = schema.tokens
    mine = (tokens.c.account_id == account) & (tokens.c.id == token) & (tokens.c.revoked_us == 0)
    if user is not None:
        mine &= tokens.c.user_id == user
    if not connection.execute(sa.update(tokens).where(mine).values(revoked_us=now_us)).rowcount:
        return None
    below = (tokens.c.parent == token) & (tokens.c.revoked_us == 0)
    return Revoked(connection.execute(sa.update(tokens).where(below).values(revoked_us=now_us)).rowcount)
