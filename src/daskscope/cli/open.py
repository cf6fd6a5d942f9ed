"""Show a recording or a report in the browser."""

from __future__ import annotations

import argparse
import secrets
import sys
import webbrowser
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from daskscope.cli.output import write_message
from daskscope.cli.terminal import HELP
from daskscope.client.analyse import find_recording
from daskscope.errors import DaskscopeError
from daskscope.report.document import report_page
from daskscope.report.html import frame_html, frame_policy, guard, sandbox_policy
from daskscope.report.source import check_report, content_kind, unpacked

LOOPBACK = "127.0.0.1"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help=HELP)
    parser.add_argument("--port", type=int, default=0, metavar="N", help="port on 127.0.0.1 (default: a free one)")
    parser.add_argument("--no-browser", action="store_true", help="print the URL instead of opening it")


def run(args: argparse.Namespace) -> int:
    page = load(args.path)
    try:
        server = Server(page, args.port)
    except OSError as error:
        raise DaskscopeError(
            f"Port {args.port} cannot be used: {error.strerror}. Leave out --port to use a free one."
        ) from None
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    write_message("press Ctrl-C to stop", "daskscope open")
    if not args.no_browser:
        webbrowser.open(server.url)
    with server:
        server.serve_forever()
    return 0


@dataclass(frozen=True)
class Page:
    """An HTML page, and whether somebody else wrote it."""

    data: bytes
    title: str
    is_foreign: bool


def load(path: str | Path) -> Page:
    """Return the page of a recording; a report already is one, but may contain any script."""
    with unpacked(Path(path)) as file:
        if content_kind(file) == "recording":
            return Page(report_page(find_recording(path), title=file.stem), file.stem, is_foreign=False)
        check_report(file)
        return Page(file.read_bytes(), file.stem, is_foreign=True)


class Server(ThreadingHTTPServer):
    """Serve one page at a secret URL: other users of this machine can reach 127.0.0.1, too."""

    daemon_threads = True

    def __init__(self, page: Page, port: int) -> None:
        self.secret = f"/{secrets.token_urlsafe(16)}/"
        #: By path: the page, and its policy if it is in a sandbox or around one.
        self.pages: dict[str, tuple[bytes, str]] = {self.secret: (page.data, "")}
        if page.is_foreign:
            inside = f"{self.secret}page"
            self.pages = {
                self.secret: (frame_html(inside, page.title).encode(), frame_policy()),
                inside: (b"".join(guard(page.data)), sandbox_policy()),
            }
        super().__init__((LOOPBACK, port), Handler)

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.server_port}{self.secret}"


class Handler(BaseHTTPRequestHandler):
    """Answer the secret URL with the page and everything else with 404."""

    server: Server

    def do_GET(self) -> None:
        # Check the Host header: a foreign page could use a name that resolves to 127.0.0.1 (DNS rebinding).
        known = self.headers.get("Host", "") in {
            f"{name}:{self.server.server_port}" for name in (LOOPBACK, "localhost")
        }
        found = [
            page
            for path, page in self.server.pages.items()
            if secrets.compare_digest(self.path.encode(), path.encode())
        ]
        if not known or not found:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        data, policy = found[0]
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        if policy:
            self.send_header("Content-Security-Policy", policy)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Log nothing: requests would clutter the terminal."""
