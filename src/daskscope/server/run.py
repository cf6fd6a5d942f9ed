"""Run a server: open the storage, listen, say where, and end in order."""

from __future__ import annotations

import contextlib
import json
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any

import uvicorn

from daskscope.server.app import application
from daskscope.server.jobs import Jobs
from daskscope.server.services import Services, open_services
from daskscope.server.settings import Settings, SettingsError
from daskscope.storage.setup import offer_setup

logger = logging.getLogger("daskscope.server")

#: How long requests under way may take once the server is told to end.
GRACE_S = 10
#: Connections at once; beyond it the answer is 503, and those that are there go on. A recorder keeps one.
MOST_CONNECTIONS = 10_000


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

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
    """A server that ends in order: uvicorn's own sends itself the signal again, and nothing after it is run."""

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
        # Pages that wait for news would wait out the whole grace.
        self.config.app.state.services.live.close()  # type: ignore[union-attr]
        await super().shutdown(sockets)


def file_limit(*, more: bool = False) -> int:
    """How many files and connections this process may have open; with ``more``, after taking what it may take."""
    try:
        import resource
    except ImportError:
        return 512
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + 1_000
    if more and 0 <= soft < wanted:
        # Programs are given few by default.
        soft = min(wanted, hard) if hard >= 0 else wanted
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft if soft >= 0 else wanted


def make_server(services: Services) -> Server:
    """The server of these services, ready to run."""
    settings = services.settings
    config = uvicorn.Config(
        application(services),
        root_path=settings.root_path,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies or "127.0.0.1",
        ssl_certfile=settings.tls_cert or None,
        ssl_keyfile=settings.tls_key or None,
        timeout_graceful_shutdown=GRACE_S,
        # Some are left for files: without any, nothing could be accepted or read.
        limit_concurrency=min(MOST_CONNECTIONS, int(file_limit() * 0.8)),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
    )
    try:
        config.load()
    except OSError as error:
        # ssl.SSLError is one.
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


def listen(settings: Settings) -> socket.socket:
    """The socket, before anything is opened: a port in use is the likeliest thing to go wrong."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # Named as TCP: asyncio switches Nagle's algorithm off only then, and with it an answer takes 40 ms more.
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
    """Where people reach the server."""
    if settings.url:
        return settings.url if settings.url.endswith(settings.root_path) else settings.url + settings.root_path
    scheme = "https" if settings.tls_cert else "http"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    host = socket.gethostname() if settings.host in ("0.0.0.0", "::") else host
    return f"{scheme}://{host}:{port}{settings.root_path}"


def set_up_link(services: Services) -> str:
    """The one-time link with which the first user is made; empty where there is one already."""
    if not services.settings.login:
        return ""
    with services.database.write() as connection:
        secret = offer_setup(connection)
    return f"{services.url}/setup#{secret}" if secret else ""


def serve(settings: Settings, say: Callable[[str], None]) -> None:
    """Serve until told to end; ``say`` is told where."""
    set_up_logging(settings)
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
    say(services.url)
    link = set_up_link(services)
    if link:
        say(f"Nobody can log in yet. Make the first user with this link, which works once: {link}")
    jobs.start()
    try:
        server.run(sockets=[listening])
    finally:
        jobs.stop()
        services.close()
        listening.close()
