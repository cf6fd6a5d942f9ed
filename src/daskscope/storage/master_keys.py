"""Master keys: a file in the data directory by default, or a file, a variable or a command outside of it."""

from __future__ import annotations

import base64
import binascii
import os
import secrets
import subprocess
from dataclasses import dataclass
from pathlib import Path

from daskscope.storage.database import StorageError

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
