"""Say what is wrong with the address of a server, and what to type instead."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from daskscope.client.local_server import LOOPBACK
from daskscope.collector.delivery.poster import error_code
from daskscope.errors import ServerError

#: Schemes of Dask's schedulers.
COMMS = ("tcp", "tls", "ucx", "ucxx", "inproc", "ws", "wss")
SERVE = "Use the URL that daskscope serve prints, such as http://HOST:8780."
#: What Dask's schedulers send first to everyone who connects.
HANDSHAKE = "pickle-protocol"
#: A question that only finds out what is wrong takes this long at most.
PROBE_S = 3.0


def check_address(url: str) -> None:
    """Raise ``ServerError`` for an address that cannot belong to a server."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        raise ServerError(f"The server address {url} has no scheme. Type {_with_scheme(url)}")
    if scheme in COMMS:
        raise ServerError(f"{url} is the address of a Dask scheduler, not of a daskscope server. {SERVE}")
    if scheme not in ("http", "https") or not rest:
        raise ServerError(f"{url} is not the URL of a server: it has to begin with http:// or https://. {SERVE}")


def _with_scheme(url: str) -> str:
    host = urlsplit(f"//{url}").hostname or ""
    return f"http://{url}" if host in LOOPBACK else f"https://{url}, or http://{url} if it has no certificate"


def describe_failure(url: str, error: Exception) -> str:
    """Return why a server did not answer."""
    reason = getattr(error, "reason", None) or error
    if url.startswith("https:") and _is_no_tls(reason):
        return f"{url} does not use https. Type {_other_scheme(url)}"
    if isinstance(reason, ssl.SSLCertVerificationError):
        return (
            f"The certificate of {url} is not trusted ({reason.verify_message}). If it is from a private CA, set SSL_CERT_FILE to "
            "the file with its certificate."
        )
    if HANDSHAKE in str(error):
        return f"{url} is the address of a Dask scheduler, not of a daskscope server. {SERVE}"
    if isinstance(error, http.client.BadStatusLine) and not isinstance(error, http.client.RemoteDisconnected):
        return f"{url} is not a daskscope server: it does not speak HTTP. {SERVE}"
    if url.startswith("http:") and isinstance(reason, ConnectionError) and _uses_tls(url):
        return f"{url} uses https. Type {_other_scheme(url)}"
    return f"The server {url} cannot be reached ({reason}). Is it running? daskscope serve"


def _is_no_tls(reason: object) -> bool:
    if isinstance(reason, ssl.SSLError):
        return reason.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")
    # A server that waits for the end of a line, as Dask's dashboard does.
    return isinstance(reason, TimeoutError) and "handshake" in str(reason)


def _other_scheme(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{'http' if scheme == 'https' else 'https'}://{rest}"


def _uses_tls(url: str) -> bool:
    place = urlsplit(url)
    context = ssl.create_default_context()
    # Nothing is sent: this only finds out whether the other side speaks TLS.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection((place.hostname or "", place.port or 80), PROBE_S) as plain,
            context.wrap_socket(plain, server_hostname=place.hostname),
        ):
            return True
    except OSError:
        return False


def describe_answer(url: str, answer: str) -> str:
    """Return a sentence about the program that answers at an address and is not a daskscope server."""
    if url.startswith("http:") and answer.startswith("400") and _uses_tls(url):
        return f"{url} uses https. Type {_other_scheme(url)}"
    identity = _json_at(f"{url.removesuffix('/status')}/json/identity.json")
    if isinstance(identity, dict) and identity.get("type") == "Scheduler":
        return f"{url} is the dashboard of a Dask scheduler, not a daskscope server. {SERVE}"
    return find_server_above(url) or f"{url} is not a daskscope server: it answered {answer}. {SERVE}"


def find_server_above(url: str) -> str:
    """Return the server's address to type instead of the address of a page; empty if the address is not a page of a server."""
    above = url
    while urlsplit(above).path.strip("/"):
        above = above.rpartition("/")[0]
        if _is_server(above):
            return f"{url} is a page of a daskscope server. Type {above}"
    return ""


def _is_server(url: str) -> bool:
    # It asks to sign in. At the address of a page it finds nothing.
    return error_code(_read(f"{url}/api/v1/me")) not in ("", "not_found")


def _json_at(url: str) -> Any:
    try:
        return json.loads(_read(url))
    except ValueError:
        return None


def ignore_proxies() -> urllib.request.ProxyHandler:
    """Return a handler that ignores ``http_proxy`` and its like: recorders do, and a token must not pass an unexpected proxy."""
    return urllib.request.ProxyHandler({})


def _read(url: str) -> bytes:
    """Return the beginning of the response to a request without a token, errors included; empty without a response."""
    try:
        with urllib.request.build_opener(ignore_proxies()).open(url, timeout=PROBE_S) as response:
            found: bytes = response.read(100_000)
    except urllib.error.HTTPError as error:
        with error:
            found = error.read(100_000)
    except (OSError, ValueError, http.client.HTTPException):
        return b""
    return found
