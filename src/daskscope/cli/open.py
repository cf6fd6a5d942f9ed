"""Show a recording or a report in the browser."""

from __future__ import annotations

import argparse
import secrets
import sys
import webbrowser
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from daskscope.cli.source import HELP, find_recording
from daskscope.errors import DaskscopeError
from daskscope.report.compressed import unpacked
from daskscope.report.document import report_page
from daskscope.report.source import check_report, holding

LOOPBACK = "127.0.0.1"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help=HELP)
    parser.add_argument("--port", type=int, default=0, metavar="N", help="port on loopback (default: a free one)")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")


def run(args: argparse.Namespace) -> int:
    page = load(Path(args.path))
    try:
        server = Server(page, args.port)
    except OSError as error:
        raise DaskscopeError(
            f"Port {args.port} cannot be used: {error.strerror}. Leave out --port for a free one."
        ) from None
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    sys.stderr.write("daskscope open: showing it until you press Ctrl-C\n")
    if not args.no_browser:
        webbrowser.open(server.url)
    with server:
        server.serve_forever()
    return 0


def load(path: Path) -> bytes:
    """The page of a recording; a report is one already."""
    with unpacked(path) as file:
        if holding(file) == "recording":
            return report_page(find_recording(str(path)), title=file.stem)
        check_report(file)
        return file.read_bytes()


class Server(ThreadingHTTPServer):
    """Serves one page under an address nobody can guess: other users of the machine reach loopback, too."""

    daemon_threads = True

    def __init__(self, page: bytes, port: int) -> None:
        self.page = page
        self.secret = f"/{secrets.token_urlsafe(16)}/"
        super().__init__((LOOPBACK, port), Handler)

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.server_port}{self.secret}"


class Handler(BaseHTTPRequestHandler):
    """Answers with the page, and with nothing else."""

    server: Server

    def do_GET(self) -> None:
        # A name that resolves to loopback would let a foreign page read this one.
        known = self.headers.get("Host", "") in {
            f"{name}:{self.server.server_port}" for name in (LOOPBACK, "localhost")
        }
        if not known or not secrets.compare_digest(self.path.encode(), self.server.secret.encode()):
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(self.server.page)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(self.server.page)

    def log_message(self, *_: Any) -> None:
        """Requests are nobody's business on the terminal."""
