"""Estimates of the cost of a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from daskscope.analysis.cost import GIB, Prices, choose_prices, estimate

ACCOUNT: dict[str, Any] = {
    "core_hour": 0.05,
    "gib_hour": 0.01,
    "price_overrides": {"gpu": {"core_hour": 2.0}, "big": {"gib_hour": 0.5, "core_hour": 1}},
}


def test_own_prices_take_precedence_over_overrides_and_account_prices() -> None:
    assert choose_prices(ACCOUNT, {}, []) == Prices(0.05, 0.01, "account default")
    assert choose_prices(ACCOUNT, {}, ["other", "big", "gpu"]) == Prices(1.0, 0.5, "price of big")
    assert choose_prices(ACCOUNT, {"core_hour": 3}, ["gpu"]) == Prices(3.0, 0.01, "set for this cluster")
    assert choose_prices({**ACCOUNT, "price_overrides": None}, {}, ["gpu"]).source == "account default"


@pytest.mark.parametrize("price", [-1, 1e9, float("nan"), "dear", None])
def test_an_invalid_price_is_replaced_by_the_accounts(price: Any) -> None:
    assert choose_prices(ACCOUNT, {"core_hour": price, "gib_hour": 0.2}, []) == Prices(
        0.05, 0.2, "set for this cluster"
    )


def test_cost_is_cores_and_memory_times_uptime() -> None:
    cost = estimate(
        Prices(0.5, 0.25, "test"),
        thread_s=7200,
        memory_byte_s=4 * GIB * 3600,
        compute_s=1800,
        threads=4,
        memory_limit=8 << 30,
    )
    assert (cost.total, cost.busy, cost.idle) == (2.0, 0.5, 1.5)
    assert cost.per_hour == 4 * 0.5 + 8 * 0.25
    assert cost.formula == "estimate: 2.00 core-hours × $0.5 + 4.00 GiB-hours × $0.25 (test)"


@pytest.mark.parametrize(
    ("hours", "text"), [(0, "0.00"), (0.0042, "0.0042"), (0.000001, "1e-06"), (0.5, "0.50"), (1234.5, "1,234.50")]
)
def test_small_amounts_are_not_rounded_to_zero(hours: float, text: str) -> None:
    cost = estimate(
        Prices(1, 1, "test"), thread_s=hours * 3600, memory_byte_s=0, compute_s=0, threads=1, memory_limit=0
    )
    assert cost.formula.startswith(f"estimate: {text} core-hours")


def test_the_busy_share_is_at_most_one_and_defined_without_threads() -> None:
    none = estimate(Prices(1, 1, ""), thread_s=0, memory_byte_s=0, compute_s=5, threads=0, memory_limit=0)
    assert (none.total, none.busy, none.idle, none.per_hour) == (0, 0, 0, 0)
    full = estimate(Prices(1, 1, ""), thread_s=3600, memory_byte_s=0, compute_s=99_999, threads=1, memory_limit=0)
    assert (full.busy, full.idle) == (1, 0)
