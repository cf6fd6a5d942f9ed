"""Settings for every test, and fixtures for real servers."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from tests.helpers import durations

if TYPE_CHECKING:
    from tests.helpers.archive import Archive
    from tests.helpers.services import Hosting, Postgres

    from daskscope.storage.base.blobs import BlobStore

# The collector's guard must not hide our bugs in tests. Processes that a test starts inherit this.
os.environ.setdefault("DASKSCOPE_STRICT", "1")

# Servers without sign-in announce themselves there; keep them out of the user's own directory.
os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(prefix="daskscope-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_DATA_HOME"], ignore_errors=True)

# Tests send SIGINT, as Ctrl-C does. A shell starts background jobs with SIGINT ignored, and all their processes inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No example fails because the machine is busy. Every run has the same examples, so that a change fails for what it changes;
# scripts/test with arguments, such as -m slow, tries new ones.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("random", deadline=None)
settings.load_profile(os.environ.get("DASKSCOPE_HYPOTHESIS", "same"))

# No import of the server above: these tests also run where only the recorder is installed.


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-durations", action="store_true", help="write the seconds of each file to tests/durations.json"
    )


def pytest_configure(config: pytest.Config) -> None:
    # With pytest-xdist, only the main process gets the reports of all tests.
    if config.getoption("--write-durations") and "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(durations.DurationWriter(config.rootpath))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Start the longest files first if files are distributed to processes: one that starts last would run alone."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        seconds = durations.read_durations()
        names = {item.path: item.path.relative_to(config.rootpath).as_posix() for item in items}
        items.sort(key=lambda item: -seconds.get(names[item.path], 0))


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over the thousands of tests and modules: that took a tenth of the unit tests' time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server."""
    from tests.helpers import services

    with services.postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """A separate database with an empty catalog."""
    url = postgres.prepared()
    yield url
    postgres.recycle(url)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from daskscope.storage.base.database import Database
    from daskscope.storage.base.migrate import prepare

    path = tmp_path_factory.mktemp("template") / "catalog.sqlite"
    database = Database(str(path))
    prepare(database)
    database.close()
    return path


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """A separate SQLite file with an empty catalog."""
    shutil.copy(sqlite_template, tmp_path / "catalog.sqlite")
    return f"sqlite:///{tmp_path}/catalog.sqlite"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """An empty catalog, on each database in turn."""
    url: str = request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")
    return url


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a server's tests on SQLite, and on PostgreSQL if they depend on the database; else only with scripts/test -m slow."""
    if "database_kind" in metafunc.fixturenames:
        each = metafunc.definition.get_closest_marker("each_database") is not None
        postgresql = pytest.param("postgresql", marks=() if each else pytest.mark.slow)
        metafunc.parametrize("database_kind", ["sqlite", postgresql], indirect=True, scope="module")


@pytest.fixture(scope="module")
def database_kind(request: pytest.FixtureRequest) -> str:
    """The database of a server; a module runs all its tests on one before the other."""
    kind: str = request.param
    return kind


@pytest.fixture
def hosted(database_kind: str, request: pytest.FixtureRequest) -> Iterator[Hosting]:
    """Create servers in this process."""
    yield from _hosting(database_kind, request)


@pytest.fixture(scope="module")
def hosted_once(database_kind: str, request: pytest.FixtureRequest) -> Iterator[Hosting]:
    """Like ``hosted``, for servers that the tests of a module share."""
    yield from _hosting(database_kind, request)


def _hosting(kind: str, request: pytest.FixtureRequest) -> Iterator[Hosting]:
    from tests.helpers.services import Hosting

    hosting = Hosting(request.getfixturevalue("sqlite_template"))
    with pytest.MonkeyPatch.context() as patch:
        if kind == "postgresql":
            hosting.postgres = request.getfixturevalue("postgres")
            # A stopping server waits up to a second for its relay to poll: with a hundred servers, that is a minute.
            patch.setattr("daskscope.server.relay.LOOK_S", 0.02)
        yield hosting
    hosting.close()


def _archive(url: str, directory: Path) -> Iterator[Archive]:
    from tests.helpers.archive import Archive

    from daskscope.storage.base.blobs import LocalStore
    from daskscope.storage.base.database import Database

    database = Database(url)
    yield Archive(database, LocalStore(directory))
    database.close()


@pytest.fixture
def archive(database_url: str, tmp_path: Path) -> Iterator[Archive]:
    """A server's storage, on each database in turn."""
    yield from _archive(database_url, tmp_path / "blobs")


@pytest.fixture
def sqlite_archive(sqlite_url: str, tmp_path: Path) -> Iterator[Archive]:
    """A server's storage, on the default database."""
    yield from _archive(sqlite_url, tmp_path / "blobs")


@pytest.fixture(scope="session")
def strong_s3() -> Iterator[str]:
    """The endpoint of an S3 that honours conditional puts."""
    from tests.helpers import services

    with services.strong_s3() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def weak_s3() -> Iterator[str]:
    """The endpoint of an S3 that ignores conditions on puts."""
    from tests.helpers import services

    with services.weak_s3() as endpoint:
        yield endpoint


@pytest.fixture(params=["local", "strong S3", "weak S3"])
def blob_store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BlobStore:
    """An empty blob store, on each kind of storage in turn."""
    from tests.helpers import services

    from daskscope.storage.base.blobs import open_store

    if request.param == "local":
        return open_store(str(tmp_path / "store"))
    for name, value in services.ACCESS.items():
        monkeypatch.setenv(name, value)
    endpoint: str = request.getfixturevalue("strong_s3" if request.param == "strong S3" else "weak_s3")
    return open_store(f"s3://{services.BUCKET}/{tmp_path.name}", endpoint=endpoint)
