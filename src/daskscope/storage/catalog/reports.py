"""Hosted reports: numbered per account, private or visible to anyone with the link."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass
from typing import Any, Literal

import sqlalchemy as sa

from daskscope import units
from daskscope.storage import schema
from daskscope.storage.base.archive import Transaction
from daskscope.storage.base.bulk import summed
from daskscope.storage.base.database import StorageError, of_row
from daskscope.storage.catalog.clusters import has


@dataclass(frozen=True, slots=True)
class NewReport:
    """A report to add."""

    filename: str
    title: str
    kind: Literal["recording", "html"]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(NewReport):
    """A stored report."""

    id: int
    account_id: int
    account: str
    number: int
    share: str
    #: None if the user was deleted.
    user_id: int | None
    user: str | None
    html_path: str
    created_us: int

    @property
    def is_shared(self) -> bool:
        """Return whether it has a link with which anyone can see it."""
        return self.visibility == "public" and bool(self.share)


def new_share() -> str:
    """Return 128 random bits as text."""
    return secrets.token_urlsafe(16)


class ReportsFull(StorageError):
    """The account has reached its maximum bytes of reports."""

    def __init__(self, used: int, limit: int) -> None:
        super().__init__(
            f"The account's reports use {units.nbytes(used)} of {units.nbytes(limit)}, and this one does not fit. "
            "Delete some (daskscope reports delete N) or let them expire (daskscope reports change N --days 1). "
            "The server's operator can raise the limit with --max-reports."
        )


def used_nbytes(tx: Transaction, account: int) -> int:
    """Return the bytes of an account's reports, without expired ones, which are deleted within the hour."""
    reports = schema.reports
    query = sa.select(summed(reports.c.nbytes)).where(reports.c.account_id == account, _current(tx.now_us))
    return int(tx.execute(query).scalar_one())


def add_report(tx: Transaction, account: int, user: int, report: NewReport, *, limit: int = 0) -> Report:
    """Number and store a report if the account's reports stay within ``limit`` bytes (0 means no limit)."""
    accounts, reports = schema.accounts, schema.reports
    mine = accounts.c.id == account
    # The update locks the account's row: concurrent uploads cannot get the same number or exceed the limit.
    tx.execute(sa.update(accounts).where(mine).values(last_report=accounts.c.last_report + 1))
    used = used_nbytes(tx, account) if limit else 0
    if limit and used + report.nbytes > limit:
        raise ReportsFull(used, limit)
    number = tx.execute(sa.select(accounts.c.last_report).where(mine)).scalar_one()
    values = {
        **asdict(report),
        "tags": json.dumps(list(report.tags)),
        "account_id": account,
        "number": number,
        "share": new_share() if report.visibility == "public" else "",
        "user_id": user or None,
        "created_us": tx.now_us,
    }
    tx.execute(sa.insert(reports).values(values))
    row = find_report(tx, account, number)
    assert row is not None
    return row


def _query() -> Any:
    reports, users, accounts = schema.reports, schema.users, schema.accounts
    return (
        sa.select(reports, users.c.name.label("user"), accounts.c.name.label("account"))
        .outerjoin(users, users.c.id == reports.c.user_id)
        .join(accounts, accounts.c.id == reports.c.account_id)
    )


def _reports(tx: Transaction, query: Any) -> list[Report]:
    rows = tx.execute(query).mappings()
    return [of_row(Report, row, tags=tuple(json.loads(row["tags"] or "[]"))) for row in rows]


def _current(now_us: int) -> Any:
    reports = schema.reports
    return sa.or_(reports.c.expires_us == 0, reports.c.expires_us > now_us)


def find_report(tx: Transaction, account: int, number: int) -> Report | None:
    reports = schema.reports
    query = _query().where(reports.c.account_id == account, reports.c.number == number, _current(tx.now_us))
    return next(iter(_reports(tx, query)), None)


def get_report(tx: Transaction, report: int) -> Report | None:
    """Return the report with this number in the database."""
    return next(iter(_reports(tx, _query().where(schema.reports.c.id == report, _current(tx.now_us)))), None)


def find_shared(tx: Transaction, share: str) -> Report | None:
    """Return the public report behind a share link."""
    reports = schema.reports
    if not share:
        return None
    query = _query().where(reports.c.share == share, reports.c.visibility == "public", _current(tx.now_us))
    return next(iter(_reports(tx, query)), None)


def list_reports(
    tx: Transaction,
    account: int,
    *,
    search: str = "",
    tag: str = "",
    since_us: int = 0,
    user: str = "",
    limit: int = 100,
    before: int | None = None,
) -> list[Report]:
    """Return the reports of an account, newest first."""
    reports, users = schema.reports, schema.users
    query = _query().where(reports.c.account_id == account, _current(tx.now_us))
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
    return _reports(tx, query.order_by(reports.c.number.desc()).limit(limit))


def change_report(tx: Transaction, report: int, values: dict[str, Any]) -> None:
    reports = schema.reports
    if "tags" in values:
        values = {**values, "tags": json.dumps(list(values["tags"]))}
    tx.execute(sa.update(reports).where(reports.c.id == report).values(values))


def delete_report(tx: Transaction, report: int) -> list[str]:
    """Delete a report and return the paths of its files."""
    reports = schema.reports
    row = tx.execute(sa.select(reports.c.path, reports.c.html_path).where(reports.c.id == report)).one_or_none()
    tx.execute(sa.delete(reports).where(reports.c.id == report))
    # None if another transaction has deleted it.
    return [path for path in row or () if path]
