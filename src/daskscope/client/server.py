"""Talking to a daskscope server from a notebook or a command line."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import dask.config

from daskscope.client import credentials
from daskscope.errors import ServerError

TIMEOUT = 30.0
#: A report of a million tasks takes seconds to upload and to render.
UPLOAD_TIMEOUT = 300.0
PAGE = 500

NO_SERVER = (
    "No daskscope server is configured. Start one with daskscope serve, then log in with daskscope login --server URL, "
    "or set DASK_DASKSCOPE__SERVER=URL."
)


@dataclass(frozen=True)
class Server:
    """One server, and the token to use there."""

    url: str
    account: str = ""
    token: str = field(default="", repr=False)

    def get(self, path: str, **query: Any) -> Any:
        return self.call("GET", path, query)

    def items(self, path: str, limit: int | None = None, **query: Any) -> Iterator[dict[str, Any]]:
        """Every item of a list, page by page."""
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
        """Ask the server; the answer's JSON, or ``ServerError`` with what to do next."""
        if body is not None:
            data = json.dumps(body).encode()
        answer = self.fetch(path, query, method=method, data=data, content=content, timeout=timeout)
        try:
            return json.loads(answer)
        except ValueError:
            raise ServerError(f"{self.url} is no daskscope server: it does not answer in JSON.") from None

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
        """Ask the server; the answer as it is."""
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
                answer: bytes = response.read()
                return answer
        except urllib.error.HTTPError as error:
            raise _refused(error, self.url) from None
        except (ValueError, http.client.InvalidURL) as error:
            raise ServerError(f"{self.url!r} is no address of a server: {error}.") from None
        except (OSError, http.client.HTTPException) as error:
            # A connection that ends in mid-answer is an HTTPException, and as little of a bug as one that is refused.
            reason = getattr(error, "reason", None) or error
            raise ServerError(
                f"The server {self.url} cannot be reached ({reason}). Is it running? daskscope serve"
            ) from None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect is not followed: it would take the token to whatever address the answer names, and make a GET of a POST."""

    def redirect_request(self, *_: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects)


def _refused(error: urllib.error.HTTPError, url: str) -> ServerError:
    with error:
        text = error.read(100_000)
    if 300 <= error.code < 400:
        moved = str(error.headers.get("Location", "somewhere else")).partition("/api/v1/")[0]
        return ServerError(f"{url} says that it is at {moved} now. Use that address: daskscope login --server {moved}")
    try:
        message = str(json.loads(text)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        message = f"{url} answered {error.code} {error.reason}: is it a daskscope server?"
    return ServerError(message, error.code)


def configured_url() -> str:
    """The server of dask's configuration, else that of the last login; empty where there is none."""
    return str(dask.config.get("daskscope.server", None) or credentials.default_server()).rstrip("/")


def find_server(account: str | None = None) -> Server:
    """The configured server with the token for an account."""
    url = configured_url()
    if not url:
        raise ServerError(NO_SERVER)
    account = account or dask.config.get("daskscope.account", None) or ""
    token = credentials.find(url, account)
    if account and not token and (others := credentials.accounts(url)):
        # Whoever is logged in is told so: "log in first" would sound as if that had been lost.
        raise ServerError(
            f"You are logged in to {' and '.join(others)}, not to {account}. Log in to it: daskscope login --account {account}"
        )
    return Server(url, account, token)
