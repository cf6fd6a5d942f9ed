"""List the clusters a server has recorded."""

from __future__ import annotations

import argparse
from typing import Any

from daskscope import units
from daskscope.cli.output import open_output, write, write_json, write_message
from daskscope.cli.terminal import Cells, Column, escape, local_minute, split_cells
from daskscope.client.config import option
from daskscope.client.server import find_server
from daskscope.collector.delivery.leftovers import find_leftovers
from daskscope.collector.delivery.spool import spool_directory
from daskscope.model.states import RUN_STATES

CONNECT = "import daskscope.analytics; daskscope.analytics.register()"

CELLS: Cells[dict[str, Any]] = [
    (Column("id", right=False, optional=True), lambda item: item["id"]),
    (Column("name", right=False, name=True), lambda item: escape(item["name"] or "–")),
    (Column("user", right=False), lambda item: escape(item["user"])),
    (Column("state", right=False), lambda item: item["state"] + (" (rows missing)" if item["missing_rows"] else "")),
    (Column("started", right=False), lambda item: local_minute(item["start"])),
    (Column("duration"), lambda item: units.duration(item["duration"] * 1e6)),
    (Column("tasks"), lambda item: units.count(item["n_tasks"])),
    (Column("errors"), lambda item: units.count(item["n_exceptions"])),
    (Column("threads", optional=True), lambda item: units.count(item["threads"])),
    (Column("cost", optional=True), lambda item: _estimate(item["cost"]["total"])),
]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--since",
        default="7 days",
        metavar="TIME",
        help="show clusters since: 7 days, 2h, 2026-05-01 or all (default: %(default)s)",
    )
    parser.add_argument("--user", metavar="NAME", help="show clusters of this user")
    parser.add_argument(
        "--state",
        metavar="STATE",
        help=f"show clusters in these states: {', '.join(RUN_STATES)} (comma-separated)",
    )
    parser.add_argument("--search", metavar="TEXT", help="search names, IDs, users and hosts")
    parser.add_argument("--account", metavar="NAME", help="account (default: your own)")
    parser.add_argument(
        "--limit", type=int, default=50, metavar="N", help="maximum number of clusters (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    server = find_server(args.account)
    query = {"since": args.since, "user": args.user, "state": args.state, "search": args.search}
    items = list(server.items("clusters", limit=max(1, args.limit), **query))
    if args.json:
        write_json(items)
        return 0
    if waiting := _waiting(server.url):
        write_message(waiting)
    if not items:
        write(f"{_empty_message(args)}\n")
        return 0
    open_output().table(*split_cells(CELLS, items))
    if len(items) == args.limit:
        write_message(f"showing the newest {len(items)}; --limit prints more.")
    return 0


def _waiting(url: str) -> str:
    """Return a line about the data that ended recorders left on this machine for this server; empty if there is none."""
    directory = spool_directory(str(option("daskscope.spool.directory") or ""))
    left = [leftover for leftover in find_leftovers(directory, url.rstrip("/")) if leftover.segments]
    if not left:
        return ""
    clusters = len({leftover.cluster for leftover in left})
    size = units.nbytes(sum(leftover.nbytes for leftover in left))
    why = next((leftover.refusal for leftover in left if leftover.refusal), "")
    reason = f"the server refused it: {why}" if why else "the next cluster that is recorded on this machine delivers it"
    return f"data of {clusters} {'cluster' if clusters == 1 else 'clusters'} waits in {directory} ({size}): {reason}"


def _empty_message(args: argparse.Namespace) -> str:
    if args.user or args.state or args.search:
        return "No cluster matches. Remove --user, --state or --search, or go back further with --since all."
    if args.since != "all":
        return f"No clusters since {args.since}. Go back further with --since all, or connect one: {CONNECT}"
    return f"No clusters. Connect one: {CONNECT}"


def _estimate(cost: float) -> str:
    """Mark a cost as an estimate; "<$0.01" already is one."""
    text = units.dollars(cost)
    return text if text.startswith("<") else f"~{text}"
