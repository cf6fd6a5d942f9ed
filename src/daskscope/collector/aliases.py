"""Replace keys and names that a person chose by an alias, if they must not be recorded.

An alias is a hash of the text, so that the same key has the same alias in every table and in every recording of an account, and
groups stay groups. It is keyed with the account's name, which is no secret: the recorders of an account share nothing else, and
a random key per recording would make recordings incomparable. So an alias hides a text from everyone who does not know it, but
a reader who suspects a text can check it. 48 bits keep two of a million keys apart with a probability of 99.8 %.

Dask names most keys itself, after the function: ``inc-<32 hex digits>``, ``inc-<UUID>``, ``('sum-<32 hex digits>', 0)``. The
function's name stays readable, because a recording without it says nothing. A key without such a token was chosen by a person:
with ``key=`` or ``dask_key_name=``, or in a graph written by hand.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from dask.utils import key_split

_TOKEN = re.compile(r"-(?:[0-9a-f]{32}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?:-\d{1,9})?\Z")
_ALIAS = re.compile(r"key-[0-9a-f]{12}")
#: The prefix of a key that is only a token, and the prefix of a key without any text.
_DASK_PREFIXES = ("data", "Other")
_QUOTED = re.compile(r"'([^'\n]{1,500})'|\"([^\"\n]{1,500})\"")
#: Values in Dask's log lines that cannot be keys: numbers with a unit, addresses, states.
_PLAIN = re.compile(
    r"-?[\d.,]+ ?(?:[kMGTPE]?i?B|[num]?s|%|min|hr)?(?:/s)?|[a-z]+://\S*|running|paused|closing|closed|closing_gracefully|init"
    r"|failed|memory|processing|executing|released|waiting|queued|no-worker|erred|forgotten|fetch|flight|missing|ready"
    r"|constrained|cancelled|resumed|long-running|error|rescheduled|unset"
)


class Aliases:
    """The text that is recorded for a key or a name. Without ``keys`` or ``names`` it is an alias."""

    def __init__(self, *, keys: bool = True, names: bool = True, account: str = "") -> None:
        self.keys = keys
        self.names = names
        self._key = hashlib.blake2b(account.encode("utf-8", "replace"), digest_size=32, person=b"daskscope").digest()
        #: Prefixes of keys that Dask named. Prefixes of other keys are not stored: there may be as many as keys.
        self._functions: set[str] = set(_DASK_PREFIXES)

    def name(self, text: str) -> str:
        """Return a name that a person chose: of a span, a metric or a worker."""
        return text if self.names or not text else f"name-{self.digest(text)}"

    def key(self, key: Any) -> str:
        """Return a key; without ``keys``, the prefix of a key that Dask named, else its alias."""
        if self.keys:
            return _text(key)
        return str(key_split(key)) if is_named_by_dask(key) else self._alias(_text(key))

    def key_prefix(self, key: Any) -> str:
        """Return the prefix of a key."""
        prefix = str(key_split(key))
        return prefix if self.keys or is_named_by_dask(key) or prefix in _DASK_PREFIXES else self._alias(prefix)

    def note(self, key: Any) -> None:
        """Learn that a prefix is a function's name, because Dask named this key after it."""
        if not self.keys and is_named_by_dask(key):
            self._functions.add(str(key_split(key)))

    def group(self, name: Any) -> str:
        """Return the name of a task group, or of a prefix, some of whose keys were noted."""
        text = _text(name)
        return text if self.keys or text in self._functions or is_named_by_dask(text) else self._alias(text)

    def hide(self, text: str, *keys: Any) -> str:
        """Return the text with these keys replaced."""
        if self.keys or not text:
            return text
        # The longest first: a key may be the beginning of another.
        for key in sorted({_text(key) for key in keys}, key=len, reverse=True):
            if key and key in text:
                pattern = rf"(?<![\w-]){re.escape(key)}(?![\w-])"
                text = re.sub(pattern, self.key(key), text)
        return text

    def hide_quoted(self, text: str) -> str:
        """Return a text of Dask with every quoted value replaced that may be a key."""
        return text if self.keys else _QUOTED.sub(lambda found: self.value(found[1] or found[2]), text)

    def value(self, value: Any) -> str:
        """Return a value of one of Dask's log lines, if it may be a key."""
        if isinstance(value, (int, float)) or (isinstance(value, str) and _PLAIN.fullmatch(value)):
            return str(value)
        return self.key(value) if isinstance(value, (str, tuple)) else "<...>"

    def _alias(self, text: str) -> str:
        # Texts pass through an agent and the recorder; an alias of an alias would match nothing.
        return text if _ALIAS.fullmatch(text) else f"key-{self.digest(text)}"

    def digest(self, text: str) -> str:
        """Return a hash that is the same for the same text in every recording of the account."""
        return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=6, key=self._key).hexdigest()


#: Records every key and name as it is.
PLAIN = Aliases()


def is_named_by_dask(key: Any) -> bool:
    """Return whether Dask named this key, or the group of this name, after a function."""
    if isinstance(key, tuple):
        return bool(key) and isinstance(key[0], str) and _TOKEN.search(key[0]) is not None
    if not isinstance(key, str):
        return False
    if key.startswith("("):
        # A tuple as text.
        key = key.split(",", 1)[0].strip("()\"'")
    return _TOKEN.search(key) is not None


def without_token(text: str) -> str | None:
    """Return a key that Dask named without the token at its end; None for any other key."""
    found = _TOKEN.search(text)
    return text[: found.start()] if found else None


def _text(key: Any) -> str:
    return key if isinstance(key, str) else str(key)
