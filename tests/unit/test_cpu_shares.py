"""An account alone is not limited; beside quiet ones it gets what they leave, and beside busy ones as much as they."""

from __future__ import annotations

import pytest

from daskscope.server.pools import ACTIVE_S, MAX_DELAY_S, MIN_RATE, CpuShares

BUSY, QUIET, THIRD = 1, 2, 3
LIMIT = 0.4


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def use(shares: CpuShares, clock: Clock, account: int, cost_s: float) -> float:
    """Make a request as soon as it may begin; return how long it waited."""
    delay = shares.begin(account)
    clock.now += delay
    shares.charge(account, cost_s)
    return delay


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def shares(clock: Clock) -> CpuShares:
    return CpuShares(LIMIT, clock)


def rate_of(shares: CpuShares, clock: Clock, others: list[int], other_cost_s: float = 0.001) -> float:
    """Return the CPU seconds per second that a busy account gets while each other one makes ten requests a second."""
    used, next_other = 0.0, clock.now
    start = clock.now
    while clock.now < start + 20.0:
        if clock.now >= next_other:
            next_other += 0.1
            for other in others:
                assert shares.begin(other) == 0.0
                shares.charge(other, other_cost_s)
        before = clock.now
        use(shares, clock, BUSY, 0.01)
        used += 0.01
        # A core is the most that anybody gets.
        clock.now = max(clock.now, before + 0.01)
    return used / (clock.now - start)


def test_an_account_alone_is_not_limited(shares: CpuShares, clock: Clock) -> None:
    assert rate_of(shares, clock, []) == pytest.approx(1.0)


def test_beside_a_quiet_account_it_gets_what_that_one_leaves(shares: CpuShares, clock: Clock) -> None:
    rate = rate_of(shares, clock, [QUIET])
    assert LIMIT * 0.7 < rate < LIMIT


def test_beside_accounts_that_need_as_much_it_is_not_limited(shares: CpuShares, clock: Clock) -> None:
    rate = rate_of(shares, clock, [QUIET, THIRD], other_cost_s=0.09)
    assert rate > 0.9


def test_beside_many_that_need_all_of_it_every_account_gets_some(shares: CpuShares, clock: Clock) -> None:
    rate = rate_of(shares, clock, list(range(2, 60)), other_cost_s=0.0005)
    assert rate >= MIN_RATE * 0.8


def test_without_a_limit_nothing_waits(clock: Clock) -> None:
    assert rate_of(CpuShares(0.0, clock), clock, [QUIET]) == pytest.approx(1.0)


def test_the_limit_ends_when_the_others_are_silent(shares: CpuShares, clock: Clock) -> None:
    rate_of(shares, clock, [QUIET])
    clock.now += ACTIVE_S
    assert shares.begin(BUSY) == 0.0
    assert rate_of(shares, clock, []) == pytest.approx(1.0)


def test_a_request_waits_for_a_limited_time(shares: CpuShares, clock: Clock) -> None:
    shares.begin(QUIET)
    for _ in range(200):
        shares.begin(QUIET)
        delay = shares.begin(BUSY)
        shares.charge(BUSY, 1.0)
    assert delay == MAX_DELAY_S


def test_an_unknown_account_costs_nothing(shares: CpuShares) -> None:
    shares.charge(99, 5.0)
    assert shares.begin(99) == 0.0


def test_an_account_is_alone_until_another_is_active(shares: CpuShares, clock: Clock) -> None:
    shares.begin(BUSY)
    assert (shares.is_alone(BUSY), shares.is_alone(QUIET)) == (True, False)
    shares.begin(QUIET)
    assert not shares.is_alone(BUSY)
    clock.now += ACTIVE_S
    assert shares.is_alone(BUSY)
