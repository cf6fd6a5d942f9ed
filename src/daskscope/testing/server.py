"""A server to send frames to, for tests of what sends them."""

from __future__ import annotations

import http.server
import threading
from typing import Any

from daskscope.wire.decode import read_frame


class Server:
    """A real server on this machine that answers as it is told."""

    def __init__(self, port: int = 0) -> None:
        self.answers: list[tuple[int, dict[str, str], bytes]] = []
        self.default: tuple[int, dict[str, str], bytes] = (200, {}, b"ok")
        #: Which frames arrived: their clusters and their numbers.
        self.frames: list[tuple[str, int]] = []
        self.posts: list[tuple[str, str]] = []
        self.connections: set[Any] = set()
        self.asked = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                outer.connections.add(self.client_address)
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.posts.append((self.path, self.headers["Authorization"]))
                outer.asked.set()
                outer.go_on.wait(60)
                status, headers, text = outer.answers.pop(0) if outer.answers else outer.default
                if status == 200:
                    outer.take(body)
                if status:
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(text)))
                    self.end_headers()
                    self.wfile.write(text)
                if not status or headers.get("X-Close"):
                    self.close_connection = True

            def log_message(self, *args: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/base/"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def sequences(self) -> list[int]:
        return [sequence for _, sequence in self.frames]

    def take(self, body: bytes) -> None:
        offset = 0
        while offset < len(body):
            frame = read_frame(body, offset)
            self.frames.append((frame.header.cluster, frame.header.sequence))
            offset += frame.size

    def close(self) -> None:
        self.go_on.set()
        self.server.shutdown()
        self.server.server_close()
