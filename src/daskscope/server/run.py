"""Run a server: open the storage, listen, say where, and end in order."""

from __future__ import annotations

import json
import logging
import secrets
import socket
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import uvicorn

from daskscope.server.app import application
from daskscope.server.jobs import Jobs
from daskscope.server.services import Services, open_services
from daskscope.server.settings import Settings, SettingsError
from daskscope.storage import schema
from daskscope.storage.database import insert
from daskscope.storage.tokens import digest
from daskscope.storage.users import any_user

logger = logging.getLogger("daskscope.server")

#: How long requests under way may take once the server is told to end.
GRACE_S = 10


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
    listening = socket.socket(family, socket.SOCK_STREAM)
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
        return settings.url
    scheme = "https" if settings.tls_cert else "http"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    host = socket.gethostname() if settings.host in ("0.0.0.0", "::") else host
    return f"{scheme}://{host}:{port}{settings.root_path}"


def set_up_link(services: Services) -> str:
    """The one-time link with which the first user is made; empty where there is one already."""
    if not services.settings.login:
        return ""
    with services.database.write() as connection:
        if any_user(connection):
            return ""
        secret = secrets.token_urlsafe(24)
        statement = insert(connection, schema.facts).values(name="setup", value=digest(secret))
        changed = {"value": digest(secret)}
        connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_=changed))
    return f"{services.url}/setup#{secret}"


def serve(settings: Settings, say: Callable[[str], None]) -> None:
    """Serve until told to end; ``say`` is told where."""
    set_up_logging(settings)
    listening = listen(settings)
    try:
        services = open_services(settings)
    except BaseException:
        listening.close()
        raise
    services.url = address(settings, listening.getsockname()[1])
    jobs = Jobs(services)
    config = uvicorn.Config(
        application(services),
        root_path=settings.root_path,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies or "127.0.0.1",
        ssl_certfile=settings.tls_cert or None,
        ssl_keyfile=settings.tls_key or None,
        timeout_graceful_shutdown=GRACE_S,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
    )
    server = uvicorn.Server(config)
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
