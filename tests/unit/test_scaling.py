"""The rules about adaptive scaling: workers that come late, come and go, or are not allowed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.helpers.rule_rows import S, T, by_rule, task

from daskscope.insights.facts import Finding

RULES = {"scaling-lags", "scaling-flaps", "scaling-capped"}


def wanted(*requests: tuple[float, int]) -> list[dict[str, Any]]:
    common = {"topic": "adaptive", "kind": "wanted-workers"}
    return [
        {**common, "time_us": T + round(time * S), "detail": json.dumps({"wanted": count})} for time, count in requests
    ]


def worker(number: int, joined: float, left: float = 0.0) -> dict[str, Any]:
    ended = {"end_us": T + round(left * S), "verdict": "retired"} if left else {}
    names = {"worker": f"w{number}", "server_id": f"w{number}", "name": f"w{number}"}
    return {**names, "nthreads": 1, "start_us": T + round(joined * S), **ended}


def found(requests: list[dict[str, Any]], *workers: dict[str, Any], busy_until: float = 100) -> dict[str, Finding]:
    tasks = [task(n, n + 1, worker="w0") for n in range(round(busy_until))]
    made = by_rule(events=requests, workers=list(workers), tasks=tasks)
    return {rule: finding for rule, finding in made.items() if rule in RULES}


def test_workers_that_come_late() -> None:
    made = found(wanted((10, 4)), worker(0, 0), *(worker(n, 50) for n in (1, 2, 3)))
    assert made.keys() == {"scaling-lags"}
    finding = made["scaling-lags"]
    assert finding.title == "Workers were missing for 40.0 s after scaling had asked for them"
    assert finding.evidence == "Up to 3 workers of 4 came late."
    # Three workers for 40 s, spread over four.
    assert finding.gain is not None
    assert finding.gain.us == 30 * S


@pytest.mark.parametrize("joined", [10.5, 14])
def test_workers_that_come_soon(joined: float) -> None:
    assert found(wanted((10, 4)), worker(0, 0), *(worker(n, joined) for n in (1, 2, 3))) == {}


def test_workers_that_come_and_go() -> None:
    lives = [(10, 20), (30, 40), (50, 60), (70, 80)]
    requests = [request for start, stop in lives for request in ((start - 1, 2), (stop - 1, 1))]
    made = found(wanted(*requests), worker(9, 0), *(worker(n, *life) for n, life in enumerate(lives)))
    assert made.keys() == {"scaling-flaps"}
    assert made["scaling-flaps"].title == "Scaling gave 3 workers back and replaced them"
    assert made["scaling-flaps"].evidence == "Their median uptime was 10.0 s. Wanted workers were missing for 4.00 s."
    assert made["scaling-flaps"].gain is None


def test_workers_that_come_and_go_are_missing_while_tasks_wait() -> None:
    lives = [(10, 20), (30, 40), (50, 60), (70, 80)]
    requests = [request for start, stop in lives for request in ((start - 1, 2), (stop - 1, 1))]
    workers = [worker(9, 0), *(worker(n, *life) for n, life in enumerate(lives))]
    # A task waits from 5 to 35 s, for a worker that is there from 10 to 20 and from 30 to 35 s.
    tasks = [task(35, 36, worker="w9", assigned_us=T + 5 * S), task(0, 100, worker="w9")]
    finding = by_rule(events=wanted(*requests), workers=workers, tasks=tasks)["scaling-flaps"]
    assert finding.gain is not None
    assert finding.gain.us == 15 * S // 2


def test_workers_that_are_given_back_at_the_end() -> None:
    assert found(wanted((1, 4), (90, 0)), *(worker(n, 1, 92) for n in range(4))) == {}


def test_fewer_workers_than_wanted() -> None:
    made = found(wanted((20, 4)), worker(0, 0))
    assert made.keys() == {"scaling-capped"}
    finding = made["scaling-capped"]
    assert finding.title == "Scaling wanted up to 4 workers, but had 1"
    assert finding.evidence == (
        "For 1 min 20 s, that is 80 % of the run, it wanted more than it had. Tasks used 100 % of the thread time."
    )
    # 80 s on one worker are 20 s on four.
    assert finding.gain is not None
    assert finding.gain.us == 60 * S


def test_workers_that_are_not_busy_need_no_others() -> None:
    assert found(wanted((20, 4)), worker(0, 0), busy_until=60) == {}


def test_a_cluster_that_nothing_scales() -> None:
    assert found([], worker(0, 0), worker(1, 50), worker(2, 50)) == {}


def test_requests_that_are_no_numbers_are_ignored() -> None:
    broken = [{**wanted((1, 1))[0], "detail": text} for text in ("", "[]", '{"wanted": "4"}', "{")]
    assert found(broken, worker(0, 0), worker(1, 50)) == {}


def test_impossible_numbers_of_workers_are_capped() -> None:
    made = found(wanted((20, 10**30), (90, -5)), worker(0, 0))
    assert made["scaling-capped"].title == "Scaling wanted up to 1,000,000 workers, but had 1"


def test_workers_that_join_much_later_replace_nobody() -> None:
    lives = [(0, 10), (0, 11), (0, 12), (2000, 0), (2000, 0), (2000, 0)]
    workers = [worker(n, *life) for n, life in enumerate(lives)]
    assert "scaling-flaps" not in found(wanted((0, 3), (9, 0), (1999, 3)), worker(9, 0), *workers, busy_until=2100)


@pytest.mark.parametrize("detail", ["[" * 50_000, "[]", "{", '{"wanted": "many"}', '{"wanted": 1e400}'])
def test_an_invalid_request_is_ignored(detail: str) -> None:
    requests = [{**request, "detail": detail} for request in wanted((10, 4))]
    assert found(requests, worker(0, 0), *(worker(n, 50) for n in (1, 2, 3))) == {}
