"""Secrets are taken out of every text before it leaves the process."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

MASK = "***"

#: Shorter values occur by chance in ordinary text.
MIN_SECRET = 6

#: Every known value is one more alternative to try at each character.
MAX_SECRETS = 200

#: Values that are switches, not secrets, whatever their name says.
_COMMON = frozenset(
    ("true", "false", "none", "null", "default", "disabled", "enabled", "unknown", "localhost", "required", "optional")
)

_SECRET_NAME = re.compile(
    r"token|secret|passw|passphrase|pwd|credential|api[-_.]?key|access[-_.]?key|account[-_.]?key|private|cookie|dsn"
    r"|connection[-_.]?string|(?:^|[-_.])auth(?:$|[-_.]|orization)|(?:^|[-_.])key$|signature|(?:^|[-_.])sas(?:$|[-_.])",
    re.IGNORECASE,
)

#: These sound like a password and are a path; hiding it would blank every traceback.
_WORKING_DIRECTORY = frozenset(("PWD", "OLDPWD"))

# Linear by construction: every alternative has a fixed first word or a look-behind that keeps starts apart, and what is
# repeated never contains the start of the same alternative.
_PATTERNS = r"""
    (?P<pem>-----BEGIN\ [A-Z0-9\ ]{0,40}PRIVATE\ KEY-----(?s:.*?)(?:-----END\ [A-Z0-9\ ]{0,40}PRIVATE\ KEY-----|\Z))
  | (?P<url>(?<=://)[^\s/@:'"]*:[^\s/@]+(?=@))
  | (?P<jwt>(?<![\w-])eyJ[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*)?)
  | (?P<vendor>(?<![\w-])(?:(?:AKIA|ASIA)[A-Z0-9]{16}|gh[pousr]_\w{20,}|github_pat_\w{20,}|xox[abeprs]-[\w-]{10,}|sk-[\w-]{20,}))
  | (?P<bearer>(?i:\bbearer)\s{1,4})[\w.~+/=-]{6,}
  | (?P<name>(?i:passw(?:or)?d|passphrase|pwd|secrets?|token|api[-_]?key|access[-_]?key|account[-_]?key|private[-_]?key
        |credentials?|(?<![a-z])auth(?:orization)?|cookies?|dsn|signature)(?:[-_]\w{0,40})?\\?["']?\s{0,3}[=:]\s{0,3})
    (?!(?i:none|true|false|null)\b)
    (?:[bBrRuU]{0,2}\\?"[^"\n]*"?|[bBrRuU]{0,2}\\?'[^'\n]*'?|(?:(?i:basic|bearer|digest)\s{1,4})?[^\s"'&,;)\]}]+)
"""
_KEPT = ("bearer", "name")


class Scrubber:
    """Replaces known secrets, and text that looks like one, by ``***``."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = sorted({value for value in secrets if _is_secret(value)}, key=len, reverse=True)[:MAX_SECRETS]
        # Sorted by length: where one secret is the beginning of another, the longer one is taken out whole.
        alternatives = [re.escape(value) for value in known] + [_PATTERNS]
        self._regex = re.compile("|".join(alternatives), re.VERBOSE)

    @classmethod
    def gather(cls, environ: Mapping[str, str], dask_config: Mapping[str, Any]) -> Scrubber:
        """Know every value whose name, in the environment or in dask's configuration, sounds secret."""
        pairs = [*environ.items(), *_leaves(dask_config)]
        return cls(value for name, value in pairs if _SECRET_NAME.search(name) and name not in _WORKING_DIRECTORY)

    def scrub(self, text: str) -> str:
        return self._regex.sub(_masked, text)


def bounded(text: str, limit: int) -> str:
    """At most ``limit`` characters: head and tail, and between them how many were cut."""
    if len(text) <= limit:
        return text
    marker = f"\n... {len(text)} characters cut ...\n"
    room = max(limit - len(marker), 0)
    head, tail = room - room // 2, room // 2
    marker = f"\n... {len(text) - head - tail} characters cut ...\n"
    return (text[:head] + marker + (text[-tail:] if tail else ""))[: max(limit, 0)]


def _masked(found: re.Match[str]) -> str:
    kept = next((found[name] for name in _KEPT if found[name]), "")
    return kept + MASK


def _is_secret(value: str) -> bool:
    return len(value) >= MIN_SECRET and value.strip().lower() not in _COMMON and not value.isspace()


def _leaves(config: Mapping[str, Any], path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Every text in a nested configuration with its dotted name; a list counts under the name of the list."""
    if depth > 20:  # a configuration that contains itself
        return
    for name, value in config.items():
        here = f"{path}.{name}" if path else str(name)
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, Mapping):
                yield from _leaves(item, here, depth + 1)
            elif isinstance(item, (str, bytes)):
                yield here, item if isinstance(item, str) else item.decode("utf-8", "replace")
