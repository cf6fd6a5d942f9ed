"""Tell every server on a PostgreSQL that somebody's access has changed."""

from __future__ import annotations

import sqlalchemy as sa

from daskscope.storage.archive import Transaction

#: A channel of its own: servers of earlier versions would not understand its messages.
ACCESS_CHANNEL = "daskscope_access"


def announce_access(tx: Transaction) -> None:
    """Make all servers on this database forget the tokens they have cached, once the transaction is committed.

    PostgreSQL sends the notification with the commit, so it is neither early nor lost while the sending server is alive.
    SQLite has no notifications: a second server on the same file accepts its cached tokens for half a minute.
    """
    if tx.connection.dialect.name == "postgresql":
        tx.execute(sa.select(sa.func.pg_notify(ACCESS_CHANNEL, "")))
