"""Make users and accounts of a server, and say who belongs where."""

from __future__ import annotations

import argparse
import getpass
import sys
from urllib.parse import quote

from daskscope.cli.layout import Column
from daskscope.cli.output import open_output, write
from daskscope.cli.show import write_json
from daskscope.client.server import find_server
from daskscope.errors import DaskscopeError

ROLES = ("viewer", "member", "owner")


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = commands.add_parser("create", help="make a user (administrators of the server)")
    create.add_argument("name")
    create.add_argument("--email", default="")
    create.add_argument("--admin", action="store_true", help="may make accounts and users")
    create.add_argument("--password-stdin", action="store_true", help="read the password from standard input")
    account = commands.add_parser("account", help="make an account (administrators of the server)")
    account.add_argument("name")
    account.add_argument("--owner", default="", help="its first owner (default: you)")
    add = commands.add_parser("add", help="add a user to your account, or change their role (owners)")
    add.add_argument("name")
    add.add_argument("--role", choices=ROLES, default="member")
    remove = commands.add_parser("remove", help="take a user out of your account (owners)")
    remove.add_argument("name")
    listing = commands.add_parser("list", help="list the members of your account")
    listing.add_argument("--json", action="store_true", help="print as JSON")
    for command in (add, remove, listing):
        command.add_argument("--account", metavar="NAME", help="the account, where it is not the usual one")


def run(args: argparse.Namespace) -> int:
    if args.action == "create":
        body = {"name": args.name, "password": _password(args), "email": args.email, "admin": args.admin}
        find_server().call("POST", "users", body=body)
        write(f"made {args.name}. Add them to an account with: daskscope user add {args.name}\n")
    elif args.action == "account":
        made = find_server().call("POST", "accounts", body={"name": args.name, "owner": args.owner})
        write(f"made the account {made['name']}, owned by {made['owner']}\n")
    elif args.action == "add":
        find_server(args.account).call("PUT", f"members/{quote(args.name, safe='')}", body={"role": args.role})
        write(f"{args.name} is {args.role}\n")
    elif args.action == "remove":
        find_server(args.account).call("DELETE", f"members/{quote(args.name, safe='')}")
        write(f"{args.name} is no member any more\n")
    else:
        _list(args)
    return 0


def _password(args: argparse.Namespace) -> str:
    if args.password_stdin:
        return sys.stdin.readline().rstrip("\n")
    # Without a terminal getpass would warn, show what is typed, and end in a traceback.
    if not sys.stdin.isatty():
        raise DaskscopeError("There is no terminal to ask for a password on: pipe it in, with --password-stdin.")
    return getpass.getpass(f"Password for {args.name}, ten characters or more: ")


def _list(args: argparse.Namespace) -> None:
    members = find_server(args.account).get("members")["items"]
    if args.json:
        write_json(members)
        return
    columns = [Column("name", right=False), Column("role", right=False), Column("since", right=False)]
    open_output().table(columns, [[m["name"], m["role"], (m["since"] or "")[:10]] for m in members])
