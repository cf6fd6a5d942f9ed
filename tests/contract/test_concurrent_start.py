"""Servers that start at once on empty storage create one account, one user and one key; on SQLite and on PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.archive import MASTER, transaction
from tests.helpers.services import Postgres

from daskscope.server.services import LOCAL, Services, open_services
from daskscope.server.settings import Settings
from daskscope.storage.base.database import Database
from daskscope.storage.base.migrate import prepare
from daskscope.storage.base.vault import Vault, load_master_keys
from daskscope.storage.people.accounts import NameTaken, list_accounts, open_account
from daskscope.storage.people.users import create_user, open_user

AT_ONCE = 4


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without tables."""
    if request.param == "sqlite":
        yield str(tmp_path / "catalog.sqlite")
        return
    postgres: Postgres = request.getfixturevalue("postgres")
    url = postgres.empty()
    yield url
    postgres.drop(url)


def test_replicas_that_start_at_once_share_one_account(empty_database: str, tmp_path: Path) -> None:
    settings = Settings(data=str(tmp_path / "data"), database=empty_database)
    opened, failed = list[Services](), list[BaseException]()
    barrier = threading.Barrier(AT_ONCE)

    def start() -> None:
        barrier.wait(10)
        try:
            opened.append(open_services(settings))
        except BaseException as error:  # noqa: BLE001 (asserted in the main thread)
            failed.append(error)

    _run_concurrently(start)
    try:
        assert failed == []
        assert len({(services.local_account, services.local_user) for services in opened}) == 1
        assert len({services.archive.vault.masters[0] for services in opened}) == 1
        with opened[0].archive.read() as tx:
            assert [account.name for account in list_accounts(tx)] == [LOCAL]
            sealed = tx.seal(opened[0].local_account, b"a text", "place")
        with opened[-1].archive.read() as tx:
            assert tx.open(opened[-1].local_account, sealed, "place") == b"a text"
    finally:
        for services in opened:
            services.close()


def test_an_account_inserted_by_another_server_meanwhile_is_found(postgres_url: str) -> None:
    """Both servers find no account before either inserts one."""
    database, vault = Database(postgres_url), Vault([MASTER])
    found = list[tuple[int, int]]()
    barrier = threading.Barrier(2)

    def open_both() -> None:
        with database.write() as connection:
            tx = transaction(connection, vault)
            barrier.wait(10)
            account = open_account(tx, "local")
            found.append((account.id, open_user(tx, "local", admin=True).id))

    threads = [threading.Thread(target=open_both) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    database.close()
    assert len(found) == 2
    assert len(set(found)) == 1


def test_a_disabled_user_is_not_created_again(sqlite_url: str) -> None:
    database = Database(sqlite_url)
    prepare(database)
    with database.write() as connection:
        tx = transaction(connection, Vault([MASTER]))
        create_user(tx, "local", "")
        tx.connection.exec_driver_sql("UPDATE users SET disabled_us = 1")
        with pytest.raises(NameTaken):
            open_user(tx, "local")
    database.close()


def test_servers_that_create_the_key_file_at_once_share_one_key(tmp_path: Path) -> None:
    path = tmp_path / "data" / "master.key"
    keys, barrier = list[bytes](), threading.Barrier(AT_ONCE)

    def load() -> None:
        barrier.wait(10)
        keys.extend(load_master_keys(path))

    _run_concurrently(load)
    assert len(keys) == AT_ONCE
    assert len(set(keys)) == 1
    assert list(path.parent.iterdir()) == [path]


def _run_concurrently(action: object) -> None:
    assert callable(action)
    threads = [threading.Thread(target=action) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
