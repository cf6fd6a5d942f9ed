"""Make, list and revoke tokens for programs."""

from __future__ import annotations

import argparse

from daskscope import units
from daskscope.cli.escape import escape
from daskscope.cli.layout import Column
from daskscope.cli.moment import minute
from daskscope.cli.output import complain, open_output, write
from daskscope.cli.show import write_json
from daskscope.client.server import find_server
from daskscope.client.tokens import create_api_token, revoke_api_token

SCOPES = ("ingest", "read", "write", "admin")


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = commands.add_parser("create", help="make a token; its secret is printed once")
    create.add_argument("--label", default="", help="what it is for")
    create.add_argument(
        "--scope",
        action="append",
        choices=SCOPES,
        help="what it may do, may be repeated (default: all but admin)",
    )
    create.add_argument("--days", type=int, metavar="N", help="days until it expires (default: never)")
    listing = commands.add_parser("list", help="list your tokens")
    listing.add_argument("--all", action="store_true", help="also those that are revoked or expired")
    listing.add_argument("--json", action="store_true", help="print as JSON")
    revoke = commands.add_parser("revoke", help="revoke a token")
    revoke.add_argument("identifier", metavar="ID", help="its number, as listed")


def run(args: argparse.Namespace) -> int:
    if args.action == "create":
        made = create_api_token(label=args.label, days_to_expire=args.days, scopes=args.scope)
        complain("this is shown only now; keep it somewhere safe.")
        write(f"{made['token']}\n")
    elif args.action == "revoke":
        # A server of before says nothing of recorders.
        recorders = revoke_api_token(identifier=args.identifier).get("recorders", 0)
        also = f" and {units.counted(recorders, 'token')} of recorders made from it" if recorders else ""
        write(f"revoked {args.identifier}{also}\n")
    else:
        _list(args)
    return 0


def _list(args: argparse.Namespace) -> None:
    items = find_server().get("tokens", include_inactive=str(args.all).lower())["items"]
    if args.json:
        write_json(items)
        return
    columns = [Column("id"), Column("token", right=False), Column("label", right=False, name=True), Column("scopes", right=False),
               Column("recorders"), Column("last used", right=False), Column("expires", right=False)]  # fmt: skip
    rows = [
        [str(i["id"]), f"{i['hint']}…", escape(i["label"]), " ".join(i["scopes"]), units.count(i.get("recorders", 0)),
         minute(i["used"], "never"), "revoked" if i["revoked"] else minute(i["expires"], "never")]
        for i in items
    ]  # fmt: skip
    if rows:
        open_output().table(columns, rows)
    else:
        write("No tokens. Make one with: daskscope token create\n")
