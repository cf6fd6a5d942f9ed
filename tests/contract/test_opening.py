"""Servers that start at the same moment on storage with nothing in it: one account, one user, one key; on both databases."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.archive import MASTER, NOW
from tests.services import Postgres

from daskscope.server.services import LOCAL, Services, open_services
from daskscope.server.settings import Settings
from daskscope.storage.accounts import NameTaken, list_accounts, open_account
from daskscope.storage.database import Database
from daskscope.storage.migrate import prepare
from daskscope.storage.users import create_user, open_user
from daskscope.storage.vault import Vault, load_master_keys

AT_ONCE = 4


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database with nothing in it."""
    if request.param == "sqlite":
        yield str(tmp_path / "catalog.sqlite")
        return
    postgres: Postgres = request.getfixturevalue("postgres")
    url = postgres.empty()
    yield url
    postgres.drop(url)


def test_replicas_that_start_at_once_open_the_same_account(empty: str, tmp_path: Path) -> None:
    settings = Settings(data=str(tmp_path / "data"), database=empty)
    opened, failed = list[Services](), list[BaseException]()
    barrier = threading.Barrier(AT_ONCE)

    def start() -> None:
        barrier.wait(10)
        try:
            opened.append(open_services(settings))
        except BaseException as error:  # noqa: BLE001 (carried to the thread that asserts)
            failed.append(error)

    _together(start)
    try:
        assert failed == []
        assert len({(services.local_account, services.local_user) for services in opened}) == 1
        assert len({services.vault.masters[0] for services in opened}) == 1
        with opened[0].database.read() as connection:
            assert [account.name for account in list_accounts(connection)] == [LOCAL]
            sealed = opened[0].vault.seal(connection, opened[0].local_account, b"a text")
        with opened[-1].database.read() as connection:
            assert opened[-1].vault.open(connection, opened[-1].local_account, sealed) == b"a text"
    finally:
        for services in opened:
            services.close()


def test_a_name_somebody_takes_between_the_look_and_the_insert_is_looked_up_again(postgres_url: str) -> None:
    """Both have looked and found nothing before either writes."""
    database, vault = Database(postgres_url), Vault([MASTER])
    found = list[tuple[int, int]]()
    barrier = threading.Barrier(2)

    def open_both() -> None:
        with database.write() as connection:
            barrier.wait(10)
            account = open_account(connection, vault, "local", NOW)
            found.append((account.id, open_user(connection, "local", NOW, admin=True).id))

    threads = [threading.Thread(target=open_both) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    database.close()
    assert len(found) == 2
    assert len(set(found)) == 1


def test_a_user_who_is_gone_is_not_made_again(sqlite_url: str) -> None:
    database = Database(sqlite_url)
    prepare(database)
    with database.write() as connection:
        create_user(connection, "local", "", NOW)
        connection.exec_driver_sql("UPDATE users SET disabled_us = 1")
        with pytest.raises(NameTaken):
            open_user(connection, "local", NOW)
    database.close()


def test_servers_that_make_the_key_file_at_once_have_the_same_key(tmp_path: Path) -> None:
    path = tmp_path / "data" / "master.key"
    keys, barrier = list[bytes](), threading.Barrier(AT_ONCE)

    def load() -> None:
        barrier.wait(10)
        keys.extend(load_master_keys(path))

    _together(load)
    assert len(keys) == AT_ONCE
    assert len(set(keys)) == 1
    assert list(path.parent.iterdir()) == [path]


def _together(action: object) -> None:
    assert callable(action)
    threads = [threading.Thread(target=action) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
