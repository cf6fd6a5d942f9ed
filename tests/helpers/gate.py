"""A TCP proxy that a test can shut, so that it refuses and drops connections, or freeze, so that it forwards nothing."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit


class Gate:
    """Forward TCP connections to an address, or to the socket file of a local server, while open."""

    def __init__(self, endpoint: str) -> None:
        self.target = endpoint
        self._flowing = threading.Event()
        self._flowing.set()
        self._open = threading.Event()
        self._open.set()
        self._pairs: set[socket.socket] = set()
        #: Connections whose bytes are lost.
        self._lost: set[socket.socket] = set()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def shut(self) -> None:
        self._open.clear()
        for one in list(self._pairs):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def open(self) -> None:
        self._open.set()

    def freeze(self) -> None:
        """Keep and accept connections, but forward nothing, like a route to a host that is gone."""
        self._flowing.clear()

    def thaw(self) -> None:
        """Forward again what new connections send. The host behind those from before is another one now, and ignores them."""
        before = list(self._pairs)
        self._lost |= set(before)
        self._flowing.set()

    def close(self) -> None:
        self._flowing.set()
        self.shut()
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            if not self._open.is_set():
                near.close()
                continue
            try:
                far = self._connect()
            except OSError:
                near.close()
                continue
            self._pairs |= {near, far}
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    def _connect(self) -> socket.socket:
        if self.target.startswith("/"):
            far = socket.socket(socket.AF_UNIX)
            far.connect(self.target)
            return far
        parts = urlsplit(self.target)
        return socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 80), 5)

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._flowing.wait()
                if source not in self._lost:
                    target.sendall(data)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._pairs -= {source, target}


@contextlib.contextmanager
def gate(endpoint: str) -> Iterator[Gate]:
    proxy = Gate(endpoint)
    try:
        yield proxy
    finally:
        proxy.close()
