"""Encryption at rest: code, tracebacks, reports.

Envelope encryption with AES-256-GCM. A master key (a file, or given from outside) wraps one data key per account; data
keys encrypt texts. A sealed text starts with the number of its data key, so new keys can be used while old texts stay
readable. A new master key only re-wraps the data keys; deleting an account's keys makes its texts unreadable.

A text is bound to its account and its place, the row or the blob it belongs to: somebody who can write to the database cannot
make it appear elsewhere.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import secrets
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import sqlalchemy as sa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy.engine import Connection

from daskscope.storage.base.database import Database, StorageError, insert
from daskscope.storage.schema import account_keys, facts

KEY_SIZE = 32
#: How long a command may take.
COMMAND_S = 60


@dataclass(frozen=True)
class MasterKeys:
    """Where the master keys come from: the text if there is one, else the output of the command, else the file."""

    file: Path
    text: str = ""
    command: str = ""

    @property
    def exists(self) -> bool:
        """Return whether loading the keys would not create them."""
        return bool(self.text or self.command) or self.file.is_file()

    def load(self) -> list[bytes]:
        """Return the keys, the current one first. A missing file is created."""
        if self.text:
            return parse_master_keys(self.text, "DASKSCOPE_SERVER_MASTER_KEY")
        if self.command:
            return parse_master_keys(_output(self.command), "The output of --key-command")
        return load_master_keys(self.file)

    def add(self) -> list[bytes]:
        """Return the keys with a new one first. Keys from outside are not ours to change: expect the new one in them."""
        if not (self.text or self.command):
            return add_master_key(self.file)
        keys = self.load()
        if len(keys) < 2:
            raise StorageError(
                "The master key comes from outside the data directory. To rotate it, give the new key and the old key, in this "
                "order and on two lines, and run this again."
            )
        return keys

    def drop_old(self, keys: list[bytes]) -> None:
        """Remove old keys from the file once every data key is wrapped by the new one."""
        if not (self.text or self.command):
            write_master_keys(self.file, keys[:KEPT_KEYS])


def _output(command: str) -> str:
    try:
        done = subprocess.run(
            command, shell=True, check=True, timeout=COMMAND_S, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
        )
    except subprocess.SubprocessError as error:
        # Not the output, which may contain a key.
        why = f"status {error.returncode}" if isinstance(error, subprocess.CalledProcessError) else type(error).__name__
        raise StorageError(
            f"--key-command failed ({why}). Run it by hand: it prints the master key in base64."
        ) from None
    return done.stdout.decode("ascii", "replace")


def load_master_keys(path: Path) -> list[bytes]:
    """Return the master keys of a file, the current one first. Create the file if it does not exist."""
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
            raise StorageError(
                f"{source} contains something that is not a key. Expected one key per line, 32 bytes in base64."
            )
        keys.append(key)
    if not keys:
        raise StorageError(
            f"{source} contains no key. Restore it from a backup: without it, stored code cannot be read."
        )
    return keys


def _create(path: Path) -> str:
    """Create a file with a new key, or return the one that another server created at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _written(path, [os.urandom(KEY_SIZE)])
    try:
        # Unlike a rename, a link does not replace a file; unlike exclusive creation, it is never seen half written.
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()
    return path.read_text()


def add_master_key(path: Path) -> list[bytes]:
    """Add a new master key as the current one. Old ones stay until every data key is re-wrapped."""
    keys = [os.urandom(KEY_SIZE), *load_master_keys(path)]
    write_master_keys(path, keys)
    return keys


#: Master keys that stay in the file after a rotation: the new one and the previous one. A server that creates an
#: account at that moment may wrap its key with the previous one; the next rotation re-wraps it.
KEPT_KEYS = 2


def write_master_keys(path: Path, keys: list[bytes]) -> None:
    _written(path, keys).replace(path)


