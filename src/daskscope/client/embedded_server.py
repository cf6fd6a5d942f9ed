"""Find a server of this user on this machine, or start one in a process of its own."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
from dataclasses import dataclass

from daskscope.client.local_servers import running_servers, with_secret
from daskscope.errors import DaskscopeError, MissingExtra

START = "import sys; from daskscope.cli.main import main; sys.exit(main(sys.argv[1:]))"
#: The port of ``daskscope serve``, so that URLs stay valid after a restart.
PORT = 8780
STOP_S = 30.0
PACKAGES = ("uvicorn", "starlette", "sqlalchemy", "pyarrow")


@dataclass
class EmbeddedServer:
    """A server on this machine: its URL with the secret, and its process if it was started here."""

    url: str
    process: subprocess.Popen[str] | None = None

    def close(self) -> None:
        """Stop the server if it was started here. Its data stays on disk."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(STOP_S)


def find_or_start(data: str = "") -> EmbeddedServer:
    """Return a server of this user that runs on this machine; start one if there is none, or if it needs its own data."""
    if not data:
        for url, secret in running_servers():
            if _accepts(url):
                return EmbeddedServer(with_secret(f"{url}/", secret))
    return start(data)


def start(data: str = "") -> EmbeddedServer:
    """Start a server; ``data`` is its directory (default: the platform's directory for program data)."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtra(missing[0], "server", "A server on this machine")
    port = free_port()
    try:
        return _start(data, port)
    except DaskscopeError:
        # Another program may have taken the port since.
        if not port or free_port():
            raise
        return _start(data, 0)


def _start(data: str, port: int) -> EmbeddedServer:
    command = [sys.executable, "-c", START, "serve", "--port", str(port)]
    command += ["--data", data] if data else []
    # In a session of its own: Ctrl-C must not stop it before the last batches have arrived.
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None and process.stderr is not None
    url = process.stdout.readline().strip()
    if not url:
        process.wait(STOP_S)
        why = process.stderr.read().strip().splitlines()
        raise DaskscopeError(f"The server did not start: {why[-1] if why else 'it printed nothing'}")
    return EmbeddedServer(url, process)


def free_port() -> int:
    """Return the default port, or 0 (any) if it is in use."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", PORT))
        except OSError:
            return 0
    return PORT


def _accepts(url: str) -> bool:
    host, _, port = url.removeprefix("http://").rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=2.0):
            return True
    except OSError:
        return False
