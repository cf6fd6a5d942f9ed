"""Texts at rest are noise to whoever has the disk but not the key."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.archive import LOST_AFTER, MASTER, NOW, Archive, frame, task

from daskscope.cli.main import main
from daskscope.server.services import open_services
from daskscope.server.settings import Settings
from daskscope.storage import schema
from daskscope.storage.accounts import create_account
from daskscope.storage.computations import list_computations
from daskscope.storage.database import StorageError
from daskscope.storage.failures import list_error_groups, list_exceptions
from daskscope.storage.vault import (
    KEPT_KEYS,
    BrokenSeal,
    Vault,
    add_master_key,
    load_master_keys,
    parse_master_keys,
    write_master_keys,
)

MARKER = "the-marker-nobody-may-find"


def seal(archive: Archive, text: str) -> bytes:
    with archive.database.read() as connection:
        sealed = archive.vault.seal_text(connection, archive.account, text)
    assert sealed is not None
    return sealed


def open_(archive: Archive, sealed: bytes, vault: Vault | None = None, account: int = 0) -> str:
    with archive.database.read() as connection:
        return (vault or archive.vault).open_text(connection, account or archive.account, sealed)


def test_a_text_is_sealed_and_opened(archive: Archive) -> None:
    sealed = seal(archive, MARKER)
    assert MARKER.encode() not in sealed
    assert seal(archive, MARKER) != sealed
    assert open_(archive, sealed) == MARKER
    assert open_(archive, sealed, Vault([MASTER])) == MARKER
    with archive.database.read() as connection:
        assert archive.vault.seal_text(connection, archive.account, "") is None
        assert archive.vault.open_text(connection, archive.account, None) == ""


def test_a_changed_text_is_refused_whichever_byte_it_was(archive: Archive) -> None:
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
        open_(archive, sealed[:-1] + b"x")


def test_a_text_of_one_account_is_not_opened_for_another(archive: Archive) -> None:
    other = archive.new_account("others")
    sealed = seal(archive, MARKER)
    for vault in (archive.vault, Vault([MASTER])):
        with pytest.raises(StorageError):
            open_(archive, sealed, vault, other)
    # Not even by somebody who can write to the database and gives the other account the key.
    keys = schema.account_keys
    archive.execute(sa.update(keys).where(keys.c.account_id == archive.account).values(account_id=other))
    with pytest.raises(StorageError):
        open_(archive, sealed, Vault([MASTER]), other)


def test_a_wrong_master_key_opens_nothing_and_says_what_to_do(archive: Archive) -> None:
    sealed = seal(archive, MARKER)
    with pytest.raises(StorageError, match="key file it was started with"):
        open_(archive, sealed, Vault([bytes(32)]))


def test_rotation_gives_new_keys_and_keeps_old_texts_readable(archive: Archive) -> None:
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


def test_a_running_server_reads_the_key_file_again_once_it_was_rotated(tmp_path: Path) -> None:
    """Of accounts it did not need until then; it would refuse their batches, and their recorders would stop for good."""
    data = tmp_path / "data"
    services = open_services(Settings(data=str(data)))
    with services.database.write() as connection:
        number = create_account(connection, services.vault, "late", NOW).id
    assert main(["doctor", "--rotate-keys", "--data", str(data)]) == 0
    with services.database.write() as connection:
        sealed = services.vault.seal(connection, number, b"text")
        assert Vault(load_master_keys(data / "master.key")).open(connection, number, sealed) == b"text"
    (data / "master.key").unlink()
    stranger = Vault([bytes(32)], data / "master.key")
    with services.database.read() as connection, pytest.raises(StorageError, match="key file it was started with"):
        stranger.open(connection, number, sealed)
    assert not (data / "master.key").exists()
    services.close()


def test_a_key_that_a_running_server_wrapped_by_the_old_master_key_survives_a_rotation(tmp_path: Path) -> None:
    """The server is restarted after the rotation, not before it."""
    data = tmp_path / "data"
    key_file, rotate = data / "master.key", ["doctor", "--rotate-keys", "--data", str(data)]
    services = open_services(Settings(data=str(data)))
    database, running = services.database, services.vault

    def account(vault: Vault, name: str) -> tuple[int, bytes]:
        with database.write() as connection:
            number = create_account(connection, vault, name, NOW).id
            return number, vault.seal(connection, number, name.encode())

    first = account(running, "first")
    assert main(rotate) == 0
    between = account(running, "between")
    restarted = Vault(load_master_keys(key_file))
    with database.read() as connection:
        assert restarted.open(connection, *first) == b"first"
        assert restarted.open(connection, *between) == b"between"
    after = account(restarted, "after")

    assert main(rotate) == 0
    keys = load_master_keys(key_file)
    assert len(keys) == KEPT_KEYS
    assert keys[1] == restarted.masters[0] == running.masters[0]
    # The second rotation wrapped everything anew: the newest key is enough, and the first of all is gone.
    with database.read() as connection:
        for number, sealed in (first, between, after):
            assert Vault(keys[:1]).open(connection, number, sealed) in (b"first", b"between", b"after")
    services.close()


def test_an_account_made_after_two_rotations_is_readable_after_a_restart(tmp_path: Path) -> None:
    """The server was never restarted: the master key it began with is in no file any more."""
    data = tmp_path / "data"
    services = open_services(Settings(data=str(data)))
    old = services.vault.masters[0]
    for _ in range(2):
        assert main(["doctor", "--rotate-keys", "--data", str(data)]) == 0
    assert old not in load_master_keys(data / "master.key")
    with services.database.write() as connection:
        number = create_account(connection, services.vault, "late", NOW).id
        sealed = services.vault.seal(connection, number, b"text")
        assert Vault(load_master_keys(data / "master.key")).open(connection, number, sealed) == b"text"
    services.close()


def test_a_deleted_key_makes_texts_noise(archive: Archive) -> None:
    sealed = seal(archive, MARKER)
    archive.execute(sa.delete(schema.account_keys))
    with pytest.raises(StorageError, match="gone"):
        open_(archive, sealed, Vault([MASTER]))
    with pytest.raises(StorageError, match="no key"), archive.database.read() as connection:
        Vault([MASTER]).seal(connection, archive.account, b"x")


def test_the_number_of_a_deleted_key_is_never_given_again(archive: Archive) -> None:
    (old,) = archive.rows(schema.account_keys, "id")
    archive.execute(sa.delete(schema.account_keys))
    with archive.database.write() as connection:
        archive.vault.add_key(connection, archive.account)
    (new,) = archive.rows(schema.account_keys, "id")
    assert new["id"] > old["id"]


def test_the_key_file_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
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
def test_a_key_file_that_holds_no_key_is_refused(text: str) -> None:
    with pytest.raises(StorageError, match=r"master\.key holds"):
        parse_master_keys(text, "master.key")


def secrets(name: str) -> list[bytes]:
    """Batches with the marker wherever code, a traceback, a message or a line of a log may be."""
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


def test_no_secret_is_on_disk_and_all_are_read_back(sqlite_archive: Archive, tmp_path: Path) -> None:
    """The bytes of the database, of its log and of every blob, before and after compaction."""
    archive = sqlite_archive
    archive.take(secrets("compacted"))
    run = archive.run("compacted")["id"]
    assert archive.compact(run) is not None
    *sealed, plain = secrets("buffered")
    archive.take([*sealed, plain])

    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"catalog.sqlite", "catalog.sqlite-wal"}
    assert len(files) > 5
    data = [path.read_bytes() for path in files]
    assert not any(MARKER[:12].encode() in part for part in data)
    # A frame compresses what it holds, and a Parquet file as well: neither may be there without its seal.
    assert not any(frame_[-40:] in part for part in data for frame_ in sealed)
    assert any(plain[-40:] in part for part in data)
    blobs = {row["name"]: archive.store.get(row["path"]) for row in archive.rows(schema.files)}
    assert [name for name, blob in blobs.items() if blob.startswith(b"PAR1")] == ["tasks"]
    assert set(blobs) == {"computations", "exceptions", "logs", "tasks"}

    with archive.database.read() as connection:
        for row in list_computations(connection, archive.vault, archive.account, NOW, LOST_AFTER):
            assert row["code"] == MARKER
        failures = list_exceptions(connection, archive.vault, archive.account)
        assert {(row["message"], row["cause_message"]) for row in failures} == {(MARKER, MARKER)}
        (group,) = list_error_groups(connection, archive.vault, archive.account)
        assert group["sample"]["traceback"] == f"Traceback: {MARKER}"
    for name in ("compacted", "buffered"):
        recording = archive.read(archive.run(name)["id"])
        assert recording["logs"]["message"].tolist() == [MARKER]
        assert recording["computations"]["code"].tolist() == [MARKER]
        assert recording["exceptions"]["message"].tolist() == [MARKER]
