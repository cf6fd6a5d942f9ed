"""Log in to a server: its token is kept in a file only you can read."""

from __future__ import annotations

import argparse
import getpass
import socket
import sys
import time
import webbrowser

from daskscope.cli.escape import escape
from daskscope.cli.output import write
from daskscope.client import credentials
from daskscope.client.credentials import Credential
from daskscope.client.server import NO_SERVER, Server, configured_url
from daskscope.errors import DaskscopeError, ServerError

WAITING = 428


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--server", metavar="URL", help="the server (default: the configured one)")
    parser.add_argument("--account", metavar="NAME", help="the account the token must be for")
    parser.add_argument("--token", metavar="TOKEN", help="a token that was made before; - reads it from standard input")
    parser.add_argument("--no-browser", action="store_true", help="only print the address to confirm at")


def run(args: argparse.Namespace) -> int:
    url = (args.server or configured_url()).rstrip("/")
    if not url:
        raise DaskscopeError(NO_SERVER)
    token = sys.stdin.readline().strip() if args.token == "-" else args.token
    credential = (
        _with_token(url, token, args.account) if token else _by_browser(url, args.account, browser=not args.no_browser)
    )
    if credential is None:
        write(f"{url} asks for no login. Connect a cluster with: daskscope.analytics.register()\n")
        return 0
    path = credentials.save(credential)
    write(f"Authentication successful: {escape(credential.user)} in {escape(credential.account)}\n")
    write(f"Credentials have been saved at {path}\n")
    return 0


def _with_token(url: str, token: str, account: str | None) -> Credential:
    me = Server(url, account or "", token).get("me")
    return Credential(url, me["account"], me["user"], token)


def _by_browser(url: str, account: str | None, *, browser: bool) -> Credential | None:
    server = Server(url)
    try:
        begun = server.call("POST", "device", body={"label": f"{_user()}@{socket.gethostname()}"})
    except ServerError as error:
        if error.status == 409:
            return None
        raise
    page = str(begun["verification_url"])
    write(f"Confirm the code {escape(begun['user_code'])} at\n{escape(page)}\n")
    sys.stdout.flush()
    # The server names it: nothing but a web page is opened.
    if browser and page.startswith(("http://", "https://")):
        webbrowser.open(page)
    deadline = time.monotonic() + begun["expires_in"]
    while time.monotonic() < deadline:
        time.sleep(begun["interval"])
        try:
            answer = server.call("POST", "device/token", body={"device_code": begun["device_code"]})
        except ServerError as error:
            # A server that is restarted in the meantime is no reason to begin again.
            if error.status in (0, 503, WAITING):
                continue
            raise
        if account and answer["account"] != account:
            raise DaskscopeError(
                f"This login was confirmed for {answer['account']}, not for {account}. Choose it in the browser."
            )
        return Credential(url, answer["account"], answer["user"], answer["token"])
    raise DaskscopeError("Nobody confirmed the login in time. Run daskscope login again.")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
