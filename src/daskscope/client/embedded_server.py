"""Find a server of this user on this machine, or start one in a process of its own."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from daskscope.client.local_servers import running_servers, with_secret
from daskscope.errors import DaskscopeError, MissingExtra

#: Seconds for which a server runs on after its starter was killed: recorders notice that too, and send their last batches.
LINGER_S = 15
#: Standard input ends with the process that started the server, also if that is killed. A byte means: do not end with it.
START = """
import os, signal, sys, threading, time
from daskscope.cli.main import main

def end_with_starter(linger_s):
    if not os.read(0, 1):
        time.sleep(linger_s)
        os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=end_with_starter, args=(float(sys.argv.pop(1)),), daemon=True).start()
sys.exit(main(sys.argv[1:]))
"""
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

    def keep(self) -> None:
        """Let the server run on after the end of this process."""
        if self.process is not None and self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.write("k")
            self.process.stdin.flush()


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
        # Another program may have taken the port since. Any other failure happens again.
        if not port:
            raise
        return _start(data, 0)


def _start(data: str, port: int) -> EmbeddedServer:
    command = [sys.executable, "-c", START, str(LINGER_S), "serve", "--port", str(port)]
    command += ["--data", data] if data else []
    # A file: nobody reads what the server logs later, and it must not wait or fail for that.
    with tempfile.TemporaryFile("w+") as log:
        # In a session of its own: Ctrl-C must not stop it before the last batches have arrived.
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url:
            process.wait(STOP_S)
            log.seek(0)
            why = log.read().strip().splitlines()
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
