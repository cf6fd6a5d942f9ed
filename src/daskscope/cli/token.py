"""Create, list and revoke API tokens."""

from __future__ import annotations

import argparse
from typing import Any

from daskscope import units
from daskscope.analytics import create_api_token, revoke_api_token
from daskscope.cli.output import open_output, write, write_json, write_message
from daskscope.cli.terminal import Column, escape, local_minute
from daskscope.client.server import find_server, in_account
from daskscope.model.states import SCOPES


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = commands.add_parser("create", help="create a token and print it once")
    create.add_argument("--label", metavar="TEXT", default="", help="what the token is for")
    create.add_argument(
        "--scope",
        action="append",
        choices=SCOPES,
        help="what the token allows (repeatable; default: ingest, read and write)",
    )
    lifetime = create.add_mutually_exclusive_group()
    lifetime.add_argument("--days", type=int, metavar="N", help="let it expire after N days (default: 90)")
    lifetime.add_argument("--never-expires", action="store_true", help="create a token that never expires")
    listing = commands.add_parser("list", help="list your tokens")
    listing.add_argument("--all", action="store_true", help="include revoked and expired tokens")
    listing.add_argument("--json", action="store_true", help="print JSON")
    revoke = commands.add_parser("revoke", help="revoke a token")
    revoke.add_argument("identifier", metavar="ID", help="token ID, as listed")
    for command in (create, listing, revoke):
        command.add_argument("--account", metavar="NAME", help="account (default: your own)")


def run(args: argparse.Namespace) -> int:
    if args.action == "create":
        days = 0 if args.never_expires else args.days
        created = create_api_token(label=args.label, days_to_expire=days, scopes=args.scope, account=args.account)
        write_message("save this token now; it is not shown again.")
        if args.never_expires and created["expires"]:
            write_message(
                f"it expires on {created['expires'][:10]}, with the token you use now. "
                "Create one that never expires in the browser, under Settings."
            )
        write(f"{created['token']}\n")
    elif args.action == "revoke":
        revoked = revoke_api_token(identifier=args.identifier, account=args.account)
        also = [
            f"{units.counted(count, 'token')} {what}"
            for count, what in (
                (revoked["tokens"], "created with it"),
                (revoked["recorders"], "of recorders made from it"),
            )
            if count
        ]
        write(f"revoked {' and '.join([args.identifier, *also])}\n")
    else:
        _list(args)
    return 0


def _list(args: argparse.Namespace) -> None:
    items = find_server(args.account).get("tokens", include_inactive=str(args.all).lower())["items"]
    if args.json:
        write_json(items)
        return
    columns = [Column("id"), Column("token", right=False), Column("label", right=False, name=True), Column("scopes", right=False),
               Column("recorders"), Column("last used", right=False), Column("expires", right=False)]  # fmt: skip
    rows = [
        [str(i["id"]), f"{i['hint']}…", escape(i["label"]), " ".join(i["scopes"]), units.count(i["recorders"]),
         local_minute(i["used"], "never"), _expiry(i)]
        for i in items
    ]  # fmt: skip
    if rows:
        open_output().table(columns, rows)
    else:
        write(f"No tokens. Create one with: daskscope token create{in_account(args.account)}\n")


def _expiry(item: dict[str, Any]) -> str:
    if item["revoked"]:
        return "revoked"
    text = local_minute(item["expires"], "never")
    return f"{text} (soon)" if item["expires_soon"] else text
