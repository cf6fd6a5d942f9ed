"""A moment of the server's answers, as the clock on the wall of whoever reads it."""

from __future__ import annotations

from datetime import datetime


def minute(text: str | None, never: str = "") -> str:
    """``2026-05-01 14:03`` in local time; ``never`` for none."""
    return (
        datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone().strftime("%Y-%m-%d %H:%M") if text else never
    )
