"""What holds for every test, and the real servers any of them may ask for."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.archive import Archive
    from tests.services import Hosting, Postgres

    from daskscope.storage.blobs import BlobStore

# The collector's guard must not hide our own bugs from us; processes started by a test inherit it.
os.environ.setdefault("DASKSCOPE_STRICT", "1")

# Nothing of the server is imported above: these tests also run where only the recorder is installed.


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server."""
    from tests import services

    with services.postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """A database of its own, with an empty catalog."""
    url = postgres.prepared()
    yield url
    postgres.give_back(url)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from daskscope.storage.database import Database
    from daskscope.storage.migrate import prepare

    path = tmp_path_factory.mktemp("template") / "catalog.sqlite"
    database = Database(str(path))
    prepare(database)
    database.close()
    return path


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """A file of its own, with an empty catalog."""
    shutil.copy(sqlite_template, tmp_path / "catalog.sqlite")
    return f"sqlite:///{tmp_path}/catalog.sqlite"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """An empty catalog, on each of the databases in turn."""
    url: str = request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")
    return url


@pytest.fixture(params=["sqlite", "postgresql"], scope="module")
def database_kind(request: pytest.FixtureRequest) -> str:
    """Each of the databases in turn; a module has all its tests on the one before the other."""
    kind: str = request.param
    return kind


@pytest.fixture
def hosted(database_kind: str, request: pytest.FixtureRequest) -> Iterator[Hosting]:
    """Makes servers in this process, on each of the databases in turn."""
    yield from _hosting(database_kind, request)


@pytest.fixture(scope="module")
def hosted_once(database_kind: str, request: pytest.FixtureRequest) -> Iterator[Hosting]:
    """The same, for servers that the tests of a module share."""
    yield from _hosting(database_kind, request)


def _hosting(kind: str, request: pytest.FixtureRequest) -> Iterator[Hosting]:
    from tests.services import Hosting

    hosting = Hosting(request.getfixturevalue("sqlite_template"))
    with pytest.MonkeyPatch.context() as patch:
        if kind == "postgresql":
            hosting.postgres = request.getfixturevalue("postgres")
            # A server that ends waits for its relay to look up, up to a second: with a hundred servers, a minute.
            patch.setattr("daskscope.server.relay.LOOK_S", 0.02)
        yield hosting
    hosting.close()


def _archive(url: str, directory: Path) -> Iterator[Archive]:
    from tests.archive import Archive

    from daskscope.storage.blobs import LocalStore
    from daskscope.storage.database import Database

    database = Database(url)
    yield Archive(database, LocalStore(directory))
    database.close()


@pytest.fixture
def archive(database_url: str, tmp_path: Path) -> Iterator[Archive]:
    """A server's storage, on each of the databases in turn."""
    yield from _archive(database_url, tmp_path / "blobs")


@pytest.fixture
def sqlite_archive(sqlite_url: str, tmp_path: Path) -> Iterator[Archive]:
    """A server's storage, on the default database."""
    yield from _archive(sqlite_url, tmp_path / "blobs")


@pytest.fixture(scope="session")
def strong_s3() -> Iterator[str]:
    """The endpoint of an S3 that honours conditional puts."""
    from tests import services

    with services.strong_s3() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def weak_s3() -> Iterator[str]:
    """The endpoint of an S3 that ignores conditions."""
    from tests import services

    with services.weak_s3() as endpoint:
        yield endpoint


@pytest.fixture(params=["local", "strong S3", "weak S3"])
def blob_store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BlobStore:
    """An empty store, on each kind of storage in turn."""
    from tests import services

    from daskscope.storage.blobs import open_store

    if request.param == "local":
        return open_store(str(tmp_path / "store"))
    for name, value in services.ACCESS.items():
        monkeypatch.setenv(name, value)
    endpoint: str = request.getfixturevalue("strong_s3" if request.param == "strong S3" else "weak_s3")
    return open_store(f"s3://{services.BUCKET}/{tmp_path.name}", endpoint=endpoint)
