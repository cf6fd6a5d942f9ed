"""Tokens of servers, in a file of their own that only its owner can read.

Not in dask's configuration: that is printed in bug reports, and has been with tokens in it. ``DASKSCOPE_TOKEN`` takes the
place of the file, for machines nobody logs in on.
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

    def __repr__(self) -> str:
        return f"<Credential for {self.account} at {self.server}>"


def path() -> Path:
    # Dask reads every .json and .yaml there as configuration.
    return Path(dask.config.PATH) / "daskscope.credentials"


def load() -> list[Credential]:
    """All that are stored; the one used last comes first."""
    try:
        stored = json.loads(path().read_text())
        return [
            Credential(**{name: str(item[name]) for name in ("server", "account", "user", "token")}) for item in stored
        ]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DaskscopeError(
            f"The credentials in {path()} cannot be read ({error}). Remove the file and log in again: daskscope login"
        ) from None


def save(credential: Credential) -> Path:
    """Store a token and make its server and account the ones used by default."""
    others = [old for old in load() if (old.server, old.account) != (credential.server, credential.account)]
    _write([credential, *others])
    return path()


def forget(server: str) -> int:
    """Remove the tokens of a server; how many there were."""
    stored = load()
    kept = [credential for credential in stored if credential.server != server]
    if len(kept) < len(stored):
        _write(kept)
    return len(stored) - len(kept)


def _write(credentials: list[Credential]) -> None:
    file = path()
    temporary = file.with_suffix(".new")
    text = json.dumps([asdict(credential) for credential in credentials], indent=2)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Made anew: a file that is there already would keep whoever may read it.
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(text + "\n")
        temporary.replace(file)
    except OSError as error:
        raise DaskscopeError(
            f"{file} cannot be written: {error.strerror}. Set DASK_CONFIG to a directory of yours, or {ENVIRONMENT} to the token."
        ) from None


def find(server: str, account: str = "") -> str:
    """The token for a server (and account); empty where there is none."""
    given = os.environ.get(ENVIRONMENT, "")
    if given:
        return given
    server = server.rstrip("/")
    mine = [item for item in load() if item.server == server and (not account or item.account == account)]
    return mine[0].token if mine else ""


def accounts(server: str) -> list[str]:
    """The accounts of a server that there are tokens for, the one used last first."""
    return [item.account for item in load() if item.server == server.rstrip("/")]


def default_server() -> str:
    """The server of the last login; empty where there was none."""
    stored = load()
    return stored[0].server if stored else ""
