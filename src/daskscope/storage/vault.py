"""Texts sealed at rest: code, tracebacks, reports.

Envelope encryption with AES-256-GCM. A master key (a file, or given from outside) wraps one data key per account; data keys
seal texts. A sealed text starts with the number of its data key, so that new keys can be used while old texts stay readable.
Wrapping again with another master key touches only the keys; deleting an account's keys makes all of its texts noise.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

import sqlalchemy as sa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy.engine import Connection

from daskscope.storage.database import StorageError
from daskscope.storage.schema import account_keys

KEY_SIZE = 32
NONCE_SIZE = 12
ID_SIZE = 8
MASTER_ID_SIZE = 4


def load_master_keys(path: Path) -> list[bytes]:
    """The master keys of a file, the one in use first; a new file is made where there is none."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        text = _create(path)
    except OSError as error:
        raise StorageError(f"The key file {path} cannot be read: {error.strerror}.") from None
    return parse_master_keys(text, str(path))


def parse_master_keys(text: str, source: str) -> list[bytes]:
    keys = []
    for line in text.split():
        try:
            key = base64.b64decode(line, validate=True)
        except binascii.Error:
            key = b""
        if len(key) != KEY_SIZE:
            raise StorageError(f"{source} holds something that is no key: one key a line, 32 bytes in base64.")
        keys.append(key)
    if not keys:
        raise StorageError(f"{source} holds no key. Restore it from a backup: without it stored code cannot be read.")
    return keys


def _create(path: Path) -> str:
    """A file with a new key, or the one that another server made at the same moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _written(path, [os.urandom(KEY_SIZE)])
    try:
        # Unlike a rename this does not replace a file, and unlike an exclusive creation it is never seen half written.
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()
    return path.read_text()


def add_master_key(path: Path) -> list[bytes]:
    """Put a new master key first; the old ones stay until every data key is wrapped by the new one."""
    keys = [os.urandom(KEY_SIZE), *load_master_keys(path)]
    write_master_keys(path, keys)
    return keys


#: Master keys that stay in the file after a rotation: the new one, and the one before. A server that makes an account at that
#: moment may have read the file before, and wrap the account's key by that one; the next rotation wraps it anew.
KEPT_KEYS = 2


def write_master_keys(path: Path, keys: list[bytes]) -> None:
    _written(path, keys).replace(path)


def _written(path: Path, keys: list[bytes]) -> Path:
    """The keys in a file beside ``path``, on disk."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(b"".join(base64.b64encode(key) + b"\n" for key in keys))
        file.flush()
        os.fsync(file.fileno())
    return temporary


class BrokenSeal(StorageError):
    """A stored text is not what was stored."""


class WrongMasterKey(StorageError):
    """A data key is wrapped by a master key that is not there."""


