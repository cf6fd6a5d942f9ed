"""Store the tokens of servers in a file that only its owner can read.

They are not in Dask's configuration, because that is printed in bug reports. ``DASKSCOPE_TOKEN`` replaces the file, for
machines without a sign-in.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import dask.config

from daskscope.errors import DaskscopeError

ENVIRONMENT = "DASKSCOPE_TOKEN"


@dataclass(frozen=True)
class Credential:
    """A token of one server, for one account or for all accounts of its user."""

    server: str
    #: The only account of the token; the default one if it is for all.
    account: str
    user: str
    token: str
    #: When the token expires, as ISO 8601; empty if never or unknown.
    expires: str = ""
    all_accounts: bool = False

    def __repr__(self) -> str:
        return f"<Credential for {self.account} at {self.server}>"


def path() -> Path:
    """Return the path of the file."""
    # Not .json or .yaml, which Dask would read as configuration.
    return Path(dask.config.PATH) / "daskscope.credentials"


def load() -> list[Credential]:
    """Return all stored tokens. The first has the default server, and the first of a server its default account."""
    try:
        stored = json.loads(path().read_text())
        return [
            Credential(
                **{name: str(item[name]) for name in ("server", "account", "user", "token", "expires")},
                all_accounts=item["all_accounts"] is True,
            )
            for item in stored
        ]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DaskscopeError(
            f"The credentials in {path()} cannot be read ({error}). Delete the file and sign in again: daskscope login"
        ) from None


def save(credential: Credential, accounts: Collection[str] = ()) -> str:
    """Store a token, make its server the default, and return the default account.

    That stays what it was, unless no token of this server is stored, or the user, who is in these ``accounts``, left it.
    """
    stored = load()
    here = [old for old in stored if old.server == credential.server]
    default = here[0].account if here else credential.account
    if credential.all_accounts and default not in accounts:
        default = credential.account
    if credential.all_accounts:
        credential = replace(credential, account=default)
        here = [old for old in here if not old.all_accounts]
    here = [credential, *(old for old in here if old.account != credential.account)]
    # The token of the default account first; the order of the others does not matter.
    here.sort(key=lambda one: one.account != default)
    _write([*here, *(old for old in stored if old.server != credential.server)])
    return default


def use_account(server: str, account: str) -> None:
    """Make an account that a stored token is for the default of its server."""
    chosen = find_credential(server, account)
    if chosen is None:
        raise DaskscopeError(f"No saved token is for {account}. Sign in: daskscope login --account {account}")
    others = [old for old in load() if old.token != chosen.token]
    _write([replace(chosen, account=account), *others])


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
    """Return the stored token for an account of a server: its own, else one for all accounts."""
    here = [item for item in load() if item.server == server.rstrip("/")]
    exact = (item for item in here if not account or item.account == account)
    return next(exact, None) or next((item for item in here if item.all_accounts), None)


def accounts(server: str) -> list[str]:
    """Return the accounts of a server with a stored token, the default one first."""
    return [item.account for item in load() if item.server == server.rstrip("/")]


def default_account(server: str) -> str:
    """Return the default account of a server; empty if no token is stored, or if the environment has one."""
    found = None if os.environ.get(ENVIRONMENT) else find_credential(server)
    return found.account if found else ""


def default_server() -> str:
    """Return the server of the most recent sign-in; empty if there is none."""
    stored = load()
    return stored[0].server if stored else ""
