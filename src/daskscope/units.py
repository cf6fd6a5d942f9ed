"""Format numbers for people: the only module that turns microseconds, bytes and counts into text.

All other code passes plain numbers around, with the unit in the name. Texts are short, carry their unit, and have three
significant digits at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

MILLISECOND = 1_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
#: Shown for an unknown value.
NOTHING = "–"


def duration(us: float) -> str:
    """Format a duration: ``0 s``, ``12 µs``, ``83 ms``, ``1.24 s``, ``3 min 20 s``, ``2 h 5 min``, ``3 d 4 h``."""
    if round(us) < 0:
        return "-" + duration(-us)
    # Compare rounded numbers, so that 999.6 ms becomes 1.00 s and not 1000 ms.
    if round(us) == 0:
        return "0 s"
    if round(us) < MILLISECOND:
        return f"{round(us)} µs"
    if round(us / MILLISECOND) < 1000:
        return f"{_three_digits(us / MILLISECOND)} ms"
    if us < 59.95 * SECOND:
        return f"{us / SECOND:.2f} s" if us < 9.995 * SECOND else f"{us / SECOND:.1f} s"
    seconds = round(us / SECOND)
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    minutes = round(us / MINUTE)
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    hours = round(us / HOUR)
    return f"{hours // 24:,} d {hours % 24} h"


def duration_range(low_us: float, high_us: float) -> str:
    """Format an estimated duration: ``less than 10 s``, ``20 to 25 s``, ``2 to 3 min``, ``1.5 to 2 h``, ``4 min``."""
    if high_us < 10 * SECOND:
        return "less than 10 s"
    unit, step, name = next(item for item in _RANGE_UNITS if high_us < 60 * item[0] or item[0] == HOUR)
    low, high = math.floor(low_us / unit / step) * step, math.ceil(high_us / unit / step) * step
    if low <= 0:
        return f"less than {high:g} {name}"
    return f"{high:g} {name}" if low == high else f"{low:g} to {high:g} {name}"


#: Units of an estimated duration and the steps that it is rounded to: smaller ones would change with every update.
_RANGE_UNITS = ((SECOND, 5, "s"), (MINUTE, 1, "min"), (HOUR, 0.5, "h"))


def nbytes(n: float) -> str:
    """Format a number of bytes in binary units: ``0 B``, ``1023 B``, ``1.5 GiB``."""
    if round(n) < 0:
        return "-" + nbytes(-n)
    if round(n) < 1024:
        return f"{abs(round(n))} B"
    power = min(int(math.log2(n) / 10), len(_BINARY) - 1)
    value = n / 1024**power
    if round(value) >= 1024 and power + 1 < len(_BINARY):
        power, value = power + 1, value / 1024
    return f"{_three_digits(value)} {_BINARY[power]}" if value < 1000 else f"{value:,.0f} {_BINARY[power]}"


def frequency(hz: float) -> str:
    """Format events per second: ``12 Hz``, ``71 kHz``, ``1.2 MHz``."""
    for limit, unit, size in ((999.5, "Hz", 1.0), (999.5e3, "kHz", 1e3), (999.5e6, "MHz", 1e6)):
        if hz < limit:
            return f"{_three_digits(hz / size)} {unit}"
    return f"{_three_digits(hz / 1e9)} GHz"


def count(n: int) -> str:
    """Format a whole number with thousands separators: ``1,234,567``."""
    return f"{n:,}"


def counted(n: int, noun: str, plural: str = "") -> str:
    """Format a number with its noun: ``1 task``, ``2 tasks``, ``0 tasks``."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def percent(x: float) -> str:
    """Format a share as a percentage: ``0 %``, ``0.3 %``, ``42 %``; only a share of 1 is shown as 100 %."""
    if x < 0:
        return "-" + percent(-x)
    if 0 < x < 0.001:
        return "<0.1 %"
    if 0.995 <= x < 1:
        return ">99 %"
    return f"{100 * x:.1f} %" if 0 < x < 0.0995 else f"{100 * x:,.0f} %"


def whole_shares(values: Sequence[float]) -> list[int]:
    """Return the percentages of the parts of a whole as whole numbers that add up to 100; zeros if the whole is 0."""
    total = sum(values)
    if total <= 0:
        return [0 for _ in values]
    exact = [value / total * 100 for value in values]
    found = [int(share) for share in exact]
    largest = sorted(range(len(exact)), key=lambda i: found[i] - exact[i])
    for i in largest[: 100 - sum(found)]:
        found[i] += 1
    return found


def dollars(x: float) -> str:
    """Format an amount of money: ``$0``, ``<$0.01``, ``$1.24``, ``$1,240``."""
    if x < 0:
        return "-" + dollars(-x)
    if x < 0.005:
        return "<$0.01" if x > 0 else "$0"
    return f"${x:,.2f}" if x < 999.995 else f"${x:,.0f}"


def about_dollars(x: float) -> str:
    """Format an estimated amount for running text: ``less than $0.01``, ``about $1.24``."""
    return "less than $0.01" if 0 < x < 0.005 else f"about {dollars(x)}"


def ago(us: float) -> str:
    """Format how long ago something happened: ``now``, ``6 s ago``, ``5 min ago``, ``3 h ago``, ``yesterday``, ``6 weeks ago``."""
    if us < 2 * SECOND:
        return "now"
    if us < MINUTE:
        return f"{int(us // SECOND)} s ago"
    if us < HOUR:
        return f"{int(us // MINUTE)} min ago"
    if us < DAY:
        return f"{int(us // HOUR)} h ago"
    days = int(us // DAY)
    if days < 14:
        return "yesterday" if days == 1 else f"{days} days ago"
    return f"{days // 7} weeks ago" if days < 60 else f"{days // 30:,} months ago"


def quantity(value: float, unit: str) -> str:
    """Format an amount of any unit; Dask's own units are shown in their familiar form."""
    if not math.isfinite(value * SECOND):
        return f"{value} {unit}".rstrip()
    if unit == "seconds":
        return duration(value * SECOND)
    if unit == "bytes":
        return nbytes(value)
    text = f"{value:,.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:,.4g}"
    if unit == "count":
        return f"{text}×"
    return f"{text} {unit}".rstrip()


def moment(us: int) -> str:
    """Format a time in UTC to the second, as ISO 8601: ``2026-11-15T22:01:07Z``; 0 means unknown."""
    if us == 0:
        return NOTHING
    try:
        when = _EPOCH + timedelta(seconds=us // SECOND)
    except OverflowError:
        return f"{us} µs since 1970"
    return when.isoformat(timespec="seconds").replace("+00:00", "Z")


def _three_digits(value: float) -> str:
    """Format with three digits at most, without trailing zeros."""
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
