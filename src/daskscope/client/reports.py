"""Upload and list reports at a server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from daskscope.client.listing import Listing
from daskscope.client.server import UPLOAD_TIMEOUT, Server, find_server
from daskscope.errors import DaskscopeError
from daskscope.report.source import unpacked

COLUMNS = ("id", "title", "user", "created", "duration", "n_tasks", "n_errors", "private", "url")


def upload_report(
    server: Server,
    data: bytes,
    *,
    filename: str,
    private: bool | None = None,
    title: str = "",
    tags: Sequence[str] = (),
    days_to_expire: int | None = None,
) -> dict[str, Any]:
    """Upload a recording or an HTML report; return the server's description of it, with its ``url``."""
    query = {
        "filename": Path(filename).name[:200],
        "title": title[:200],
        "visibility": {None: "", True: "private", False: "public"}[private],
        "tags": ",".join(tags),
        "days_to_expire": days_to_expire,
    }
    result: dict[str, Any] = server.call(
        "POST", "reports", query, data=data, content="application/octet-stream", timeout=UPLOAD_TIMEOUT
    )
    return result


def describe_upload(report: dict[str, Any]) -> str:
    """Return the lines to print after an upload: the link, and who can see the report."""
    account = report["account"]
    audience = f"members of {account}" if report["private"] else f"anyone with the link (account {account})"
    return f"Performance Report Available at: {report['url']}\nVisible to {audience}.\n"


def upload_file(path: Path, account: str | None = None, **options: Any) -> dict[str, Any]:
    """Upload a file: a recording, a daskscope report, or a report written by Dask."""
    try:
        with unpacked(path) as file:
            data, name = file.read_bytes(), file.name
    except OSError as error:
        raise DaskscopeError(f"{path} cannot be read: {error.strerror}.") from None
    return upload_report(find_server(account), data, filename=name, **options)


def list_performance_reports(account: str | None = None) -> Listing:
    """List the reports of an account, newest first: dicts with ``private``, ``filename``, ``url`` and more."""
    items = find_server(account).items("reports")
    return Listing(items, COLUMNS, "No reports yet. Create one: with daskscope.performance_report(): ...")
