"""Who may see what."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, LargeBinary, Table

from daskscope.storage.schema.base import Id, Words, account_id, key, metadata, number, text

accounts = Table(
    "accounts",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", Words, nullable=False, unique=True),
    number("created_us"),
    # JSON: prices, retention, default visibility; see ``accounts.Preferences``.
    text("preferences"),
    # The number of the newest report; reports are numbered per account.
    number("last_report"),
    sqlite_autoincrement=True,
)

#: One or more data keys an account's texts are sealed with, each wrapped by the master key. Deleting them is final.
account_keys = Table(
    "account_keys",
    metadata,
    Column("id", Id, primary_key=True),
    account_id(),
    Column("wrapped", LargeBinary, nullable=False),
    number("created_us"),
    Index(None, "account_id"),
    sqlite_autoincrement=True,
)

users = Table(
    "users",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", Words, nullable=False, unique=True),
    text("email"),
    text("password"),
    number("created_us"),
    number("disabled_us"),
    # May make accounts and users, and sees how the server is.
    number("admin"),
    sqlite_autoincrement=True,
)

members = Table(
    "members",
    metadata,
    Column("account_id", Id, ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True),
    Column("user_id", Id, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    text("role"),
    number("since_us"),
    Index(None, "user_id"),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", Id, primary_key=True),
    account_id(),
    Column("user_id", Id, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    # SHA-256 of the secret; the secret itself is shown once and kept nowhere.
    Column("digest", Words, nullable=False, unique=True),
    text("hint"),
    text("label"),
    text("scopes"),
    # The only cluster it may write to; empty: any of the account.
    text("cluster"),
    number("created_us"),
    number("expires_us"),
    number("used_us"),
    number("revoked_us"),
    # Of a recorder's token: the number of the token it was made with, and ends with; 0: it was made in a browser.
    number("parent"),
    Index(None, "account_id", "user_id"),
    Index(None, "parent"),
    sqlite_autoincrement=True,
)

sessions = Table(
    "sessions",
    metadata,
    key("digest"),
    Column("user_id", Id, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    number("created_us"),
    number("expires_us"),
    text("agent"),
)

#: A ``daskscope login`` that waits for somebody to confirm it in a browser.
logins = Table(
    "logins",
    metadata,
    key("device_digest"),
    Column("user_code", Words, nullable=False, unique=True),
    text("label"),
    number("created_us"),
    number("expires_us"),
    Column("user_id", Id, ForeignKey("users.id", ondelete="CASCADE")),
    Column("account_id", Id, ForeignKey("accounts.id", ondelete="CASCADE")),
    # waiting, approved, denied, used
    text("state"),
)

#: Attempts to guess a password, by user and by address: kept in SQL so that several servers share them.
attempts = Table("attempts", metadata, key("subject"), number("tries"), number("since_us"))

#: What the server remembers about itself: the one-time set-up secret, the last orphan sweep.
facts = Table("facts", metadata, key("name"), text("value"))
