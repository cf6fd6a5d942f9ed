"""The result of a benchmark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """One row of the table: name, figure, bar, and whether the bar was met (None without a bar)."""

    what: str
    figure: str
    bar: str = ""
    met: bool | None = None
    note: str = ""


def at_most(what: str, value: float, bar: float, unit: str = "", note: str = "") -> Result:
    return Result(what, f"{value:.3g}{unit}", f"≤ {bar:g}{unit}", value <= bar, note)


def equal(what: str, value: int, expected: int, note: str = "") -> Result:
    return Result(what, f"{value:,}", f"= {expected:,}", value == expected, note)
