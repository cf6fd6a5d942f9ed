"""Estimate the cost of a cluster from its cores and memory and their uptime.

There is no bill to compare with, so every number is an estimate and comes with its formula. *Busy* is the share of thread
time spent computing; the rest is *idle* and costs the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskscope.model.recording import Recording
from daskscope.model.untrusted import parse_object

HOUR_S = 3600.0
GIB = float(1 << 30)


@dataclass(frozen=True)
class Prices:
    """Dollars per core-hour and per GiB-hour of memory, and the source of these prices."""

    core_hour: float
    gib_hour: float
    source: str


@dataclass(frozen=True)
class Cost:
    """An estimate in dollars."""

    total: float
    busy: float
    idle: float
    #: Hourly cost of the cluster at its current size.
    per_hour: float
    formula: str


def choose_prices(account: Mapping[str, Any], own: Mapping[str, Any], names: list[str]) -> Prices:
    """Return the prices of a run: its own, else the first override for one of ``names``, else the account's."""
    default = Prices(float(account["core_hour"]), float(account["gib_hour"]), "account default")
    overrides: Mapping[str, Any] = account.get("price_overrides") or {}
    chosen, source = dict(own), "set for this cluster"
    if not _has_price(own):
        match = next((name for name in names if name in overrides), None)
        if match is None:
            return default
        chosen, source = dict(overrides[match]), f"price of {match}"
    return Prices(_price(chosen, "core_hour", default.core_hour), _price(chosen, "gib_hour", default.gib_hour), source)


def _has_price(prices: Mapping[str, Any]) -> bool:
    return any(isinstance(prices.get(name), int | float) for name in ("core_hour", "gib_hour"))


def _price(prices: Mapping[str, Any], name: str, default: float) -> float:
    value = prices.get(name, default)
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e6 else default


def own_prices(recording: Recording) -> Mapping[str, Any]:
    """Return the prices that were set for the recording; empty if there are none."""
    for text in recording["clusters"]["prices"].tolist():
        prices = parse_object(text)
        if _has_price(prices):
            return prices
    return {}


def recorded_cost(recording: Recording, start_us: int, stop_us: int, compute_us: int) -> Cost | None:
    """Return the cost of a stretch of time at the prices in the recording; None without prices."""
    own = own_prices(recording)
    if not own:
        return None
    workers = recording["workers"]
    end = np.where(workers["end_us"] > 0, np.minimum(workers["end_us"], stop_us), stop_us)
    uptime_s = np.maximum(end - np.maximum(workers["start_us"], start_us), 0) / 1e6
    return estimate(
        choose_prices({"core_hour": 0.0, "gib_hour": 0.0}, own, []),
        thread_s=float((uptime_s * workers["nthreads"]).sum()),
        memory_byte_s=float((uptime_s * workers["memory_limit"]).sum()),
        compute_s=compute_us / 1e6,
        threads=int(workers["nthreads"].sum()),
        memory_limit=int(workers["memory_limit"].sum()),
    )


def _amount(hours: float) -> str:
    """Format with two decimals, or with two significant digits if below 0.1."""
    return f"{hours:,.2f}" if hours >= 0.1 or not hours else f"{hours:.2g}"


def estimate(
    prices: Prices, *, thread_s: float, memory_byte_s: float, compute_s: float, threads: int, memory_limit: int
) -> Cost:
    """Return the cost of ``thread_s`` thread-seconds, of which ``compute_s`` were busy, and ``memory_byte_s`` byte-seconds."""
    core_hours, gib_hours = thread_s / HOUR_S, memory_byte_s / GIB / HOUR_S
    total = core_hours * prices.core_hour + gib_hours * prices.gib_hour
    busy = total * min(1.0, compute_s / thread_s) if thread_s > 0 else 0.0
    per_hour = threads * prices.core_hour + memory_limit / GIB * prices.gib_hour
    formula = (
        f"estimate: {_amount(core_hours)} core-hours × ${prices.core_hour:g} + "
        f"{_amount(gib_hours)} GiB-hours × ${prices.gib_hour:g} ({prices.source})"
    )
    return Cost(total, busy, total - busy, per_hour, formula)
