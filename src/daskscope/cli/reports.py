"""Upload, list, share and delete reports on a server."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from daskscope import units
from daskscope.cli.output import open_output, write, write_json
from daskscope.cli.terminal import Cells, Column, escape, local_minute, split_cells
from daskscope.client.server import describe_upload, find_server, list_performance_reports, upload_file

#: The contents of uploaded HTML are unknown: it has no numbers.
CELLS: Cells[dict[str, Any]] = [
    (Column("id"), lambda report: str(report["id"])),
    (Column("title", right=False, name=True), lambda report: escape(report["title"])),
    (Column("user", right=False), lambda report: escape(report["user"] or "")),
    (Column("created", right=False), lambda report: local_minute(report["created"])),
    (Column("duration", optional=True), lambda r: "" if r["kind"] == "html" else units.duration(r["duration"] * 1e6)),
    (Column("tasks"), lambda report: "" if report["kind"] == "html" else units.count(report["n_tasks"])),
    (Column("errors"), lambda report: "" if report["kind"] == "html" else units.count(report["n_errors"])),
    (Column("visible to", right=False), lambda report: "members" if report["private"] else "anyone with the link"),
    (Column("url", right=False), lambda report: report["url"]),
]


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    upload = commands.add_parser("upload", help="upload a recording, a report, or a report written by Dask")
    upload.add_argument("path", metavar="FILE", help="recording (.daskscope) or HTML report")
    upload.add_argument("--private", action="store_true", help="show it to members of the account only")
    upload.add_argument("--title", metavar="TEXT", default="", help="title of the report")
    upload.add_argument("--tag", metavar="TEXT", action="append", default=[], help="tag (repeatable)")
    upload.add_argument("--days", type=int, metavar="N", help="delete it after N days (default: never)")
    listing = commands.add_parser("list", help="list the account's reports")
    listing.add_argument("--json", action="store_true", help="print JSON")
    change = commands.add_parser("change", help="rename a report, or change who can see it")
    change.add_argument("report", metavar="ID", type=int, help="report ID, as listed")
    change.add_argument("--title", metavar="TEXT", help="new title")
    change.add_argument(
        "--visibility", choices=("private", "public"), help="private: members only; public: anyone with the link"
    )
    change.add_argument("--new-link", action="store_true", help="create a new link and disable the old one")
    change.add_argument("--days", type=int, metavar="N", help="delete it after N days (0 = never)")
    delete = commands.add_parser("delete", help="delete a report")
    delete.add_argument("report", metavar="ID", type=int, help="report ID, as listed")
    for command in (upload, listing, change, delete):
        command.add_argument("--account", metavar="NAME", help="account (default: your own)")


def run(args: argparse.Namespace) -> int:
    actions = {"upload": _upload, "list": _list, "change": _change, "delete": _delete}
    actions[args.action](args)
    return 0


def _upload(args: argparse.Namespace) -> None:
    private = True if args.private else None
    sent = upload_file(
        Path(args.path), args.account, private=private, title=args.title, tags=args.tag, days_to_expire=args.days
    )
    write(describe_upload(sent))


def _list(args: argparse.Namespace) -> None:
    reports = list_performance_reports(args.account)
    if args.json:
        write_json(list(reports))
    elif not reports:
        write(f"{reports.empty}\n")
    else:
        open_output().table(*split_cells(CELLS, reports))


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