@dataclass
class Vault:
    """Seals and opens texts of accounts."""

    masters: list[bytes]
    #: Where they come from. It is read again when they do not fit: somebody rotated them while this server runs.
    key_file: Path | None = None
    #: Data keys by their number, and the newest of each account.
    _keys: dict[int, tuple[int, bytes]] = field(default_factory=dict, repr=False)
    _newest: dict[int, int] = field(default_factory=dict, repr=False)

    def seal(self, connection: Connection, account: int, data: bytes) -> bytes:
        """``data`` so that only this server can read it."""
        number = self._newest.get(account) or self._load(connection, account)
        if not number:
            raise StorageError(f"Account {account} has no key to seal its texts with. Look with: daskscope doctor")
        nonce = os.urandom(NONCE_SIZE)
        sealed = AESGCM(self._keys[number][1]).encrypt(nonce, data, _bound(account))
        return number.to_bytes(ID_SIZE, "big") + nonce + sealed

    def open(self, connection: Connection, account: int, sealed: bytes) -> bytes:
        """What was sealed for ``account``; loud where it was changed or belongs to another."""
        number = int.from_bytes(sealed[:ID_SIZE], "big")
        if number not in self._keys:
            self._load(connection, account)
        owner, key = self._keys.get(number, (0, b""))
        if owner != account:
            raise StorageError("A stored text was sealed with a key that is gone.")
        nonce, data = sealed[ID_SIZE : ID_SIZE + NONCE_SIZE], sealed[ID_SIZE + NONCE_SIZE :]
        try:
            return AESGCM(key).decrypt(nonce, data, _bound(account))
        except (InvalidTag, ValueError):
            raise BrokenSeal("A stored text was changed: its seal is broken.") from None

    def seal_text(self, connection: Connection, account: int, text: str) -> bytes | None:
        return self.seal(connection, account, text.encode()) if text else None

    def open_text(self, connection: Connection, account: int, sealed: bytes | None) -> str:
        return self.open(connection, account, bytes(sealed)).decode() if sealed else ""

    def _load(self, connection: Connection, account: int) -> int:
        query = sa.select(account_keys).where(account_keys.c.account_id == account).order_by(account_keys.c.id)
        newest = 0
        for row in connection.execute(query):
            newest = int(row.id)
            self._keys[newest] = account, self._unwrapped(bytes(row.wrapped))
        if newest:
            self._newest[account] = newest
        return newest

    def _unwrapped(self, wrapped: bytes) -> bytes:
        try:
            return unwrap(self.masters, wrapped)
        except WrongMasterKey:
            # Not where there is none: a new one fits nothing either, and would be taken for the right one.
            if self.key_file is None or not self.key_file.is_file():
                raise
        self.masters = load_master_keys(self.key_file)
        return unwrap(self.masters, wrapped)

    def add_key(self, connection: Connection, account: int) -> None:
        """Give an account a new data key, which seals everything from now on.

        Not remembered here: a key whose transaction is rolled back must never have sealed anything.
        """
        # Somebody may have rotated the master keys since: one that is two rotations old is in no file any more, and what it wraps
        # is lost with this process. Accounts are rarely made, so the file is simply read.
        if self.key_file is not None and self.key_file.is_file():
            self.masters = load_master_keys(self.key_file)
        wrapped = wrap(self.masters[0], os.urandom(KEY_SIZE))
        connection.execute(sa.insert(account_keys).values(account_id=account, wrapped=wrapped))

    def rotate(self, connection: Connection) -> int:
        """Give every account a new data key and wrap all keys by the first master key; how many were wrapped."""
        rows = connection.execute(sa.select(account_keys)).all()
        for row in rows:
            wrapped = wrap(self.masters[0], unwrap(self.masters, bytes(row.wrapped)))
            connection.execute(sa.update(account_keys).where(account_keys.c.id == row.id).values(wrapped=wrapped))
        for account in sorted({row.account_id for row in rows}):
            self.add_key(connection, account)
        self._newest.clear()
        return len(rows)


def wrap(master: bytes, key: bytes) -> bytes:
    nonce = os.urandom(NONCE_SIZE)
    return _master_id(master) + nonce + AESGCM(master).encrypt(nonce, key, b"daskscope data key")


def unwrap(masters: list[bytes], wrapped: bytes) -> bytes:
    for master in masters:
        if _master_id(master) == wrapped[:MASTER_ID_SIZE]:
            nonce, data = wrapped[MASTER_ID_SIZE : MASTER_ID_SIZE + NONCE_SIZE], wrapped[MASTER_ID_SIZE + NONCE_SIZE :]
            try:
                return AESGCM(master).decrypt(nonce, data, b"daskscope data key")
            except (InvalidTag, ValueError):
                break
    raise WrongMasterKey(
        "The master key does not fit this database: stored code and tracebacks cannot be read. "
        "Start the server with the key file it was started with before."
    )


def _master_id(master: bytes) -> bytes:
    return hashlib.sha256(b"daskscope master key " + master).digest()[:MASTER_ID_SIZE]


def _bound(account: int) -> bytes:
    return f"account {account}".encode()
