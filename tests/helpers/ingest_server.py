"""A fake server for tests of senders."""

from __future__ import annotations

import http.server
import json
import threading
from typing import Any

from daskscope.wire.decode import Frame, read_frame


def error_of(code: str) -> bytes:
    """Return the body of an error response of daskscope's API."""
    return json.dumps({"error": {"code": code, "message": "A sentence."}}, separators=(",", ":")).encode()


def frames_in(body: bytes) -> list[Frame]:
    frames, offset = [], 0
    while offset < len(body):
        frames.append(read_frame(body, offset))
        offset += frames[-1].size
    return frames


class Server:
    """An HTTP server on loopback that records frames and sends prepared responses."""

    def __init__(self, port: int = 0) -> None:
        self.answers: list[tuple[int, dict[str, str], bytes]] = []
        self.default: tuple[int, dict[str, str], bytes] = (200, {}, b"ok")
        #: Cluster and sequence number of each received frame.
        self.frames: list[tuple[str, int]] = []
        self.posts: list[tuple[str, str]] = []
        #: The bodies of accepted posts.
        self.bodies: list[bytes] = []
        #: Frames of a body that are too many for this server; 0 means unlimited.
        self.max_frames = 0
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
                if outer.max_frames and len(frames_in(body)) > outer.max_frames:
                    status, headers, text = 413, {}, error_of("too_large")
                if status == 200:
                    outer.receive(body)
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

    def receive(self, body: bytes) -> None:
        """Store the cluster and sequence number of each frame in a body."""
        self.bodies.append(body)
        self.frames += [(frame.header.cluster, frame.header.sequence) for frame in frames_in(body)]

    def close(self) -> None:
        self.go_on.set()
        self.server.shutdown()
        self.server.server_close()
