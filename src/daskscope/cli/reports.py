"""Upload, list, share and delete reports at a server."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from daskscope import units
from daskscope.cli.escape import escape
from daskscope.cli.layout import Column
from daskscope.cli.moment import minute
from daskscope.cli.output import open_output, write
from daskscope.cli.show import write_json
from daskscope.client.reports import list_performance_reports, upload_file
from daskscope.client.server import find_server

COLUMNS = [
    Column("n"),
    Column("title", right=False, name=True),
    Column("user", right=False),
    Column("created", right=False),
    Column("duration", optional=True),
    Column("tasks"),
    Column("errors"),
    Column("for", right=False),
    Column("url", right=False),
]


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    upload = commands.add_parser("upload", help="upload a recording, a report, or a report Dask wrote")
    upload.add_argument("path", metavar="FILE", help="a recording (.daskscope) or an HTML report")
    upload.add_argument("--private", action="store_true", help="for members of the account only")
    upload.add_argument("--title", default="", help="what it is called")
    upload.add_argument("--tag", action="append", default=[], help="a tag; may be given again")
    upload.add_argument("--days", type=int, metavar="N", help="days until it is deleted (default: never)")
    listing = commands.add_parser("list", help="list the account's reports")
    listing.add_argument("--json", action="store_true", help="print as JSON")
    change = commands.add_parser("change", help="rename a report, or change who may see it")
    change.add_argument("report", metavar="N", type=int, help="the report's number")
    change.add_argument("--title", help="a new title")
    change.add_argument("--visibility", choices=("private", "public"), help="members only, or whoever has the link")
    change.add_argument("--new-link", action="store_true", help="a new link; the old one ends")
    change.add_argument("--days", type=int, metavar="N", help="days until it is deleted; 0: never")
    delete = commands.add_parser("delete", help="delete a report")
    delete.add_argument("report", metavar="N", type=int, help="the report's number")
    for command in (upload, listing, change, delete):
        command.add_argument("--account", metavar="NAME", help="the account, where it is not the usual one")


def run(args: argparse.Namespace) -> int:
    actions = {"upload": _upload, "list": _list, "change": _change, "delete": _delete}
    actions[args.action](args)
    return 0


def _upload(args: argparse.Namespace) -> None:
    private = True if args.private else None
    sent = upload_file(
        Path(args.path), args.account, private=private, title=args.title, tags=args.tag, days_to_expire=args.days
    )
    write(f"Performance Report Available at: {sent['url']}\n")


def _list(args: argparse.Namespace) -> None:
    reports = list_performance_reports(args.account)
    if args.json:
        write_json(list(reports))
    elif not reports:
        write(f"{reports.empty}\n")
    else:
        open_output().table(COLUMNS, [_row(report) for report in reports])


def _row(report: dict[str, Any]) -> list[str]:
    return [
        str(report["id"]),
        escape(report["title"]),
        escape(report["user"] or ""),
        minute(report["created"]),
        # Of HTML that was uploaded nobody knows what is in it.
        *(("", "", "") if report["kind"] == "html" else _numbers(report)),
        "members" if report["private"] else "link",
        report["url"],
    ]


def _numbers(report: dict[str, Any]) -> tuple[str, str, str]:
    return units.duration(report["duration"] * 1e6), units.count(report["n_tasks"]), units.count(report["n_errors"])


def _change(args: argparse.Namespace) -> None:
    given = {
        "title": args.title,
        "visibility": args.visibility,
        "days_to_expire": args.days,
        "new_link": args.new_link or None,
    }
    body = {name: value for name, value in given.items() if value is not None}
    changed = find_server(args.account).call("PATCH", f"reports/{args.report}", body=body)
    write(f"{changed['url']}\n")


def _delete(args: argparse.Namespace) -> None:
    find_server(args.account).call("DELETE", f"reports/{args.report}")
    write(f"deleted {args.report}\n")
