"""An HTTP proxy in front of a server that a test can make answer as ingress controllers do while they are reconfigured."""

from __future__ import annotations

import http.client
import http.server
import threading
from types import TracebackType
from typing import Any


class HttpProxy:
    """Forwards requests to a port on loopback, unless it is told to answer itself."""

    def __init__(self, port: int) -> None:
        self.port = port
        #: Status and body of the proxy's own answer; None to forward.
        self.answer: tuple[int, bytes] | None = None
        #: Paths of the requests the proxy answered itself.
        self.answered: list[str] = []
        self._go_on = threading.Event()
        self._go_on.set()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def forward(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                # Longer than recorders wait for a reply.
                outer._go_on.wait(120)
                if outer.answer is not None:
                    outer.answered.append(self.path)
                    return self.reply(*outer.answer, {"Content-Type": "text/html"})
                connection = http.client.HTTPConnection("127.0.0.1", outer.port, timeout=60)
                try:
                    connection.request(self.command, self.path, body, dict(self.headers))
                    response = connection.getresponse()
                    names = ("Content-Type", "Retry-After", "Daskscope-Limits")
                    kept = {name: value for name in names if (value := response.headers.get(name))}
                    return self.reply(response.status, response.read(), kept)
                except OSError:
                    return self.reply(502, b"<html>bad gateway", {})
                finally:
                    connection.close()

            def reply(self, status: int, body: bytes, headers: dict[str, str]) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_DELETE = forward

            def log_message(self, *args: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def hang(self) -> None:
        """Accept requests and answer none."""
        self._go_on.clear()

    def go_on(self) -> None:
        self._go_on.set()

    def __enter__(self) -> HttpProxy:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._go_on.set()
        self._server.shutdown()
        self._server.server_close()
