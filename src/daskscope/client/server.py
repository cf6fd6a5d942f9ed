"""Call a daskscope server from Python or the command line: find it, send requests, download recordings."""

from __future__ import annotations

import http.client
import json
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import dask.config

from daskscope.client import credentials
from daskscope.client.listing import Listing
from daskscope.client.local_server import find_secret, split_secret
from daskscope.client.server_address import (
    check_address,
    describe_answer,
    describe_failure,
    find_server_above,
    ignore_proxies,
)
from daskscope.collector.delivery.poster import error_code
from daskscope.errors import DaskscopeError, ServerError
from daskscope.model.recording import Recording
from daskscope.report.source import unpacked
from daskscope.wire.file import read_recording

COLUMNS = ("id", "title", "user", "created", "duration", "n_tasks", "n_errors", "private", "url")


def upload_report(
    server: Server,
    data: bytes,
    *,
    filename: str,
    private: bool | None = None,
    title: str = "",
    tags: Sequence[str] = (),
    days_to_expire: int | None = None,
) -> dict[str, Any]:
    """Upload a recording or an HTML report; return the server's description of it, with its ``url``."""
    query = {
        "filename": Path(filename).name[:200],
        "title": title[:200],
        "visibility": {None: "", True: "private", False: "public"}[private],
        "tags": ",".join(tags),
        "days_to_expire": days_to_expire,
    }
    result: dict[str, Any] = server.call(
        "POST", "reports", query, data=data, content="application/octet-stream", timeout=UPLOAD_TIMEOUT
    )
    return result


def describe_upload(report: dict[str, Any]) -> str:
    """Return the lines to print after an upload: the link, and who can see the report."""
    account = report["account"]
    audience = f"members of {account}" if report["private"] else f"anyone with the link (account {account})"
    return f"Performance Report Available at: {report['url']}\nVisible to {audience}.\n"


def upload_file(path: Path, account: str | None = None, **options: Any) -> dict[str, Any]:
    """Upload a file: a recording, a daskscope report, or a report written by Dask."""
    try:
        with unpacked(path) as file:
            data, name = file.read_bytes(), file.name
    except OSError as error:
        raise DaskscopeError(f"{path} cannot be read: {error.strerror}.") from None
    return upload_report(find_server(account), data, filename=name, **options)


def list_performance_reports(account: str | None = None) -> Listing:
    """List the reports of an account, newest first: dicts with ``private``, ``filename``, ``url`` and more."""
    items = find_server(account).items("reports")
    return Listing(items, COLUMNS, "No reports yet. Create one: with daskscope.performance_report(): ...")


TIMEOUT = 30.0
#: A report of a million tasks takes seconds to upload and to render.
UPLOAD_TIMEOUT = 300.0
#: A query may take 30 s, and waits until the server has memory for it.
SQL_TIMEOUT = 120.0
PAGE = 500

NO_SERVER = (
    "No daskscope server is configured. Start one with daskscope serve, then sign in with daskscope login --server URL, "
    "or set DASK_DASKSCOPE__SERVER=URL."
)


