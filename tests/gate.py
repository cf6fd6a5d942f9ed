"""A door in front of a server that a test can shut: connections are refused, and those there are end."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit


class Gate:
    """Passes TCP through to an address while it is open."""

    def __init__(self, endpoint: str) -> None:
        parts = urlsplit(endpoint)
        self.target = (parts.hostname or "127.0.0.1", parts.port or 80)
        self._open = threading.Event()
        self._open.set()
        self._pairs: set[socket.socket] = set()
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

    def close(self) -> None:
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
                far = socket.create_connection(self.target, 5)
            except OSError:
                near.close()
                continue
            self._pairs |= {near, far}
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._pairs -= {source, target}


@contextlib.contextmanager
def gate(endpoint: str) -> Iterator[Gate]:
    door = Gate(endpoint)
    try:
        yield door
    finally:
        door.close()
