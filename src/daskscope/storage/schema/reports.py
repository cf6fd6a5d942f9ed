"""Hosted reports."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, Table, UniqueConstraint

from daskscope.storage.schema.base import Id, account_id, metadata, number, text

reports = Table(
    "reports",
    metadata,
    Column("id", Id, primary_key=True),
    account_id(),
    number("number"),
    # 128 random bits; the right to see a public report is to know them. Empty: revoked.
    text("share"),
    Column("user_id", Id, ForeignKey("users.id", ondelete="SET NULL")),
    text("filename"),
    text("title"),
    text("tags"),
    # private or public
    text("visibility"),
    # recording (rendered by us) or html (shown in a sandbox)
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
