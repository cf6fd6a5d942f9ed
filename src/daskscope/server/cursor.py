"""Where a page of a list ended, as text a client hands back unread."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from daskscope.server.failure import bad_request

MOST = 1_000


def encode(*place: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def decode(text: str, *kinds: type) -> tuple[Any, ...] | None:
    """The place a cursor stands for; None for the beginning."""
    if not text:
        return None
    try:
        place = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (binascii.Error, ValueError):
        place = None
    fits = isinstance(place, list) and len(place) == len(kinds)
    if not fits or any(type(value) is not kind or _too_big(value) for value, kind in zip(place, kinds)):
        raise bad_request("This cursor is none that was given out. Begin again without one.")
    return tuple(place)


def _too_big(value: Any) -> bool:
    return isinstance(value, int) and abs(value) >= 1 << 63
