"""Hosted reports: numbered per account, private or for whoever has the link."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from daskscope import units
from daskscope.storage import schema
from daskscope.storage.clusters import has
from daskscope.storage.database import StorageError
from daskscope.storage.sums import summed

Row = dict[str, Any]


@dataclass(frozen=True)
class NewReport:
    """What is known of a report when it is uploaded."""

    filename: str
    title: str
    kind: str
    path: str
    nbytes: int
    visibility: str
    tags: tuple[str, ...] = ()
    cluster: str = ""
    status: str = ""
    duration_us: int = 0
    tasks: int = 0
    errors: int = 0
    expires_us: int = 0


def new_share() -> str:
    """128 random bits."""
    return secrets.token_urlsafe(16)


class ReportsFull(StorageError):
    """An account has as many bytes of reports as it may."""

    def __init__(self, used: int, limit: int) -> None:
        super().__init__(
            f"The account's reports have {units.nbytes(used)} of the {units.nbytes(limit)} that are kept, and this one does not "
            "fit. Delete some, or let them expire: daskscope reports delete N, daskscope reports change N --days 1. Whoever runs "
            "the server can change the limit with --max-reports."
        )


def used_nbytes(connection: Connection, account: int, now_us: int) -> int:
    """Bytes of an account's reports; one that has expired counts no more, it is deleted within the hour."""
    reports = schema.reports
    query = sa.select(summed(reports.c.nbytes)).where(reports.c.account_id == account, _current(now_us))
    return int(connection.execute(query).scalar_one())


def add_report(
    connection: Connection, account: int, user: int, report: NewReport, now_us: int, *, limit: int = 0
) -> Row:
    """Number a report and store it, where the account's reports stay within ``limit`` bytes (0: any number)."""
    accounts, reports = schema.accounts, schema.reports
    mine = accounts.c.id == account
    # The update locks the account's row: two uploads at once cannot get one number, nor both the last of the room.
    connection.execute(sa.update(accounts).where(mine).values(last_report=accounts.c.last_report + 1))
    used = used_nbytes(connection, account, now_us) if limit else 0
    if limit and used + report.nbytes > limit:
        raise ReportsFull(used, limit)
    number = connection.execute(sa.select(accounts.c.last_report).where(mine)).scalar_one()
    values = {
        **{name: value for name, value in vars(report).items() if name != "tags"},
        "tags": json.dumps(list(report.tags)),
        "account_id": account,
        "number": number,
        "share": new_share() if report.visibility == "public" else "",
        "user_id": user or None,
        "created_us": now_us,
    }
    connection.execute(sa.insert(reports).values(values))
    row = find_report(connection, account, number, now_us)
    assert row is not None
    return row


def _query() -> Any:
    reports, users, accounts = schema.reports, schema.users, schema.accounts
    return (
        sa.select(reports, users.c.name.label("user"), accounts.c.name.label("account"))
        .outerjoin(users, users.c.id == reports.c.user_id)
        .join(accounts, accounts.c.id == reports.c.account_id)
    )


def _current(now_us: int) -> Any:
    reports = schema.reports
    return sa.or_(reports.c.expires_us == 0, reports.c.expires_us > now_us)


def find_report(connection: Connection, account: int, number: int, now_us: int) -> Row | None:
    reports = schema.reports
    query = _query().where(reports.c.account_id == account, reports.c.number == number, _current(now_us))
    row = connection.execute(query).mappings().one_or_none()
    return dict(row) if row is not None else None


def find_shared(connection: Connection, share: str, now_us: int) -> Row | None:
    """The public report a link stands for."""
    reports = schema.reports
    if not share:
        return None
    query = _query().where(reports.c.share == share, reports.c.visibility == "public", _current(now_us))
    row = connection.execute(query).mappings().one_or_none()
    return dict(row) if row is not None else None


def list_reports(
    connection: Connection,
    account: int,
    now_us: int,
    *,
    search: str = "",
    tag: str = "",
    since_us: int = 0,
    user: str = "",
    limit: int = 100,
    before: int | None = None,
) -> list[Row]:
    """Reports of an account, the newest first."""
    reports, users = schema.reports, schema.users
    query = _query().where(reports.c.account_id == account, _current(now_us))
    if search:
        query = query.where(sa.or_(has(reports.c.title, search), has(reports.c.filename, search)))
    if tag:
        query = query.where(reports.c.tags.contains(json.dumps(tag), autoescape=True))
    if since_us:
        query = query.where(reports.c.created_us >= since_us)
    if user:
        query = query.where(users.c.name == user)
    if before is not None:
        query = query.where(reports.c.number < before)
    query = query.order_by(reports.c.number.desc()).limit(limit)
    return [dict(row) for row in connection.execute(query).mappings()]


def change_report(connection: Connection, report: int, values: dict[str, Any]) -> None:
    reports = schema.reports
    if "tags" in values:
        values = {**values, "tags": json.dumps(list(values["tags"]))}
    connection.execute(sa.update(reports).where(reports.c.id == report).values(values))


def delete_report(connection: Connection, report: int) -> list[str]:
    """Delete a report; the paths of its files."""
    reports = schema.reports
    row = connection.execute(sa.select(reports.c.path, reports.c.html_path).where(reports.c.id == report)).one_or_none()
    connection.execute(sa.delete(reports).where(reports.c.id == report))
    # None: somebody else deleted it at the same moment.
    return [path for path in row or () if path]