def _written(path: Path, keys: list[bytes]) -> Path:
    """Write the keys to a file next to ``path``, durably."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(b"".join(base64.b64encode(key) + b"\n" for key in keys))
        file.flush()
        os.fsync(file.fileno())
    return temporary


NONCE_SIZE = 12
ID_SIZE = 8
MASTER_ID_SIZE = 4


#: The fact that tells whether a master key is the one of a database: a constant, wrapped by the key.
CHECK = "master key"

OTHER_KEY = (
    "The master key of this server is not the one of its database, so it could neither read nor store code and tracebacks. "
    "Start it with the key of the other servers on this database, or with the key of the backup: --key-file, --key-command "
    "or DASKSCOPE_SERVER_MASTER_KEY."
)


class BrokenSeal(StorageError):
    """A stored text was changed."""


class WrongMasterKey(StorageError):
    """A data key is wrapped by a master key that is missing."""


@dataclass
class Vault:
    """Encrypts and decrypts texts of accounts."""

    masters: list[bytes]
    #: Loads the master keys again if they do not fit: they may have been rotated while this server runs.
    source: MasterKeys | None = None
    #: Data keys by number, and the newest and the oldest number of each account.
    _keys: dict[int, tuple[int, bytes]] = field(default_factory=dict, repr=False)
    _newest: dict[int, int] = field(default_factory=dict, repr=False)
    _oldest: dict[int, int] = field(default_factory=dict, repr=False)

    def seal(self, connection: Connection, account: int, data: bytes, place: str) -> bytes:
        """Return ``data`` encrypted for an account and a place."""
        number = self._newest.get(account) or self._load(connection, account)
        if not number:
            raise StorageError(f"Account {account} has no encryption key. Run: daskscope doctor")
        nonce = os.urandom(NONCE_SIZE)
        sealed = AESGCM(self._keys[number][1]).encrypt(nonce, data, _bound(account, place))
        return number.to_bytes(ID_SIZE, "big") + nonce + sealed

    def open(self, connection: Connection, account: int, sealed: bytes, place: str) -> bytes:
        """Return the content that was sealed for an account and a place; raise if it was changed or belongs elsewhere."""
        number = int.from_bytes(sealed[:ID_SIZE], "big")
        if number not in self._keys:
            self._load(connection, account)
        owner, key = self._keys.get(number, (0, b""))
        if owner != account:
            raise StorageError("A stored text was encrypted with a key that no longer exists.")
        nonce, data = sealed[ID_SIZE : ID_SIZE + NONCE_SIZE], sealed[ID_SIZE + NONCE_SIZE :]
        try:
            return AESGCM(key).decrypt(nonce, data, _bound(account, place))
        except (InvalidTag, ValueError):
            raise BrokenSeal("A stored text was changed and cannot be decrypted.") from None

    def seal_text(self, connection: Connection, account: int, text: str, place: str) -> bytes | None:
        return self.seal(connection, account, text.encode(), place) if text else None

    def open_text(self, connection: Connection, account: int, sealed: bytes | None, place: str) -> str:
        return self.open(connection, account, bytes(sealed), place).decode() if sealed else ""

    def word_hash(self, connection: Connection, account: int, word: str) -> int:
        """Return a hash of a word that only this account's key yields, for an index of encrypted texts."""
        return int.from_bytes(self._keyed_hash(connection, account, f"search {word}")[:8], "big", signed=True)

    def sign(self, connection: Connection, account: int, text: str) -> str:
        """Return a signature that only this account's key yields. All servers on the database yield the same."""
        return self._keyed_hash(connection, account, f"signature {text}").hex()

    def _keyed_hash(self, connection: Connection, account: int, text: str) -> bytes:
        if account not in self._oldest:
            self._load(connection, account)
        # The oldest key: new ones must not change the hashes.
        key = self._keys[self._oldest[account]][1]
        return hmac.digest(key, b"daskscope " + text.encode("utf-8", "replace"), "sha256")

    def _load(self, connection: Connection, account: int) -> int:
        query = sa.select(account_keys).where(account_keys.c.account_id == account).order_by(account_keys.c.id)
        newest = 0
        for row in connection.execute(query):
            newest = int(row.id)
            self._oldest.setdefault(account, newest)
            self._keys[newest] = account, self._unwrapped(bytes(row.wrapped))
        if newest:
            self._newest[account] = newest
        return newest

    def _unwrapped(self, wrapped: bytes) -> bytes:
        try:
            return unwrap(self.masters, wrapped)
        except WrongMasterKey:
            # Do not create a file here: a new key fits nothing and would be mistaken for the right one.
            if self.source is None or not self.source.exists:
                raise
        self.masters = self.source.load()
        return unwrap(self.masters, wrapped)

    def add_key(self, connection: Connection, account: int) -> None:
        """Give an account a new data key for everything sealed from now on.

        It is not cached here: a key whose transaction is rolled back must never have sealed anything.
        """
        # The master keys may have been rotated: one that is two rotations old is in no file, and what it wraps would be
        # lost with this process. Accounts are created rarely, so read the file again.
        if self.source is not None and self.source.exists:
            self.masters = self.source.load()
        wrapped = wrap(self.masters[0], os.urandom(KEY_SIZE))
        connection.execute(sa.insert(account_keys).values(account_id=account, wrapped=wrapped))

    def rotate(self, connection: Connection) -> int:
        """Give every account a new data key and wrap all keys with the first master key. Return how many were wrapped."""
        rows = connection.execute(sa.select(account_keys)).all()
        for row in rows:
            wrapped = wrap(self.masters[0], unwrap(self.masters, bytes(row.wrapped)))
            connection.execute(sa.update(account_keys).where(account_keys.c.id == row.id).values(wrapped=wrapped))
        for account in sorted({row.account_id for row in rows}):
            self.add_key(connection, account)
        self._newest.clear()
        connection.execute(sa.delete(facts).where(facts.c.name == CHECK))
        self.check(connection)
        return len(rows)

    def check(self, connection: Connection) -> None:
        """Raise ``WrongMasterKey`` unless these are the master keys of the database. The first server decides which those are."""
        if not self._fits(connection):
            raise WrongMasterKey(OTHER_KEY)
        fact = insert(connection, facts).values(name=CHECK, value=wrap(self.masters[0], bytes(KEY_SIZE)).hex())
        connection.execute(fact.on_conflict_do_nothing())
        # Another server may have stored its own in the meantime.
        if not self._fits(connection):
            raise WrongMasterKey(OTHER_KEY)

    def _fits(self, connection: Connection) -> bool:
        """Return whether a key fits the stored fact. Without it, during a rotation or after damage, a key must fit a data key."""
        stored = connection.execute(sa.select(facts.c.value).where(facts.c.name == CHECK)).scalar()
        if stored is not None:
            return self._unwraps(bytes.fromhex(stored))
        wrapped = [bytes(row) for row in connection.execute(sa.select(account_keys.c.wrapped)).scalars()]
        return not wrapped or any(map(self._unwraps, wrapped))

    def _unwraps(self, wrapped: bytes) -> bool:
        try:
            unwrap(self.masters, wrapped)
        except WrongMasterKey:
            return False
        return True


def open_vault(database: Database, keys: MasterKeys) -> Vault:
    """Return the vault of a server; raise ``WrongMasterKey`` if its master key is not the one of the database."""
    if not keys.exists:
        with database.read() as connection:
            has_key = sa.exists().where(facts.c.name == CHECK) | sa.exists(sa.select(account_keys.c.id))
            is_used = connection.execute(sa.select(has_key)).scalar()
        # Look again: a server that starts at the same time creates the file before it uses the database.
        if is_used and not keys.exists:
            # Do not create a key file: it would be mistaken for the right one.
            raise WrongMasterKey(OTHER_KEY)
    vault = Vault(keys.load(), keys)
    with database.write() as connection:
        vault.check(connection)
    return vault


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


def _bound(account: int, place: str) -> bytes:
    return f"account {account} {place}".encode()
