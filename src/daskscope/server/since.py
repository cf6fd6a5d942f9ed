"""``since`` as people write it: ``7 days``, ``2h``, seconds, or a moment."""

from __future__ import annotations

from datetime import datetime, timezone

from dask.utils import parse_timedelta

from daskscope.server.failure import bad_request


def since_us(text: str, now_us: int) -> int:
    """The moment in microseconds; 0 for all history."""
    if not text or text.lower() in ("none", "all"):
        return 0
    try:
        return max(0, now_us - int(float(parse_timedelta(text, default="seconds")) * 1e6))
    except (ValueError, KeyError, IndexError, OverflowError, TypeError):
        # IndexError: of a text with nothing but spaces in it.
        pass
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise bad_request(
            f"since={text[:40]!r} is no length of time (7 days, 2h) and no moment (2026-05-01)."
        ) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return max(0, int(moment.timestamp() * 1e6))