@dataclass(frozen=True)
class Server:
    """A server with an account and its token."""

    url: str
    account: str = ""
    token: str = field(default="", repr=False)

    def get(self, path: str, **query: Any) -> Any:
        """Return the JSON of a GET request."""
        return self.call("GET", path, query)

    def items(self, path: str, limit: int | None = None, **query: Any) -> Iterator[dict[str, Any]]:
        """Yield every item of a list, page by page."""
        cursor, left = "", limit
        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            page = self.get(path, **query, limit=size, cursor=cursor)
            yield from page["items"]
            cursor = page["next"] or ""
            left = left - len(page["items"]) if left is not None else None
            if not cursor:
                return

    def call(
        self,
        method: str,
        path: str,
        query: dict[str, Any] | None = None,
        body: Any = None,
        *,
        data: bytes | None = None,
        content: str = "application/json",
        timeout: float = TIMEOUT,
    ) -> Any:
        """Send a request and return the JSON of the response; raise ``ServerError`` if it fails."""
        if body is not None:
            data = json.dumps(body).encode()
        response = self.fetch(path, query, method=method, data=data, content=content, timeout=timeout)
        try:
            return json.loads(response)
        except ValueError:
            raise ServerError(describe_answer(self.url, "with a page")) from None

    def fetch(
        self,
        path: str,
        query: dict[str, Any] | None = None,
        *,
        method: str = "GET",
        data: bytes | None = None,
        content: str = "application/json",
        timeout: float = TIMEOUT,
    ) -> bytes:
        """Send a request and return the body of the response; raise ``ServerError`` if it fails."""
        check_address(self.url)
        parameters = {name: value for name, value in (query or {}).items() if value not in (None, "")}
        if self.account:
            parameters["account"] = self.account
        address = f"{self.url.rstrip('/')}/api/v1/{path}"
        if parameters:
            address += "?" + urllib.parse.urlencode(parameters)
        headers = {"Content-Type": content} if data is not None else {}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        try:
            request = urllib.request.Request(address, data, headers, method=method)
            with _opener.open(request, timeout=timeout) as response:
                body: bytes = response.read()
                return body
        except urllib.error.HTTPError as error:
            raise _refused(error, self.url) from None
        except (ValueError, http.client.InvalidURL) as error:
            raise ServerError(f"{self.url!r} is not the URL of a server: {error}.") from None
        except (OSError, http.client.HTTPException) as error:
            # A connection that ends during the response raises HTTPException; treat it like a refused one.
            raise ServerError(describe_failure(self.url, error)) from None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Do not follow redirects: they would send the token to another address, and turn a POST into a GET."""

    def redirect_request(self, *_: Any) -> None:
        return None


_opener = urllib.request.build_opener(ignore_proxies(), _NoRedirects)


def _refused(error: urllib.error.HTTPError, url: str) -> ServerError:
    with error:
        text = error.read(100_000)
    moved, path, _ = str(error.headers.get("Location", "")).partition("/api/v1/")
    # Other programs redirect to a sign-in page of their own.
    if 300 <= error.code < 400 and path and "?" not in moved:
        return ServerError(f"{url} has moved to {moved}. Sign in there: daskscope login --server {moved}")
    try:
        message = str(json.loads(text)["error"]["message"])
        message = (find_server_above(url) if error.code == 404 else "") or message
    except (ValueError, KeyError, TypeError):
        message = describe_answer(url, f"{error.code} {error.reason}")
    return ServerError(message, error.code, error_code(text))


def configured_url() -> str:
    """Return the server of Dask's configuration, else of the last sign-in, without its secret; empty if there is none."""
    return _configured()[0]


def _configured() -> tuple[str, str]:
    return split_secret(str(dask.config.get("daskscope.server", None) or credentials.default_server()))


def find_token(url: str, account: str = "") -> str:
    """Return the token for the configured server, or its secret if it has no sign-in; empty if there is neither."""
    configured, secret = _configured()
    if secret and url == configured:
        return secret
    return credentials.find(url, account) or find_secret(url)


def chosen_account(url: str, account: str | None = None) -> str:
    """Return the given account, else the one in Dask's configuration, else the default of the sign-in; empty without any."""
    return account or dask.config.get("daskscope.account", None) or credentials.default_account(url)


def in_account(account: str | None) -> str:
    """Return the option that a suggested command needs to use the same account; empty if none was given."""
    return f" --account {account}" if account else ""


def find_server(account: str | None = None) -> Server:
    """Return the configured server with the token for an account."""
    url = configured_url()
    if not url:
        raise ServerError(NO_SERVER)
    account = chosen_account(url, account)
    token = find_token(url, account)
    if account and not token and (others := credentials.accounts(url)):
        # Name the accounts: a plain "sign in first" would suggest that the sign-in was lost.
        raise ServerError(
            f"You have tokens for {' and '.join(others)}, not for {account}. Sign in to all your accounts: daskscope login"
        )
    return Server(url, account, token)


def server_at(url: str, account: str = "") -> Server:
    """Return a server given by its URL. Another one than the configured server gets its own token or secret only."""
    url, secret = split_secret(url)
    if url == configured_url() and not secret:
        return find_server(account)
    return Server(url, account, secret or credentials.find_stored(url, account) or find_secret(url))


def ask_sql(
    query: str, cluster_id: str | None = None, *, days: float = 0.0, account: str | None = None
) -> dict[str, Any]:
    """Return the response of the configured server to a SQL query."""
    body = {"query": query, "cluster": cluster_id or "", "days": days}
    result: dict[str, Any] = find_server(account).call("POST", "sql", body=body, timeout=SQL_TIMEOUT)
    return result


def download_recording(cluster_id: str, account: str | None = None, *, url: str = "") -> Recording:
    """Return the recording of a cluster, downloaded from the configured server or from the one at ``url``."""
    server = server_at(url, account or "") if url else find_server(account)
    data = server.fetch(f"clusters/{quote(cluster_id, safe='')}/recording", timeout=UPLOAD_TIMEOUT)
    with tempfile.TemporaryDirectory(prefix="daskscope-") as directory:
        path = Path(directory) / "recording.daskscope"
        path.write_bytes(data)
        return replace(read_recording(path), source=cluster_id)
