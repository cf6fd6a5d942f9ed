"""Encryption at rest: code, tracebacks, reports.

Envelope encryption with AES-256-GCM. A master key (a file, or given from outside) wraps one data key per account; data
keys encrypt texts. A sealed text starts with the number of its data key, so new keys can be used while old texts stay
readable. A new master key only re-wraps the data keys; deleting an account's keys makes its texts unreadable.

A text is bound to its account and its place, the row or the blob it belongs to: somebody who can write to the database cannot
make it appear elsewhere.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from dataclasses import dataclass, field

import sqlalchemy as sa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy.engine import Connection

from daskscope.storage.database import Database, StorageError, insert
from daskscope.storage.master_keys import KEY_SIZE, MasterKeys
from daskscope.storage.schema import account_keys, facts

NONCE_SIZE = 12
ID_SIZE = 8
MASTER_ID_SIZE = 4
#: Added to the number of the data key if the text is bound to its place. Texts of the first versions are not.
BOUND = 1 << 63


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
        return (number | BOUND).to_bytes(ID_SIZE, "big") + nonce + sealed

    def open(self, connection: Connection, account: int, sealed: bytes, place: str) -> bytes:
        """Return what was sealed for an account and a place; raise if it was changed or belongs elsewhere."""
        number = int.from_bytes(sealed[:ID_SIZE], "big")
        bound = _bound(account, place) if number & BOUND else _bound(account)
        number &= ~BOUND
        if number not in self._keys:
            self._load(connection, account)
        owner, key = self._keys.get(number, (0, b""))
        if owner != account:
            raise StorageError("A stored text was encrypted with a key that no longer exists.")
        nonce, data = sealed[ID_SIZE : ID_SIZE + NONCE_SIZE], sealed[ID_SIZE + NONCE_SIZE :]
        try:
            return AESGCM(key).decrypt(nonce, data, bound)
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
        """Return whether a key fits the stored fact; in a database of an earlier version, whether it fits any data key."""
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


def _bound(account: int, place: str = "") -> bytes:
    return f"account {account} {place}".strip().encode()
