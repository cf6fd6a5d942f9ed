"""The list of the tasks that have been running longest."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from daskscope.collector.aliases import PLAIN, Aliases
from daskscope.collector.scheduler.workload import MAX_KEY, MAX_LISTED, longest_running

NOW_S = 1_000_000.0


class Task:
    """A task as the scheduler has it."""

    def __init__(self, key: Any) -> None:
        self.key = key
        self.group = SimpleNamespace(name="inc-1", prefix=SimpleNamespace(name="inc"))


def worker(address: str, ages: dict[Any, float]) -> Any:
    executing = {Task(key): age for key, age in ages.items()}
    return SimpleNamespace(address=address, last_seen=NOW_S, executing=executing)


def listed(*workers: Any, aliases: Aliases = PLAIN) -> list[list[Any]]:
    text = longest_running(workers, lambda _: SimpleNamespace(id="c"), aliases)  # type: ignore[arg-type, return-value]
    found: list[list[Any]] = json.loads(text) if text else []
    return found


def test_the_oldest_come_first_and_short_ones_are_left_out() -> None:
    found = listed(worker("tcp://a", {"x": 3.0, "y": 0.5}), worker("tcp://b", {("z", 1): 60.25}))
    assert found == [
        ["('z', 1)", "inc", "c", "tcp://b", 999_939_700_000],
        ["x", "inc", "c", "tcp://a", 999_997_000_000],
    ]
    assert longest_running([worker("tcp://a", {"y": 0.5})], lambda _: None, PLAIN) == ""


def test_the_list_is_bounded() -> None:
    found = listed(worker("tcp://a", {f"{number:03}" + "x" * 1_000: 2.0 + number for number in range(100)}))
    assert [row[0][:3] for row in found] == [f"{number:03}" for number in range(99, 99 - MAX_LISTED, -1)]
    assert {len(row[0]) for row in found} == {MAX_KEY}


def test_the_oldest_of_many_workers_are_found() -> None:
    ages = {
        f"{address}-{number}": 2.0 + (7 * address + 13 * number) % 101 for address in range(50) for number in range(4)
    }
    workers = [
        worker(f"tcp://{address}", {key: age for key, age in ages.items() if key.startswith(f"{address}-")})
        for address in range(50)
    ]
    expected = sorted(ages.values(), reverse=True)[:MAX_LISTED]
    assert [ages[row[0]] for row in listed(*workers)] == expected


def test_keys_are_hidden_if_they_must_not_be_recorded() -> None:
    (row,) = listed(worker("tcp://a", {"secret": 3.0}), aliases=Aliases(keys=False))
    assert "secret" not in json.dumps(row)


def test_a_worker_of_an_old_version_reports_nothing() -> None:
    assert listed(SimpleNamespace(address="tcp://a", last_seen=NOW_S)) == []
