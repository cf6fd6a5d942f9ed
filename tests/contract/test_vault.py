"""Texts at rest are unreadable without the master key."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.helpers.archive import MASTER, NOW, Archive, frame, task, transaction

from daskscope.cli.main import main
from daskscope.server.services import open_services
from daskscope.server.settings import Settings
from daskscope.storage import schema
from daskscope.storage.base.database import StorageError
from daskscope.storage.base.vault import (
    KEPT_KEYS,
    BrokenSeal,
    MasterKeys,
    Vault,
    WrongMasterKey,
    add_master_key,
    load_master_keys,
    parse_master_keys,
    write_master_keys,
)
from daskscope.storage.catalog.computations import list_computations
from daskscope.storage.catalog.error_groups import list_error_groups, list_exceptions
from daskscope.storage.people.accounts import create_account

MARKER = "the-marker-nobody-may-find"
PLACE = "some row"


def seal(archive: Archive, text: str) -> bytes:
    with archive.database.read() as connection:
        sealed = archive.vault.seal_text(connection, archive.account, text, PLACE)
    assert sealed is not None
    return sealed


def open_(archive: Archive, sealed: bytes, vault: Vault | None = None, account: int = 0) -> str:
    with archive.database.read() as connection:
        return (vault or archive.vault).open_text(connection, account or archive.account, sealed, PLACE)


def test_a_text_is_sealed_and_opened(archive: Archive) -> None:
    sealed = seal(archive, MARKER)
    assert MARKER.encode() not in sealed
    assert seal(archive, MARKER) != sealed
    assert open_(archive, sealed) == MARKER
    assert open_(archive, sealed, Vault([MASTER])) == MARKER
    with archive.database.read() as connection:
        assert archive.vault.seal_text(connection, archive.account, "", PLACE) is None
        assert archive.vault.open_text(connection, archive.account, None, PLACE) == ""


def test_changing_any_byte_of_a_sealed_text_is_detected(archive: Archive) -> None:
    sealed = seal(archive, MARKER)
    for position in range(len(sealed)):
        changed = bytearray(sealed)
        changed[position] ^= 1
        with pytest.raises(StorageError):
            open_(archive, bytes(changed))
    for length in (0, 5, 8, 20, len(sealed) - 1):
        if length:
            with pytest.raises(StorageError):
                open_(archive, sealed[:length])
    with pytest.raises(BrokenSeal):
        open_(archive, sealed[:-1] + bytes([sealed[-1] ^ 0xFF]))


def test_a_text_of_one_account_cannot_be_opened_for_another(archive: Archive) -> None:
    other = archive.new_account("others")
    sealed = seal(archive, MARKER)
    for vault in (archive.vault, Vault([MASTER])):
        with pytest.raises(StorageError):
            open_(archive, sealed, vault, other)
    # Not even if an attacker with write access to the database copies the key to the other account.
    keys = schema.account_keys
    archive.execute(sa.update(keys).where(keys.c.account_id == archive.account).values(account_id=other))
    with pytest.raises(StorageError):
        open_(archive, sealed, Vault([MASTER]), other)


def test_a_wrong_master_key_fails_with_a_suggestion(archive: Archive) -> None:
    sealed = seal(archive, MARKER)
    with pytest.raises(StorageError, match="key file it was started with"):
        open_(archive, sealed, Vault([bytes(32)]))


def test_rotation_creates_new_keys_and_keeps_old_texts_readable(archive: Archive) -> None:
    before = seal(archive, "before")
    new = bytes(range(32, 64))
    rotating = Vault([new, MASTER])
    with archive.database.write() as connection:
        assert rotating.rotate(connection) == 1
    assert archive.count(schema.account_keys) == 2
    archive.vault = Vault([new])
    after = seal(archive, "after")
    assert after[:8] != before[:8]
    assert (open_(archive, before), open_(archive, after)) == ("before", "after")
    assert open_(archive, after, rotating) == "after"
    with pytest.raises(StorageError):
        open_(archive, before, Vault([MASTER]))


def test_the_master_key_is_compared_with_the_one_of_the_database(archive: Archive) -> None:
    new, stranger = os.urandom(32), Vault([bytes(32)])
    # This database has data keys only, as during a rotation.
    for vault, error in ((stranger, True), (Vault([MASTER]), False), (stranger, True), (Vault([new, MASTER]), False)):
        with (
            pytest.raises(WrongMasterKey, match="--key-file") if error else nullcontext(),
            archive.database.write() as tx,
        ):
            vault.check(tx)
    with archive.database.write() as connection:
        Vault([new, MASTER]).rotate(connection)
    with archive.database.write() as connection:
        Vault([new]).check(connection)
    with pytest.raises(WrongMasterKey), archive.database.write() as connection:
        Vault([MASTER]).check(connection)


def test_a_running_server_rereads_the_key_file_after_a_rotation(tmp_path: Path) -> None:
    """Otherwise it would refuse the batches of accounts it had not used yet, and their recorders would stop for good."""
    data = tmp_path / "data"
    services = open_services(Settings(data=str(data)))
    with services.archive.database.write() as connection:
        number = create_account(transaction(connection, services.archive.vault), "late").id
    assert main(["doctor", "--rotate-keys", "--data", str(data)]) == 0
    with services.archive.database.write() as connection:
        sealed = services.archive.vault.seal(connection, number, b"text", PLACE)
        assert Vault(load_master_keys(data / "master.key")).open(connection, number, sealed, PLACE) == b"text"
    (data / "master.key").unlink()
    stranger = Vault([bytes(32)], MasterKeys(data / "master.key"))
    with (
        services.archive.database.read() as connection,
        pytest.raises(StorageError, match="key file it was started with"),
    ):
        stranger.open(connection, number, sealed, PLACE)
    assert not (data / "master.key").exists()
    services.close()


def test_a_key_wrapped_with_the_old_master_key_after_a_rotation_stays_readable(tmp_path: Path) -> None:
    """The server is restarted after the rotation, not before it."""
    data = tmp_path / "data"
    key_file, rotate = data / "master.key", ["doctor", "--rotate-keys", "--data", str(data)]
    services = open_services(Settings(data=str(data)))
    database, running = services.archive.database, services.archive.vault

    def account(vault: Vault, name: str) -> tuple[int, bytes]:
        with database.write() as connection:
            number = create_account(transaction(connection, vault), name).id
            return number, vault.seal(connection, number, name.encode(), PLACE)

    first = account(running, "first")
    assert main(rotate) == 0
    between = account(running, "between")
    restarted = Vault(load_master_keys(key_file))
    with database.read() as connection:
        assert restarted.open(connection, *first, PLACE) == b"first"
        assert restarted.open(connection, *between, PLACE) == b"between"
    after = account(restarted, "after")

    assert main(rotate) == 0
    keys = load_master_keys(key_file)
    assert len(keys) == KEPT_KEYS
    assert keys[1] == restarted.masters[0] == running.masters[0]
    # The second rotation wrapped all keys again: the newest master key is enough, and the first is gone.
    with database.read() as connection:
        for number, sealed in (first, between, after):
            assert Vault(keys[:1]).open(connection, number, sealed, PLACE) in (b"first", b"between", b"after")
    services.close()


def test_an_account_made_after_two_rotations_is_readable_after_a_restart(tmp_path: Path) -> None:
    """The server was never restarted: the master key it started with is no longer in any file."""
    data = tmp_path / "data"
    services = open_services(Settings(data=str(data)))
    old = services.archive.vault.masters[0]
    for _ in range(2):
        assert main(["doctor", "--rotate-keys", "--data", str(data)]) == 0
    assert old not in load_master_keys(data / "master.key")
    with services.archive.database.write() as connection:
        number = create_account(transaction(connection, services.archive.vault), "late").id
        sealed = services.archive.vault.seal(connection, number, b"text", PLACE)
        assert Vault(load_master_keys(data / "master.key")).open(connection, number, sealed, PLACE) == b"text"
    services.close()


def test_texts_of_a_deleted_key_are_unreadable(archive: Archive) -> None:
    sealed = seal(archive, MARKER)
    archive.execute(sa.delete(schema.account_keys))
    with pytest.raises(StorageError, match="no longer exists"):
        open_(archive, sealed, Vault([MASTER]))
    with pytest.raises(StorageError, match="no encryption key"), archive.database.read() as connection:
        Vault([MASTER]).seal(connection, archive.account, b"x", PLACE)


def test_the_number_of_a_deleted_key_is_never_reused(archive: Archive) -> None:
    (old,) = archive.rows(schema.account_keys, "id")
    archive.execute(sa.delete(schema.account_keys))
    with archive.database.write() as connection:
        archive.vault.add_key(connection, archive.account)
    (new,) = archive.rows(schema.account_keys, "id")
    assert new["id"] > old["id"]


def test_the_key_file_is_created_once_and_readable_only_by_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "master.key"
    keys = load_master_keys(path)
    assert load_master_keys(path) == keys
    assert path.stat().st_mode & 0o777 == 0o600
    more = add_master_key(path)
    assert (len(more), more[1:]) == (2, keys)
    assert load_master_keys(path) == more
    write_master_keys(path, more[:1])
    assert load_master_keys(path) == more[:1]
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("text", ["", "\n", "no key", base64.b64encode(b"short").decode(), "Zm9v!"])
def test_an_invalid_key_file_is_refused(text: str) -> None:
    with pytest.raises(StorageError, match=r"master\.key contains"):
        parse_master_keys(text, "master.key")


def secret_frames(name: str) -> list[bytes]:
    """Return batches with the marker in every field for code, tracebacks, messages and log lines."""
    traceback = f"Traceback: {MARKER}"
    return [
        frame("computations", [{"computation": "comp", "seen_us": NOW, "start_us": NOW, "code": MARKER}], 0, cluster=name),
        frame("exceptions", [
            {"time_us": NOW, "fingerprint": "f", "type": "E", "message": MARKER, "traceback": traceback,
             "cause_message": MARKER, "count": 1},
        ], 1, cluster=name),
        frame("logs", [{"time_us": NOW, "message": MARKER}], 2, cluster=name),
        frame("tasks", [task(0)], 3, cluster=name),
    ]  # fmt: skip


def test_secrets_are_not_on_disk_in_plain_text_and_are_read_back(sqlite_archive: Archive, tmp_path: Path) -> None:
    """Search the bytes of the database, its WAL and every blob, before and after compaction."""
    archive = sqlite_archive
    archive.ingest(secret_frames("compacted"))
    run = archive.run("compacted")["id"]
    assert archive.compact(run) is not None
    *sealed, plain = secret_frames("buffered")
    archive.ingest([*sealed, plain])

    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"catalog.sqlite", "catalog.sqlite-wal"}
    assert len(files) > 5
    data = [path.read_bytes() for path in files]
    assert not any(MARKER[:12].encode() in part for part in data)
    # Frames and Parquet files compress their contents: neither may be stored unsealed.
    assert not any(frame_[-40:] in part for part in data for frame_ in sealed)
    assert any(plain[-40:] in part for part in data)
    blobs = {row["name"]: archive.store.get(row["path"]) for row in archive.rows(schema.files)}
    assert [name for name, blob in blobs.items() if blob.startswith(b"PAR1")] == ["tasks"]
    assert set(blobs) == {"computations", "exceptions", "logs", "tasks"}

    with archive.read() as tx:
        for row in list_computations(tx, archive.account):
            assert row.code == MARKER
        failures = list_exceptions(tx, archive.account)
        assert {(row.texts.message, row.texts.cause_message) for row in failures} == {(MARKER, MARKER)}
        (group,) = list_error_groups(tx, archive.account)
        assert group.sample.traceback == f"Traceback: {MARKER}"
    for name in ("compacted", "buffered"):
        recording = archive.recording(archive.run(name)["id"])
        assert recording["logs"]["message"].tolist() == [MARKER]
        assert recording["computations"]["code"].tolist() == [MARKER]
        assert recording["exceptions"]["message"].tolist() == [MARKER]


def test_a_text_cannot_be_moved_to_another_place(archive: Archive) -> None:
    sealed = seal(archive, MARKER)
    with archive.database.read() as connection, pytest.raises(BrokenSeal):
        archive.vault.open_text(connection, archive.account, sealed, "another row")


def test_the_texts_of_two_rows_cannot_be_exchanged(archive: Archive) -> None:
    """By somebody who can write to the database and the blobs but has no key."""
    for cluster in ("one", "two"):
        archive.ingest([
            frame("exceptions", [{"time_us": NOW, "fingerprint": cluster, "traceback": cluster, "count": 1}], 1, cluster=cluster),
            frame("computations", [{"computation": "c", "seen_us": NOW, "start_us": NOW, "code": cluster}], 2, cluster=cluster),
        ])  # fmt: skip
    with archive.read() as tx:
        assert {group.sample.traceback for group in list_error_groups(tx, archive.account)} == {"one", "two"}
        assert {row.code for row in list_computations(tx, archive.account)} == {"one", "two"}
    first, second = (archive.run(cluster)["id"] for cluster in ("one", "two"))
    table = schema.batches
    texts = {row["run_id"]: row["frame"] for row in archive.rows(table) if row["name"] == "computations"}
    for run, other in ((first, second), (second, first)):
        mine = (table.c.run_id == run) & (table.c.name == "computations")
        archive.execute(sa.update(table).where(mine).values(frame=texts[other]))
    one, two = archive.rows(schema.code_texts)
    for mine, theirs in ((one, two), (two, one)):
        changed = sa.update(schema.code_texts).where(schema.code_texts.c.digest == mine["digest"])
        archive.execute(changed.values(sealed=theirs["sealed"]))
    with archive.read() as tx, pytest.raises(BrokenSeal):
        list_computations(tx, archive.account)
    assert "changed" in archive.recording(first).damage

    (theirs,) = (row["sealed_text"] for row in archive.rows(schema.exceptions) if row["run_id"] == second)
    groups = schema.error_groups
    archive.execute(sa.update(groups).where(groups.c.fingerprint == "one").values(sealed_sample=theirs))
    with archive.read() as tx, pytest.raises(BrokenSeal):
        list_error_groups(tx, archive.account)


def test_master_keys_come_from_a_variable_or_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    old, new = (base64.b64encode(bytes([n]) * 32).decode() for n in (1, 2))
    monkeypatch.setenv("DASKSCOPE_SERVER_MASTER_KEY", old)
    services = open_services(Settings(data=str(data)).checked())
    with services.archive.read() as tx:
        sealed = tx.seal(services.local_account, b"text", PLACE)
    services.close()
    assert not (data / "master.key").exists()

    monkeypatch.delenv("DASKSCOPE_SERVER_MASTER_KEY")
    (tmp_path / "secret").write_text(f"{old}\n")
    command = f"cat {tmp_path}/secret"
    rotate = ["doctor", "--rotate-keys", "--data", str(data), "--key-command", command]
    assert main(rotate) == 1
    assert "the new key and the old key, in this order" in capsys.readouterr().err
    (tmp_path / "secret").write_text(f"{new}\n{old}\n")
    assert main(rotate) == 0
    (tmp_path / "secret").write_text(f"{new}\n")
    services = open_services(Settings(data=str(data), key_command=command).checked())
    with services.archive.read() as tx:
        assert tx.open(services.local_account, sealed, PLACE) == b"text"
    services.close()
    assert not (data / "master.key").exists()


def test_a_failing_key_command_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"--key-command failed \(status 3\)"):
        MasterKeys(tmp_path / "no", command="echo secret-part; exit 3").load()
    with pytest.raises(StorageError, match=r"The output of --key-command contains no key"):
        MasterKeys(tmp_path / "no", command="true").load()
    assert not (tmp_path / "no").exists()


@pytest.fixture
def ordinary_sqlite() -> Iterator[None]:
    """A SQLite that does not overwrite what it deletes unless told to. That of Debian is built to always do so."""

    def forget_the_build(connection: Any, _: object) -> None:
        connection.execute("PRAGMA secure_delete=OFF")

    # Listeners of the class run before listeners of an engine.
    sa.event.listen(sa.Engine, "connect", forget_the_build)
    yield
    sa.event.remove(sa.Engine, "connect", forget_the_build)


@pytest.mark.usefixtures("ordinary_sqlite")
def test_deleted_names_are_overwritten(tmp_path: Path) -> None:
    services = open_services(Settings(data=str(tmp_path)).checked())
    with services.archive.write() as tx:
        tx.execute(sa.insert(schema.facts).values(name="a-name-to-forget", value="x"))
    with services.archive.write() as tx:
        tx.execute(sa.delete(schema.facts).where(schema.facts.c.name == "a-name-to-forget"))
    with services.archive.database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    services.close()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"a-name-to-forget" in path.read_bytes()]


def test_only_the_owner_can_read_the_files_of_a_server(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        services = open_services(Settings(data=str(tmp_path / "data")).checked())
        services.archive.store.put("1/runs/1/x.parquet", b"x")
        services.close()
    finally:
        os.umask(before)
    modes = {
        str(path.relative_to(tmp_path)): path.stat().st_mode & 0o077 for path in tmp_path.rglob("*") if path.is_file()
    }
    assert len(modes) >= 3
    assert not any(modes.values()), modes
