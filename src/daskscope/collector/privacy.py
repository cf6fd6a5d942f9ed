"""Remove secrets from every text before it leaves the process."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from .rows import Columns
from .secret_patterns import RULES, Rule

MASK = "***"

#: Shorter values also occur in ordinary text by chance.
MIN_SECRET = 6

#: Every known secret is searched for in every text.
MAX_SECRETS = 1_000

#: Values that are never secrets, even if their name suggests one.
_COMMON = frozenset(
    ("true", "false", "none", "null", "default", "disabled", "enabled", "unknown", "localhost", "required", "optional")
)

_SECRET_NAME = re.compile(
    r"token|secret|passw|passphrase|pwd|credential|api[-_.]?key|access[-_.]?key|account[-_.]?key|private|cookie|dsn"
    r"|connection[-_.]?string|(?:^|[-_.])auth(?:$|[-_.]|orization)|(?:^|[-_.])key$|signature|(?:^|[-_.])sas(?:$|[-_.])",
    re.IGNORECASE,
)

#: These sound like passwords but are paths, which occur in every traceback.
_WORKING_DIRECTORY = frozenset(("PWD", "OLDPWD"))

#: Short texts repeat: names of groups, prefixes and functions. Up to this length, and this many, their result is remembered.
MAX_REMEMBERED_LENGTH = 200
MAX_REMEMBERED = 10_000

_HINTS = [(hint, rule) for rule in RULES for hint in rule.hints]

#: Types of cells that are or contain text; all cells of a column have one of them, or none has.
_TEXTS = (str, list, tuple)


class Scrubber:
    """Replaces known secrets, and text that looks like one, by ``***``."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        values = {value for value in secrets if _is_secret(value)}
        # A secret in a URL may be quoted.
        values |= {quote(value, safe="") for value in values}
        # Sorted by length, so that a secret is masked whole even if another secret is its beginning.
        self._known = sorted(values, key=len, reverse=True)[:MAX_SECRETS]
        self._remembered: dict[str, str] = {}

    @classmethod
    def gather(cls, environ: Mapping[str, str], dask_config: Mapping[str, Any]) -> Scrubber:
        """Return a scrubber of all values whose name, in the environment or in Dask's configuration, suggests a secret."""
        pairs = [*environ.items(), *_leaves(dask_config)]
        return cls(value for name, value in pairs if _SECRET_NAME.search(name) and name not in _WORKING_DIRECTORY)

    def scrub(self, text: str) -> str:
        """Return the text with every secret masked."""
        for secret in self._known:
            if secret in text:
                text = text.replace(secret, MASK)
        for rule in self._rules(text):
            text = rule.regex.sub(_masked, text)
        return text

    def is_clean(self, text: str) -> bool:
        """Return whether a text certainly contains no secret; much faster than scrubbing it."""
        return not any(secret in text for secret in self._known) and not self._rules(text)

    def scrub_name(self, text: str) -> str:
        """Return a text that probably repeats, with every secret masked."""
        found = self._remembered.get(text)
        if found is None:
            found = self.scrub(text)
            if len(text) <= MAX_REMEMBERED_LENGTH:
                if len(self._remembered) >= MAX_REMEMBERED:
                    self._remembered.clear()
                self._remembered[text] = found
        return found

    def scrub_value(self, name: str, value: str) -> str:
        """Return the value of a field; it is masked if the field's name suggests a secret."""
        scrubbed, field = self.scrub(value), f"{name}={value}"
        return MASK if scrubbed == value and self.scrub(field) != field else scrubbed

    def scrub_json(self, text: str) -> str:
        """Return a JSON object with every secret masked; any other text like ``scrub_name``."""
        if not text.startswith("{"):
            return self.scrub_name(text)
        if self.is_clean(text):
            return text
        try:
            return json.dumps(self._scrub_tree(json.loads(text)))
        except (ValueError, RecursionError):
            return self.scrub(text)

    def scrub_columns(self, columns: Columns) -> Columns:
        """Return the rows of a table with every secret masked."""
        return {
            name: list(map(self._scrub_cell, values)) if values and type(values[0]) in _TEXTS else values
            for name, values in columns.items()
        }

    def _scrub_cell(self, value: Any) -> Any:
        if type(value) is str:
            return self.scrub_json(value)
        if type(value) in _TEXTS:
            return [self.scrub_name(item) if type(item) is str else item for item in value]
        return value

    def _scrub_tree(self, tree: Any) -> Any:
        if isinstance(tree, dict):
            return {
                self.scrub(name): self.scrub_value(name, value) if isinstance(value, str) else self._scrub_tree(value)
                for name, value in tree.items()
            }
        if isinstance(tree, list):
            return [self._scrub_tree(item) for item in tree]
        return self.scrub(tree) if isinstance(tree, str) else tree

    def _rules(self, text: str) -> list[Rule]:
        """Return the rules that may match the text."""
        lower = text.lower()
        # A flat list: a loop over rules with a loop over their hints takes ten times as long.
        return list({rule: None for hint, rule in _HINTS if hint in lower})


def bounded(text: str, limit: int) -> str:
    """Cut a text to ``limit`` characters: its head and tail, and between them the number of characters cut."""
    if len(text) <= limit:
        return text
    marker = f"\n... {len(text)} characters cut ...\n"
    room = max(limit - len(marker), 0)
    head, tail = room - room // 2, room // 2
    marker = f"\n... {len(text) - head - tail} characters cut ...\n"
    return (text[:head] + marker + (text[-tail:] if tail else ""))[: max(limit, 0)]


def _masked(found: re.Match[str]) -> str:
    group = found.lastgroup
    if group is None:
        return found[0]
    start, stop = (position - found.start() for position in found.span(group))
    return found[0][:start] + MASK + found[0][stop:]


def _is_secret(value: str) -> bool:
    return len(value) >= MIN_SECRET and value.strip().lower() not in _COMMON and not value.isspace()


def _leaves(config: Mapping[str, Any], path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield every text in a nested configuration with its dotted name; elements of a list have the list's name."""
    if depth > 20:  # a configuration that contains itself
        return
    for name, value in config.items():
        here = f"{path}.{name}" if path else str(name)
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, Mapping):
                yield from _leaves(item, here, depth + 1)
            elif isinstance(item, (str, bytes)):
                yield here, item if isinstance(item, str) else item.decode("utf-8", "replace")
