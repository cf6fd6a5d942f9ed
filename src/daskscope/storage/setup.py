"""The secret with which the first user of a server is made; it works once."""

from __future__ import annotations

import hmac
import secrets

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope.storage import schema
from daskscope.storage.database import insert
from daskscope.storage.tokens import digest

NAME = "setup"


def offer_setup(connection: Connection) -> str:
    """A new secret, in place of the one before; empty where somebody can log in already."""
    users = schema.users
    # The user of a server that asked for no login before has no password, and nobody can log in as them.
    if connection.execute(sa.select(users.c.id).where(users.c.password != "").limit(1)).scalar() is not None:
        return ""
    secret = secrets.token_urlsafe(24)
    statement = insert(connection, schema.facts).values(name=NAME, value=digest(secret))
    changed = {"value": digest(secret)}
    connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_=changed))
    return secret


def setup_matches(connection: Connection, secret: str) -> bool:
    facts = schema.facts
    stored = connection.execute(sa.select(facts.c.value).where(facts.c.name == NAME)).scalar()
    return bool(stored) and hmac.compare_digest(str(stored), digest(secret))


def end_setup(connection: Connection) -> bool:
    """Make the secret worthless; whether it still was worth something: of two who come at once one finds it gone."""
    return bool(connection.execute(sa.delete(schema.facts).where(schema.facts.c.name == NAME)).rowcount)
