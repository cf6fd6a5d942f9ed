"""Servers of this user on this machine: find one and its secret, or start one in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import psutil

from daskscope.errors import DaskscopeError, MissingExtra

# A server without sign-in stores its secret where only its user can read it.
#
# Every user of a machine can reach a loopback port, so such a server answers only to callers with its secret. The URL that
# ``daskscope serve`` prints contains it. While the server runs, the secret is also in a file that only its user can read, so
# that programs of the same user on the same machine need only the plain URL.

LOOPBACK = ("127.0.0.1", "::1", "localhost")
#: The parameter of a URL that contains the secret.
PARAMETER = "secret"
#: A process that reuses the ID of another one starts seconds later, because IDs are given in turn.
MAX_CLOCK_CHANGE_S = 1.0


def data_directory() -> Path:
    """Return the platform's directory for program data."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "daskscope"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "daskscope"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "daskscope"


def split_secret(url: str) -> tuple[str, str]:
    """Return a server's URL without its secret, and the secret; empty if there is none."""
    address, mark, query = url.partition("?")
    parameters = parse_qsl(query, keep_blank_values=True)
    secret = next((value for name, value in parameters if name == PARAMETER), "")
    if not secret:
        return url.rstrip("/"), ""
    others = urlencode([(name, value) for name, value in parameters if name != PARAMETER])
    return address.rstrip("/") + (mark + others if others else ""), secret


def with_secret(url: str, secret: str) -> str:
    """Return the URL of a page with the secret, for a browser that has not opened the server before."""
    return f"{url}?{urlencode({PARAMETER: secret})}"


def announce(url: str, secret: str) -> Path:
    """Write the secret of a running server to a file that only this user can read, and return its path."""
    path = _path(urlsplit(url).port)
    # One by one: mkdir gives the mode to the last directory only, and a server may store its data in the one above.
    for directory in (path.parent.parent, path.parent):
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Create a new file: an existing one would keep its permissions.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump({"pid": os.getpid(), "started": _started(os.getpid()), "secret": secret}, file)
    temporary.replace(path)
    return path


def withdraw(path: Path) -> None:
    """Remove the file of a server that stops, unless another server has the port by now."""
    if _read(path).get("pid") == os.getpid():
        path.unlink(missing_ok=True)


def running_servers() -> list[tuple[str, str]]:
    """Return the URL and the secret of each server of this user that runs on this machine without sign-in."""
    host = _host()
    try:
        paths = sorted((data_directory() / "servers").glob(f"{host}-*"))
    except (OSError, RuntimeError):
        return []
    urls = [f"http://127.0.0.1:{path.name.rpartition('-')[2]}" for path in paths]
    return [(url, secret) for url in urls if (secret := find_secret(url))]


def find_secret(url: str) -> str:
    """Return the secret of this user's server at a loopback URL; empty if there is none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ""
    if parts.hostname not in LOOPBACK:
        return ""
    try:
        found = _read(_path(port))
    except RuntimeError:
        # This user has no home directory, as in some containers.
        return ""
    secret, pid, started = found.get("secret"), found.get("pid"), found.get("started")
    # A server that was killed leaves its file, and then anybody can take its port, and its process ID: do not tell them the secret.
    is_running = isinstance(pid, int) and isinstance(started, int | float) and _is_same(_started(pid), started)
    return secret if isinstance(secret, str) and is_running else ""


def _path(port: int | None) -> Path:
    # With the name of the machine: the login nodes of a compute cluster often share home directories.
    return data_directory() / "servers" / f"{_host()}-{port}"


def _host() -> str:
    return re.sub(r"[^\w.-]", "_", socket.gethostname())


def _read(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _started(pid: int) -> float:
    """Return when a process of this user started, in seconds since 1970; 0 if there is none with this ID."""
    try:
        process = psutil.Process(pid)
        if process.username() != psutil.Process().username():
            return 0.0
        return float(process.create_time())
    except psutil.Error:
        return 0.0


def _is_same(started: float, announced: float) -> bool:
    # psutil adds the time of boot, which moves with corrections of the clock.
    return started > 0 and abs(started - announced) < MAX_CLOCK_CHANGE_S


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
