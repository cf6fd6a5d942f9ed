"""List who did what on a server: sign-ins, tokens, members, shares and deletions."""

from __future__ import annotations

import argparse
import json

from daskscope.cli.output import open_output, write, write_json
from daskscope.cli.terminal import Column, escape, local_minute
from daskscope.client.server import find_server
from daskscope.model.states import AUDIT_ACTIONS


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--action", choices=AUDIT_ACTIONS, metavar="ACTION", default="", help="list only this action")
    parser.add_argument("--limit", type=int, metavar="N", default=100, help="number of events (default: %(default)s)")
    parser.add_argument("--account", metavar="NAME", help="account (default: your own)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    items = find_server(args.account).get("audit", action=args.action, limit=args.limit)["items"]
    if args.json:
        write_json(items)
        return 0
    names = ("time", "user", "action", "subject", "address", "details")
    columns = [Column(name, right=False, name=name == "subject") for name in names]
    rows = [
        [
            local_minute(item["time"], ""),
            *(escape(item[name]) for name in ("user", "action", "subject", "address")),
            escape(json.dumps(item["details"])) if item["details"] else "",
        ]
        for item in items
    ]
    if rows:
        open_output().table(columns, rows)
    else:
        write("No events.\n")
    return 0
