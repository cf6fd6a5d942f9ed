"""Show your accounts on a server, or choose the default one."""

from __future__ import annotations

import argparse
from dataclasses import replace

from daskscope.cli.output import open_output, write
from daskscope.cli.terminal import Column, escape
from daskscope.client import credentials
from daskscope.client.server import find_server
from daskscope.errors import DaskscopeError


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", metavar="ACTION")
    use = commands.add_parser("use", help="make an account the default")
    use.add_argument("name", metavar="NAME", help="account, as listed")


def run(args: argparse.Namespace) -> int:
    server = find_server()
    # Without the default account: the user may have left it.
    me = replace(server, account="").get("me")
    names = [str(item["name"]) for item in me["accounts"]]
    if args.action != "use":
        columns = [
            Column("account", right=False, name=True),
            Column("role", right=False),
            Column("default", right=False),
        ]
        default = server.account or str(me["account"] or "")
        rows = [[escape(one["name"]), one["role"], "yes" if one["name"] == default else ""] for one in me["accounts"]]
        open_output().table(columns, rows)
        return 0
    if args.name not in names:
        raise DaskscopeError(f"You are not a member of {args.name}. Your accounts: {', '.join(names)}.")
    credentials.use_account(server.url, args.name)
    write(f"Default account: {escape(args.name)}\n")
    return 0
