"""Run a server: open the archive, listen, print the address, and shut down in order."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any

import uvicorn

from daskscope.client.local_server import announce, withdraw
from daskscope.server.http.protocol import MAX_HEADERS, LimitedProtocol
from daskscope.server.http.routing import build_app
from daskscope.server.jobs import Jobs
from daskscope.server.routes import ROUTES, web
from daskscope.server.services import Services, open_services
from daskscope.server.settings import Settings, SettingsError
from daskscope.storage.people.sessions import offer_setup

logger = logging.getLogger("daskscope.server")

#: How long requests in progress may take after the server is told to stop.
GRACE_S = 10
#: Maximum connections. Beyond it new ones get a 503. A recorder keeps one open.
MAX_CONNECTIONS = 10_000
#: How long a connection may be idle. A recorder of a cluster that works posts every 5 s, and uvicorn's default of 5 s would close
#: its connection just before. Idle clusters post every 30 s: 5,000 connections that wait for them would be half of the maximum.
KEEP_ALIVE_S = 10
#: How long a thread keeps the interpreter lock if others wait. With Python's 5 ms, a request that needs the lock twenty times waits
#: for 100 ms beside a thread that computes: 99 % of acknowledgements took 280 ms, with 0.5 ms 110 ms.
SWITCH_S = 0.0005


class JsonFormatter(logging.Formatter):
    """Formats a log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


class Server(uvicorn.Server):
    """A server that shuts down in order. uvicorn's own repeats the signal, which skips everything after it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        services: Services = self.config.app.state.services  # type: ignore[union-attr]
        # Close live streams first: they would wait for the whole grace period.
        services.live.close()
        # A request in a thread cannot be cancelled. One that waits for PostgreSQL would keep the process alive.
        abort = asyncio.get_running_loop().call_later(GRACE_S, services.abort)
        try:
            await super().shutdown(sockets)
        finally:
            abort.cancel()


def file_limit(*, more: bool = False) -> int:
    """Return how many files and connections this process can open; with ``more``, after raising the limit."""
    try:
        import resource
    except ImportError:
        return 512
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS + 1_000
    if more and 0 <= soft < wanted:
        # The default limit is low.
        soft = min(wanted, hard) if hard >= 0 else wanted
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft if soft >= 0 else wanted


def make_server(services: Services) -> Server:
    """Return the server of these services, ready to run."""
    settings = services.settings
    config = uvicorn.Config(
        build_app([*ROUTES, *web.ROUTES], services),
        root_path=settings.root_path,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies or "127.0.0.1",
        ssl_certfile=settings.tls_cert or None,
        ssl_keyfile=settings.tls_key or None,
        timeout_graceful_shutdown=GRACE_S,
        timeout_keep_alive=KEEP_ALIVE_S,
        # Leave some for files; without any, nothing could be accepted or read.
        limit_concurrency=min(MAX_CONNECTIONS, int(file_limit() * 0.8)),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        # Not httptools, which uvicorn prefers: it accepts headers of any size.
        http=LimitedProtocol,
        h11_max_incomplete_event_size=MAX_HEADERS,
    )
    try:
        config.load()
    except OSError as error:
        # Includes ssl.SSLError.
        raise SettingsError(f"--tls-cert and --tls-key cannot be used: {error.strerror or error}.") from None
    return Server(config)


def set_up_logging(settings: Settings) -> None:
    handler = logging.StreamHandler(sys.stderr)
    plain = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonFormatter() if settings.log_format == "json" else plain)
    for name in ("daskscope.server", "uvicorn.error"):
        log = logging.getLogger(name)
        log.handlers, log.propagate = [handler], False
        log.setLevel(logging.INFO if name.startswith("daskscope") else logging.WARNING)
    # Its messages are lines of JSON already.
    plain_handler = logging.StreamHandler(sys.stderr)
    plain_handler.setFormatter(logging.Formatter("%(message)s"))
    audit = logging.getLogger("daskscope.audit")
    audit.handlers, audit.propagate = [plain_handler], False
    audit.setLevel(logging.INFO)


def listen(settings: Settings) -> socket.socket:
    """Return the listening socket before anything else is opened: a port in use is the most likely failure."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # Name TCP explicitly: asyncio disables Nagle's algorithm only then, and with it a response takes 40 ms more.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
        # From now on connections wait instead of being refused: the address is printed before the server is up.
        listening.listen(1024)
    except OSError as error:
        listening.close()
        raise SettingsError(
            f"{settings.host} port {settings.port} cannot be used: {error.strerror}. "
            "Choose another with --port, or 0 for a free one."
        ) from None
    return listening


def address(settings: Settings, port: int) -> str:
    """Return the URL of the server."""
    if settings.url:
        return settings.url if settings.url.endswith(settings.root_path) else settings.url + settings.root_path
    scheme = "https" if settings.tls_cert else "http"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    host = socket.gethostname() if settings.host in ("0.0.0.0", "::") else host
    return f"{scheme}://{host}:{port}{settings.root_path}"


def set_up_link(services: Services) -> str:
    """Return the one-time link that creates the first user; empty if there is a user."""
    if not services.settings.login:
        return ""
    with services.archive.write() as tx:
        secret = offer_setup(tx)
    return f"{services.url}/setup#{secret}" if secret else ""


def directory_warnings(settings: Settings) -> list[str]:
    """Return a warning if other users can read the data of a server whose secret is to keep them out."""
    is_open = os.name == "posix" and bool(settings.directory.stat().st_mode & 0o055)
    if settings.login or not is_open:
        return []
    return [
        f"Other users of this machine can read {settings.directory}, where the recordings are. Run: chmod 700 {settings.directory}"
    ]


@contextlib.contextmanager
def announced(services: Services) -> Iterator[None]:
    """Let programs of this user find the secret of a server without sign-in."""
    if services.local_secret is None:
        yield
        return
    try:
        path = announce(services.url, services.local_secret.value)
    except (OSError, RuntimeError) as error:
        # RuntimeError if this user has no home directory.
        logger.warning("cannot save the secret for programs on this machine, which need the printed URL: %s", error)
        yield
        return
    try:
        yield
    finally:
        withdraw(path)


def serve(settings: Settings, say: Callable[[str], None]) -> None:
    """Serve until told to stop; pass the address to ``say``."""
    set_up_logging(settings)
    sys.setswitchinterval(SWITCH_S)
    file_limit(more=True)
    listening = listen(settings)
    try:
        services = open_services(settings)
        server = make_server(services)
    except BaseException:
        listening.close()
        raise
    services.url = address(settings, listening.getsockname()[1])
    jobs = Jobs(services)
    for part in (services.prepared and f"catalog {services.prepared}", f"data in {settings.directory}"):
        if part:
            logger.info("%s", part)
    for warning in (*settings.warnings, *directory_warnings(settings)):
        logger.warning("%s", warning)
    # Before the URL is printed: a program that waits for that line can use the plain URL.
    with announced(services):
        say(services.entry_url)
        say(
            f"Record a cluster here: set DASK_DASKSCOPE__SERVER='{services.entry_url}', then call daskscope.analytics.register()."
        )
        link = set_up_link(services)
        if link:
            say(f"There is no user yet. Create the first one with this link, which works once: {link}")
        jobs.start()
        try:
            server.run(sockets=[listening])
        finally:
            jobs.stop()
            services.close()
            listening.close()
