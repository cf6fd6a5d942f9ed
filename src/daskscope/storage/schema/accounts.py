"""Tables of accounts, users, tokens, sessions and reports."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, LargeBinary, Table, UniqueConstraint

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

#: The data keys that an account's texts are encrypted with, each wrapped by the master key. Deleting them is final.
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
    # Can create accounts and users, and read the server's health.
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
    # SHA-256 of the secret. The secret itself is shown once and stored nowhere.
    Column("digest", Words, nullable=False, unique=True),
    text("hint"),
    text("label"),
    text("scopes"),
    # The only cluster it can write to; empty means any cluster of the account.
    text("cluster"),
    number("created_us"),
    number("expires_us"),
    number("used_us"),
    number("revoked_us"),
    # The token it was created with and ends with; 0 if created in a browser.
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
    # SHA-256 of the secret that pages send in a header. Pages of other ports get the cookie, but not this secret.
    text("page_digest"),
    text("address"),
    # Whether it was opened with a sign-in link, which somebody else created.
    number("by_link"),
    Index(None, "user_id"),
)

#: A ``daskscope login`` that waits for confirmation in a browser.
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
    # Where the request came from, and what the requester says about itself.
    text("address"),
    text("host"),
    text("scopes"),
)

#: Links that an administrator or owner gives to a user who cannot sign in. Each works once.
sign_in_links = Table(
    "sign_in_links",
    metadata,
    key("digest"),
    Column("user_id", Id, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    # Whether the user must choose a new password with it.
    number("sets_password"),
    number("created_us"),
    number("expires_us"),
)

#: Who did what, for the owners of an account and the administrators of the server. It never contains a secret.
audit_events = Table(
    "audit_events",
    metadata,
    Column("id", Id, primary_key=True),
    number("time_us"),
    # 0 for what concerns the whole server. No foreign key: the events of a deleted account stay.
    number("account_id"),
    # Names, not numbers: an event is what was true at its time.
    text("user"),
    text("action"),
    text("subject"),
    text("address"),
    # JSON
    text("details"),
    Index(None, "account_id", "id"),
    Index(None, "time_us"),
    sqlite_autoincrement=True,
)

#: Failed sign-ins by user and by address. They are in SQL so that several servers share them.
attempts = Table("attempts", metadata, key("subject"), number("tries"), number("since_us"))

#: Measurements of benchmarks that later runs are compared with. Their names are the account's own.
baselines = Table(
    "baselines",
    metadata,
    Column("account_id", Id, ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True),
    key("name"),
    key("test"),
    number("repeats"),
    number("created_us"),
    number("changed_us"),
    # The name of who kept it last.
    text("user"),
    # Bytes of ``sealed_runs``, so that the sum over an account does not read them.
    number("nbytes"),
    # Compressed JSON, see ``analysis.measured``. It contains code.
    Column("sealed_runs", LargeBinary, nullable=False),
)

#: Facts about the server itself: the one-time setup secret, the last orphan sweep.
facts = Table("facts", metadata, key("name"), text("value"))


reports = Table(
    "reports",
    metadata,
    Column("id", Id, primary_key=True),
    account_id(),
    number("number"),
    # 128 random bits; knowing them is the right to see a public report. Empty if revoked.
    text("share"),
    Column("user_id", Id, ForeignKey("users.id", ondelete="SET NULL")),
    text("filename"),
    text("title"),
    text("tags"),
    # private or public
    text("visibility"),
    # recording (rendered by the viewer) or html (shown in a sandbox)
    text("kind"),
    text("path"),
    text("html_path"),
    number("nbytes"),
    number("created_us"),
    number("expires_us"),
    text("cluster"),
    text("status"),
    number("duration_us"),
    number("tasks"),
    number("errors"),
    UniqueConstraint("account_id", "number"),
    Index(None, "share"),
    sqlite_autoincrement=True,
)
