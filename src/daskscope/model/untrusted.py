"""Bounds on data from recorders, and functions that enforce them.

A recorder may be hostile. Everything it sends is cut to these bounds, so that any database can store it and add it up.
"""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import Any

from daskscope.units import DAY

#: Distinct names of one kind in a batch; the recorder's own batches of 20,000 tasks have some hundred.
MAX_NAMES = 2_000
#: Pairs of names: a computation and a prefix, or a day and a prefix.
MAX_PAIRS = 5_000
#: Steps of the timeline in a batch: two hours, while the recorder closes a batch every few seconds.
MAX_BUCKETS = 720
MAX_DAYS = 400
MAX_EXCEPTIONS = 1_000
#: Entity rows in a batch: as many as a writer puts into one.
MAX_ENTITIES = 20_000
#: Replaces the names beyond ``MAX_NAMES``.
OTHER = "(other)"
MAX_DURATION = 366 * DAY
#: Bound of every number and every sum: exact as a float, and a thousand of them still fit into 64 bits.
LARGEST = 1 << 53
#: Bytes of a name. Five names make a key of the catalog, and PostgreSQL cannot index keys above 2,704 bytes.
NAME_NBYTES = 500
#: Characters of a text, and of all texts of a batch. A text that a thousand rows share is small only on the wire.
TEXT_LENGTH, ALL_TEXTS = 100_000, 8_000_000
#: Levels of JSON; the recorder's own has three. Python's parser follows a thousand and then raises, but a garbage collection that
#: begins so deep cannot call the finalizers of what it collects.
MAX_DEPTH = 100

_QUOTED = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_BRACKETS = re.compile(r"[][{}]")


def clean(value: Any, *, signed: bool = False) -> Any:
    """Return a value that any database can store and add up: a valid name, or a finite number within bounds."""
    if isinstance(value, str):
        return clean_name(value)
    if isinstance(value, float):
        return min(max(value, -float(LARGEST)), float(LARGEST)) if isfinite(value) else 0.0
    return min(max(value, -LARGEST if signed else 0), LARGEST)


def clean_name(text: str) -> str:
    """Return a name of at most ``NAME_NBYTES`` bytes, without NUL and lone surrogates."""
    text = clean_text(text, NAME_NBYTES)
    if len(text) * 4 <= NAME_NBYTES or text.isascii():
        return text
    return text.encode()[:NAME_NBYTES].decode(errors="ignore")


def clean_text(text: str, length: int) -> str:
    """Return at most ``length`` characters of a text, without NUL and lone surrogates."""
    text = encodable(text[:length])
    return text.replace("\0", "�") if "\0" in text else text


def encodable(text: str) -> str:
    """Return a text that UTF-8 can encode: names may contain lone surrogates."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def check_depth(text: str) -> None:
    """Raise ``ValueError`` if a JSON text has more than ``MAX_DEPTH`` levels."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for bracket in _BRACKETS.findall(_QUOTED.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_DEPTH:
            raise ValueError("it is nested too deeply")


def parse_json(text: str) -> Any:
    """Parse JSON. Raise ``ValueError`` if it is invalid or nested too deeply."""
    check_depth(text)
    return json.loads(text)


def parse_object(text: str) -> dict[str, Any]:
    """Return the JSON object in a text; empty if the text is invalid or has another value."""
    try:
        value = parse_json(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
