"""Manage the users, accounts and members of a server."""

from __future__ import annotations

import argparse
import getpass
import sys
from typing import Any
from urllib.parse import quote

from daskscope.cli.output import open_output, write, write_json, write_message
from daskscope.cli.terminal import Column, escape
from daskscope.client.server import find_server
from daskscope.errors import DaskscopeError
from daskscope.model.states import ROLES

#: What a server administrator does to a user.
SERVER_ACTIONS = {
    "disable": "end a user's sessions and tokens, and let them no longer sign in",
    "enable": "let a disabled user sign in again",
    "grant-admin": "make a user an administrator of the server",
    "remove-admin": "take administrator rights from a user",
    "reset-password": "end a user's password and print a link to choose a new one",
}
CHANGES: dict[str, tuple[dict[str, bool], str]] = {
    "disable": ({"disabled": True}, "can no longer sign in. Their sessions and tokens have ended."),
    "enable": ({"disabled": False}, "can sign in again. They need new tokens."),
    "grant-admin": ({"admin": True}, "now administers the server."),
    "remove-admin": ({"admin": False}, "no longer administers the server."),
}


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = commands.add_parser("create", help="create a user (server administrators)")
    create.add_argument("name", metavar="NAME", help="user name")
    create.add_argument("--email", metavar="ADDRESS", default="", help="email address")
    create.add_argument("--admin", action="store_true", help="let the user create accounts and users")
    create.add_argument("--password-stdin", action="store_true", help="read the password from standard input")
    account = commands.add_parser("account", help="create an account (server administrators)")
    account.add_argument("name", metavar="NAME", help="account name")
    account.add_argument("--owner", metavar="NAME", default="", help="first owner of the account (default: you)")
    add = commands.add_parser("add", help="add a member to your account, or change their role (owners)")
    add.add_argument("name", metavar="NAME", help="user name")
    add.add_argument("--role", choices=ROLES, default="member", help="role in the account (default: %(default)s)")
    remove = commands.add_parser("remove", help="remove a member from your account (owners)")
    remove.add_argument("name", metavar="NAME", help="user name")
    listing = commands.add_parser("list", help="list the members of your account")
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.add_argument("--everyone", action="store_true", help="list all users of the server (server administrators)")
    link = commands.add_parser("sign-in-link", help="create a link that signs a user in once, for an hour (owners)")
    link.add_argument("name", metavar="NAME", help="user name")
    for name, text in SERVER_ACTIONS.items():
        commands.add_parser(name, help=f"{text} (server administrators)").add_argument(
            "name", metavar="NAME", help="user name"
        )
    for command in (add, remove, listing, link):
        command.add_argument("--account", metavar="NAME", help="account (default: your own)")


def run(args: argparse.Namespace) -> int:
    if args.action == "create":
        body = {"name": args.name, "password": _password(args), "email": args.email, "admin": args.admin}
        find_server().call("POST", "users", body=body)
        write(f"Created user {args.name}. Add them to an account with: daskscope user add {args.name}\n")
    elif args.action == "account":
        created = find_server().call("POST", "accounts", body={"name": args.name, "owner": args.owner})
        write(f"Created account {created['name']}, owned by {created['owner']}.\n")
    elif args.action == "add":
        find_server(args.account).call("PUT", f"members/{quote(args.name, safe='')}", body={"role": args.role})
        write(f"{args.name} now has the role {args.role}.\n")
    elif args.action == "remove":
        find_server(args.account).call("DELETE", f"members/{quote(args.name, safe='')}")
        write(f"{args.name} is no longer a member.\n")
    elif args.action in CHANGES:
        change, result = CHANGES[args.action]
        find_server().call("PATCH", f"users/{quote(args.name, safe='')}", body=change)
        write(f"{args.name} {result}\n")
    elif args.action == "reset-password":
        _print_link(args.name, find_server().call("POST", f"users/{quote(args.name, safe='')}/password-reset"))
    elif args.action == "sign-in-link":
        _sign_in_link(args)
    else:
        _list(args)
    return 0


def _sign_in_link(args: argparse.Namespace) -> None:
    server = find_server(args.account)
    # An administrator can help any user, an owner the members of their account.
    who = "users" if server.get("me")["admin"] else "members"
    _print_link(args.name, server.call("POST", f"{who}/{quote(args.name, safe='')}/sign-in-link"))


def _print_link(name: str, link: dict[str, Any]) -> None:
    write_message(f"give this link to {name} only. It works once, within an hour.")
    write(f"{escape(link['url'])}\n")


def _password(args: argparse.Namespace) -> str:
    if args.password_stdin:
        return sys.stdin.readline().rstrip("\n")
    # Without a terminal, getpass warns, echoes the password and ends in a traceback.
    if not sys.stdin.isatty():
        raise DaskscopeError("There is no terminal to ask for a password. Pipe it in with --password-stdin.")
    return getpass.getpass(f"Password for {args.name} (at least 10 characters): ")


def _list(args: argparse.Namespace) -> None:
    if args.everyone:
        _list_everyone(args)
        return
    members = find_server(args.account).get("members")["items"]
    if args.json:
        write_json(members)
        return
    columns = [Column("name", right=False), Column("role", right=False), Column("since", right=False)]
    open_output().table(columns, [[m["name"], m["role"], (m["since"] or "")[:10]] for m in members])


def _list_everyone(args: argparse.Namespace) -> None:
    users = find_server().get("users")["items"]
    if args.json:
        write_json(users)
        return
    columns = [Column("name", right=False), Column("administrator", right=False), Column("disabled", right=False)]
    rows = [[u["name"], "yes" if u["admin"] else "", (u["disabled"] or "")[:10]] for u in users]
    open_output().table(columns, rows)
