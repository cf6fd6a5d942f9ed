"""What a cluster cost, estimated: cores and memory that were there, for as long as they were.

Nobody gave us a bill, so every number is an estimate and says by which formula. Busy is the share of thread-time in which
tasks computed; the rest was paid for all the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskscope.model.recording import Recording

HOUR_S = 3600.0
GIB = float(1 << 30)


@dataclass(frozen=True)
class Prices:
    """Dollars an hour for a core and for a GiB of memory, and where they come from."""

    core_hour: float
    gib_hour: float
    source: str


@dataclass(frozen=True)
class Cost:
    """An estimate in dollars."""

    total: float
    busy: float
    idle: float
    #: What an hour of the cluster as it is now costs.
    per_hour: float
    formula: str


def choose_prices(account: Mapping[str, Any], own: Mapping[str, Any], names: list[str]) -> Prices:
    """The prices of a run: its own, else the first override whose name is among ``names``, else the account's."""
    default = Prices(float(account["core_hour"]), float(account["gib_hour"]), "account default")
    overrides: Mapping[str, Any] = account.get("price_overrides") or {}
    chosen, source = dict(own), "set for this cluster"
    if not _priced(own):
        match = next((name for name in names if name in overrides), None)
        if match is None:
            return default
        chosen, source = dict(overrides[match]), f"price of {match}"
    return Prices(_price(chosen, "core_hour", default.core_hour), _price(chosen, "gib_hour", default.gib_hour), source)


def _priced(prices: Mapping[str, Any]) -> bool:
    return any(isinstance(prices.get(name), int | float) for name in ("core_hour", "gib_hour"))


def _price(prices: Mapping[str, Any], name: str, default: float) -> float:
    value = prices.get(name, default)
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e6 else default


def own_prices(recording: Recording) -> Mapping[str, Any]:
    """The prices a user recorded a cluster with; nothing where they did not say any."""
    for text in recording["clusters"]["prices"].tolist():
        try:
            prices = json.loads(text or "{}")
        except (ValueError, RecursionError):
            continue
        if isinstance(prices, dict) and _priced(prices):
            return prices
    return {}


def recorded_cost(recording: Recording, start_us: int, stop_us: int, compute_us: int) -> Cost | None:
    """What a stretch of a recording cost at the prices in it; None where there are none."""
    own = own_prices(recording)
    if not own:
        return None
    workers = recording["workers"]
    end = np.where(workers["end_us"] > 0, np.minimum(workers["end_us"], stop_us), stop_us)
    alive_s = np.maximum(end - np.maximum(workers["start_us"], start_us), 0) / 1e6
    return estimate(
        choose_prices({"core_hour": 0.0, "gib_hour": 0.0}, own, []),
        thread_s=float((alive_s * workers["nthreads"]).sum()),
        memory_byte_s=float((alive_s * workers["memory_limit"]).sum()),
        compute_s=compute_us / 1e6,
        threads=int(workers["nthreads"].sum()),
        memory_limit=int(workers["memory_limit"].sum()),
    )


def _amount(hours: float) -> str:
    """With two decimals, or as many as it takes to be more than nothing."""
    return f"{hours:,.2f}" if hours >= 0.1 or not hours else f"{hours:.2g}"


def estimate(
    prices: Prices, *, thread_s: float, memory_byte_s: float, compute_s: float, threads: int, memory_limit: int
) -> Cost:
    """The cost of ``thread_s`` thread-seconds and ``memory_byte_s`` byte-seconds of which ``compute_s`` computed."""
    core_hours, gib_hours = thread_s / HOUR_S, memory_byte_s / GIB / HOUR_S
    total = core_hours * prices.core_hour + gib_hours * prices.gib_hour
    busy = total * min(1.0, compute_s / thread_s) if thread_s > 0 else 0.0
    per_hour = threads * prices.core_hour + memory_limit / GIB * prices.gib_hour
    formula = (
        f"estimate: {_amount(core_hours)} core-hours × ${prices.core_hour:g} + "
        f"{_amount(gib_hours)} GiB-hours × ${prices.gib_hour:g} ({prices.source})"
    )
    return Cost(total, busy, total - busy, per_hour, formula)
