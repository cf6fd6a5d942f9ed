"""Store the tokens of servers in a file that only its owner can read.

They are not in Dask's configuration, because that is printed in bug reports. ``DASKSCOPE_TOKEN`` replaces the file, for
machines without a sign-in.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import dask.config

from daskscope.errors import DaskscopeError

ENVIRONMENT = "DASKSCOPE_TOKEN"


@dataclass(frozen=True)
class Credential:
    """A token for one account of one server."""

    server: str
    account: str
    user: str
    token: str
    #: When the token expires, as ISO 8601; empty if never or unknown.
    expires: str = ""

    def __repr__(self) -> str:
        return f"<Credential for {self.account} at {self.server}>"


def path() -> Path:
    """Return the path of the file."""
    # Not .json or .yaml, which Dask would read as configuration.
    return Path(dask.config.PATH) / "daskscope.credentials"


def load() -> list[Credential]:
    """Return all stored tokens, the most recent sign-in first."""
    try:
        stored = json.loads(path().read_text())
        return [
            Credential(
                **{name: str(item[name]) for name in ("server", "account", "user", "token")},
                # Files of earlier versions do not have it.
                expires=str(item.get("expires") or ""),
            )
            for item in stored
        ]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DaskscopeError(
            f"The credentials in {path()} cannot be read ({error}). Delete the file and sign in again: daskscope login"
        ) from None


def save(credential: Credential) -> Path:
    """Store a token and make its server and account the default."""
    others = [old for old in load() if (old.server, old.account) != (credential.server, credential.account)]
    _write([credential, *others])
    return path()


def _write(credentials: list[Credential]) -> None:
    file = path()
    temporary = file.with_suffix(".new")
    text = json.dumps([asdict(credential) for credential in credentials], indent=2)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Create a new file: an existing one would keep its permissions.
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(text + "\n")
        temporary.replace(file)
    except OSError as error:
        raise DaskscopeError(
            f"{file} cannot be written: {error.strerror}. "
            f"Set DASK_CONFIG to a directory you can write to, or {ENVIRONMENT} to the token."
        ) from None


def find(server: str, account: str = "") -> str:
    """Return the token for a server (and account); empty if there is none."""
    given = os.environ.get(ENVIRONMENT, "")
    if given:
        return given
    return find_stored(server, account)


def find_stored(server: str, account: str = "") -> str:
    """Return the token of a sign-in to this server; empty if there is none."""
    found = find_credential(server, account)
    return found.token if found else ""


def find_credential(server: str, account: str = "") -> Credential | None:
    """Return the most recent sign-in to this server (and account)."""
    server = server.rstrip("/")
    matching = (item for item in load() if item.server == server and (not account or item.account == account))
    return next(matching, None)


def accounts(server: str) -> list[str]:
    """Return the accounts of a server with a stored token, the most recent sign-in first."""
    return [item.account for item in load() if item.server == server.rstrip("/")]


def default_server() -> str:
    """Return the server of the most recent sign-in; empty if there is none."""
    stored = load()
    return stored[0].server if stored else ""
