"""Sign in to a server and save its token in a file only you can read."""

from __future__ import annotations

import argparse
import getpass
import socket
import sys
import time
import webbrowser
from dataclasses import replace
from typing import Any

from daskscope.cli.output import write
from daskscope.cli.terminal import escape
from daskscope.client import credentials
from daskscope.client.credentials import Credential
from daskscope.client.local_server import split_secret
from daskscope.client.server import NO_SERVER, Server, configured_url
from daskscope.errors import DaskscopeError, ServerError
from daskscope.model.states import SCOPES

#: HTTP status while nobody has confirmed the code yet.
PENDING = 428


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--server", metavar="URL", help="server (default: the configured one)")
    parser.add_argument("--account", metavar="NAME", help="account to choose first in the browser")
    parser.add_argument("--token", metavar="TOKEN", help="save this token; - reads it from standard input")
    parser.add_argument("--create-tokens", action="store_true", help="ask for a token that can create further tokens")
    parser.add_argument("--no-browser", action="store_true", help="print the URL instead of opening it")


def run(args: argparse.Namespace) -> int:
    url = split_secret(args.server)[0] if args.server else configured_url()
    if not url:
        raise DaskscopeError(NO_SERVER)
    token = sys.stdin.readline().strip() if args.token == "-" else args.token
    credential = (
        _with_token(url, token)
        if token
        else _by_browser(url, args.account, browser=not args.no_browser, create_tokens=args.create_tokens)
    )
    if credential is None:
        write(f"Sign-in is off at {url}. Connect a cluster with: daskscope.analytics.register()\n")
        return 0
    _save(credential, args.account or "")
    return 0


def _save(credential: Credential, wanted: str) -> None:
    """Save a token and say what it is for. A default that is there already does not change."""
    mine = [str(item["name"]) for item in Server(credential.server, "", credential.token).get("me")["accounts"]]
    if wanted and wanted not in mine:
        raise DaskscopeError(f"This token is not for {wanted}. It is for: {', '.join(mine)}")
    if wanted and credential.all_accounts:
        credential = replace(credential, account=wanted)
    before = credentials.default_server()
    default = credentials.save(credential, mine)
    accounts = ", ".join(mine) if credential.all_accounts else credential.account
    write(f"Authentication successful: {escape(credential.user)} in {escape(accounts)}\n")
    write(f"Credentials have been saved at {credentials.path()}\n")
    if before and before != credential.server:
        write(f"Default server: {escape(credential.server)} (before: {escape(before)})\n")
    write(f"Default account: {escape(default)}\n")
    if credential.account != default:
        write(f"To change it: daskscope account use {escape(credential.account)}\n")


def _with_token(url: str, token: str) -> Credential:
    me = Server(url, "", token).get("me")
    return _credential(url, {**me, "token": token})


def _credential(url: str, answer: dict[str, Any]) -> Credential:
    is_wide = "accounts" in answer["scopes"]
    return Credential(
        url, answer["account"], answer["user"], answer["token"], answer["expires"] or "", all_accounts=is_wide
    )


def _by_browser(url: str, account: str | None, *, browser: bool, create_tokens: bool) -> Credential | None:
    server = Server(url)
    host = socket.gethostname()
    scopes = [scope for scope in SCOPES if scope != "tokens" or create_tokens]
    try:
        about = {"label": f"{_user()}@{host}", "host": host, "scopes": scopes, "account": account or ""}
        begun = server.call("POST", "device", body=about)
    except ServerError as error:
        if error.status == 409:
            return None
        raise
    page = str(begun["verification_url"])
    write(f"Enter the code {escape(begun['user_code'])} at\n{escape(page)}\n")
    sys.stdout.flush()
    # The server chooses the URL, so open nothing but a web page.
    if browser and page.startswith(("http://", "https://")):
        webbrowser.open(page)
    deadline = time.monotonic() + begun["expires_in"]
    while time.monotonic() < deadline:
        time.sleep(begun["interval"])
        try:
            answer = server.call("POST", "device/token", body={"device_code": begun["device_code"]})
        except ServerError as error:
            # Keep polling while the server restarts.
            if error.status in (0, 503, PENDING):
                continue
            raise
        return _credential(url, answer)
    raise DaskscopeError("The code expired before it was confirmed. Run daskscope login again.")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
