"""The secret of a server without sign-in.

Every user of a machine can reach a loopback port, so the port alone identifies nobody. The secret is in the URL that the
server prints, and in a file of the data directory, so that bookmarks survive a restart.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from daskscope.server.settings import SettingsError

#: 256 bits, in 43 characters.
SIZE = 32
SHORTEST = 22


@dataclass(frozen=True)
class LocalSecret:
    """The secret, and the two values that a browser gets for it, as for a session: a cookie and a page secret.

    They are derived, so that neither reveals the secret, and all tabs of a browser have the same.
    """

    value: str = field(repr=False)

    @property
    def cookie(self) -> str:
        return self._derived("cookie")

    @property
    def page(self) -> str:
        return self._derived("page")

    def is_value(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(errors="replace"), self.value.encode())

    def is_cookie(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(errors="replace"), self.cookie.encode())

    def _derived(self, purpose: str) -> str:
        return hmac.new(self.value.encode(), f"daskscope {purpose}".encode(), hashlib.sha256).hexdigest()


def load_secret(path: Path) -> LocalSecret:
    """Return the secret in a file. Create the file if it does not exist."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        text = _create(path)
    except (OSError, ValueError) as error:
        raise SettingsError(f"The secret in {path} cannot be read: {error}.") from None
    value = text.strip()
    if len(value) < SHORTEST or not value.replace("-", "").replace("_", "").isalnum() or not value.isascii():
        raise SettingsError(f"{path} contains no secret. Delete it, and the server creates a new one.")
    return LocalSecret(value)


def _create(path: Path) -> str:
    """Create the file, or return the secret that another server created at the same time."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{secrets.token_urlsafe(SIZE)}\n")
    try:
        # Unlike a rename, a link does not replace a file; unlike exclusive creation, it is never seen half written.
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()
    return path.read_text()
