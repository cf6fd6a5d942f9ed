"""The tokens that a server used recently, with what they allow."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from daskscope.storage.accounts import Account
from daskscope.storage.tokens import Token, digest

#: How long a token is cached. Servers on one PostgreSQL tell each other about revocations; if a notification is lost, a
#: revocation on another server takes this long at most.
CACHE_US = 30 * 1_000_000
MAX_CACHED = 10_000


@dataclass(frozen=True)
class Known:
    """A token that was looked up, with its account, and whether its user administers the server."""

    token: Token
    account: Account
    admin: bool


class TokenCache:
    """Recently used tokens, so that a batch needs no query for its token."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens: dict[str, tuple[int, Known]] = {}
        self._age = 0

    def get(self, secret: str, now_us: int, load: Callable[[], Known | None]) -> Known | None:
        key = digest(secret)
        with self._lock:
            kept, age = self._tokens.get(key), self._age
        if kept is not None and 0 <= now_us - kept[0] < CACHE_US:
            return kept[1]
        found = load()
        with self._lock:
            if len(self._tokens) >= MAX_CACHED:
                self._tokens.clear()
            self._tokens.pop(key, None)
            # Do not cache what was read before a change.
            if found is not None and age == self._age:
                self._tokens[key] = now_us, found
        return found

    def peek(self, secret: str, now_us: int) -> Known | None:
        """Return a cached token; None if the database must be asked."""
        kept = self._tokens.get(digest(secret))
        return kept[1] if kept is not None and 0 <= now_us - kept[0] < CACHE_US else None

    def clear(self) -> None:
        """Forget all tokens after a change of tokens, members or accounts."""
        with self._lock:
            self._tokens.clear()
            self._age += 1
