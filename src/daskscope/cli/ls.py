"""List the clusters a server keeps."""

from __future__ import annotations

import argparse
from typing import Any

from daskscope import units
from daskscope.cli.escape import escape
from daskscope.cli.layout import Column
from daskscope.cli.moment import minute
from daskscope.cli.output import complain, open_output, write
from daskscope.cli.show import write_json
from daskscope.client.server import find_server

CONNECT = "import daskscope.analytics; daskscope.analytics.register()"

COLUMNS = [
    Column("id", right=False, optional=True),
    Column("name", right=False, name=True),
    Column("user", right=False),
    Column("state", right=False),
    Column("started", right=False),
    Column("duration"),
    Column("tasks"),
    Column("errors"),
    Column("threads", optional=True),
    Column("cost", optional=True),
]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--since", default="7 days", metavar="TIME", help="7 days, 2h, 2026-05-01, all (default: %(default)s)"
    )
    parser.add_argument("--user", metavar="NAME", help="only clusters of this user")
    parser.add_argument("--state", metavar="STATE", help="running, idle, finished or lost; several with commas")
    parser.add_argument("--search", metavar="TEXT", help="in names, ids, users and hosts")
    parser.add_argument("--account", metavar="NAME", help="the account, where it is not the usual one")
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="how many at most (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def run(args: argparse.Namespace) -> int:
    server = find_server(args.account)
    query = {"since": args.since, "user": args.user, "state": args.state, "search": args.search}
    items = list(server.items("clusters", limit=max(1, args.limit), **query))
    if args.json:
        write_json(items)
        return 0
    if not items:
        write(f"{_nothing(args)}\n")
        return 0
    open_output().table(COLUMNS, [_row(item) for item in items])
    if len(items) == args.limit:
        complain(f"the newest {len(items)}; --limit prints more.")
    return 0


def _nothing(args: argparse.Namespace) -> str:
    if args.user or args.state or args.search:
        return "No cluster matches. Leave out --user, --state or --search, or look further back with --since all."
    if args.since != "all":
        return f"No clusters since {args.since}. Look further back with --since all, or connect one: {CONNECT}"
    return f"No clusters. Connect one: {CONNECT}"


def _row(item: dict[str, Any]) -> list[str]:
    return [
        item["id"],
        escape(item["name"] or "–"),
        escape(item["user"]),
        item["state"],
        minute(item["start"]),
        units.duration(item["duration"] * 1e6),
        units.count(item["n_tasks"]),
        units.count(item["n_exceptions"]),
        units.count(item["threads"]),
        f"~{units.dollars(item['cost']['total'])}",
    ]
