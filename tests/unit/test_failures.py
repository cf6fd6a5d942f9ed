"""All failures are counted, few texts are kept, and causes are matched with their failures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from daskscope.analysis.failures import Place, raised_in
from daskscope.collector.privacy import Scrubber
from daskscope.collector.rows import Rows
from daskscope.collector.scheduler.failures import (
    CAUSE_WAIT_S,
    MAX_FINGERPRINTS,
    MAX_ROWS_PER_FLUSH,
    MAX_TEXTS_PER_FINGERPRINT,
    MESSAGE_LIMIT,
    TRACEBACK_LIMIT,
    Failure,
    Failures,
)

SECOND = 1_000_000
TRACEBACK = '  File "/home/me/analysis.py", line 3, in load\n    raise ValueError(x)\n'


class Bench:
    def __init__(self, *, texts: bool = True) -> None:
        self.now = 1_000 * SECOND
        self.rows = Rows()
        self.failures = Failures(Scrubber(["hunter2hunter2"]), self.rows.add_lazy, texts=texts)

    def fail(self, text: str = "ValueError('x')", **more: Any) -> None:
        self.failures.add(replace(failure(self.now, text), **more))

    def cause(self, key: str = "load-1", worker: str = "w1", **more: str) -> None:
        record = {
            "key": key,
            "type": "RuntimeError",
            "message": "outer",
            "cause_type": "KeyError",
            "cause_message": "inner",
            "fingerprint": "f" * 16,
            "traceback": "the whole chain",
            **more,
        }
        self.failures.add_cause(worker, record)

    def ripe(self, *, everything: bool = False) -> list[dict[str, Any]]:
        self.failures.flush_ready(self.now, everything=everything)
        made: list[dict[str, Any]] = []
        for table, columns, count, _ in self.rows.drain():
            assert table == "exceptions"
            found = columns()
            made += [{name: values[row] for name, values in found.items()} for row in range(count)]
        return made


def failure(now: int, text: str) -> Failure:
    return Failure(now, "load-1", "load-aa", "load", "s1", "c1", "w1", text, TRACEBACK, will_retry=False)


def test_a_failure_waits_for_its_cause() -> None:
    bench = Bench()
    bench.fail()
    assert bench.ripe() == []
    bench.cause()
    (row,) = bench.ripe()
    assert (row["type"], row["message"], row["cause_type"], row["cause_message"]) == (
        "RuntimeError",
        "outer",
        "KeyError",
        "inner",
    )
    assert (row["traceback"], row["fingerprint"], row["count"]) == ("the whole chain", "f" * 16, 1)


def test_a_failure_waits_only_so_long_for_its_cause() -> None:
    bench = Bench()
    bench.fail()
    bench.now += round(CAUSE_WAIT_S * SECOND)
    (row,) = bench.ripe()
    assert (row["type"], row["message"], row["cause_type"]) == ("ValueError", "x", "ValueError")
    assert row["traceback"] == TRACEBACK


def test_at_the_end_nothing_waits() -> None:
    bench = Bench()
    bench.fail()
    assert len(bench.ripe(everything=True)) == 1


def test_tasks_that_fail_because_of_a_dependency_do_not_wait() -> None:
    bench = Bench()
    bench.fail(blamed_key="load-0")
    (row,) = bench.ripe()
    assert row["blamed_key"] == "load-0"


def test_a_cause_may_arrive_before_its_failure() -> None:
    bench = Bench()
    bench.cause()
    assert bench.ripe() == []
    bench.fail()
    assert bench.ripe()[0]["cause_type"] == "KeyError"


def test_a_cause_belongs_to_the_worker_that_reported_it() -> None:
    bench = Bench()
    bench.fail(worker="w2")
    bench.cause(worker="w1")
    assert bench.ripe() == []


def test_every_attempt_of_a_retried_task_gets_its_own_cause() -> None:
    bench = Bench()
    for number in range(3):
        bench.fail(will_retry=number < 2)
        bench.cause(cause_message=f"try {number}")
    rows = bench.ripe()
    assert [row["cause_message"] for row in rows] == ["try 0", "try 1", "try 2"]
    assert [row["will_retry"] for row in rows] == [1, 1, 0]


def test_a_key_that_is_not_shown_still_finds_its_cause() -> None:
    bench = Bench()
    bench.fail(key="load-aa", real_key="load-secret")
    bench.cause("load-secret")
    (row,) = bench.ripe()
    assert (row["key"], row["cause_type"]) == ("load-aa", "KeyError")


def test_unused_causes_are_dropped() -> None:
    bench = Bench()
    for number in range(10 * MAX_ROWS_PER_FLUSH):
        bench.cause(f"folded-{number}")
    held = len(bench.failures._causes)
    assert held <= 4 * MAX_ROWS_PER_FLUSH
    for _ in range(2):
        bench.fail()  # some failure always waits
        bench.now += round(CAUSE_WAIT_S * SECOND)
        bench.ripe()
    bench.fail()
    bench.cause()
    assert bench.ripe()[-1]["cause_type"] == "KeyError"
    assert len(bench.failures._causes) + len(bench.failures._older) < held


def test_causes_per_key_are_limited() -> None:
    bench = Bench()
    for _ in range(10_000):
        bench.cause()
    assert sum(map(len, bench.failures._causes.values())) <= 20


def test_a_million_equal_failures_make_few_rows_with_an_exact_count() -> None:
    bench = Bench()
    one, count = failure(bench.now, "ValueError('x')"), 1_000_000
    for _ in range(count):
        bench.failures.add(one)
    rows = bench.ripe(everything=True)
    assert len(rows) <= MAX_ROWS_PER_FLUSH + 1
    assert sum(row["count"] for row in rows) == count
    assert sum(bool(row["traceback"]) for row in rows) == MAX_TEXTS_PER_FINGERPRINT


def test_failures_with_distinct_texts_make_few_rows_with_an_exact_count() -> None:
    bench = Bench()
    count = 20_000
    for number in range(count):
        bench.fail(f"Error{number % 3000}('number {number}')", prefix=f"p{number % 700}", will_retry=bool(number % 2))
    rows = bench.ripe(everything=True)
    assert len(rows) <= MAX_ROWS_PER_FLUSH + 2 * MAX_FINGERPRINTS + 2
    assert sum(row["count"] for row in rows) == count
    retried = sum(row["count"] for row in rows if row["will_retry"])
    assert retried == count // 2
    assert sum(bool(row["traceback"]) for row in rows) <= MAX_FINGERPRINTS * MAX_TEXTS_PER_FINGERPRINT


def test_only_the_first_of_a_fingerprint_keep_their_traceback() -> None:
    bench = Bench()
    texts = 0
    for _ in range(10):
        bench.fail()
        texts += sum(bool(row["traceback"]) for row in bench.ripe(everything=True))
    assert texts == MAX_TEXTS_PER_FINGERPRINT


def test_texts_are_cut_and_masked() -> None:
    bench = Bench()
    text = "ValueError('hunter2hunter2 " + "y" * 1_000_000 + "')"
    bench.fail(text, traceback_text="hunter2hunter2\n" + "z" * 5_000_000 + "\nlast line")
    (row,) = bench.ripe(everything=True)
    assert len(row["message"]) <= MESSAGE_LIMIT
    assert len(row["traceback"]) <= TRACEBACK_LIMIT
    assert row["traceback"].endswith("last line")
    assert "hunter2" not in str(row)
    assert row["type"] == "ValueError"


def test_without_texts_type_and_fingerprint_remain() -> None:
    bench = Bench(texts=False)
    bench.fail()
    bench.cause()
    (row,) = bench.ripe()
    assert (row["message"], row["cause_message"], row["traceback"]) == ("", "", "")
    assert (row["type"], row["cause_type"], row["fingerprint"]) == ("RuntimeError", "KeyError", "f" * 16)


@pytest.mark.parametrize("text", ["", "no call at all", "<weird>", "Error(", "ValueError(" + "(" * 5000])
def test_any_text_makes_a_row(text: str) -> None:
    bench = Bench()
    bench.fail(text)
    assert bench.ripe(everything=True)[0]["count"] == 1


OWN = '  File "/home/mia/clean.py", line 88, in parse\n    return float(text)\n'
OUTER = '  File "/home/mia/etl.py", line 4, in <module>\n    main()\n'
LIBRARY = '  File "/usr/lib/python3.12/site-packages/pandas/series.py", line 4700, in map\n    return f(x)\n'
HEAD = "Traceback (most recent call last):\n"
FROM = "\nThe above exception was the direct cause of the following exception:\n\n"


@pytest.mark.parametrize(
    ("traceback", "place"),
    [
        (f"{HEAD}{OUTER}{OWN}ValueError: no", Place("parse", "/home/mia/clean.py", 88)),
        (f"{HEAD}{OUTER}{OWN}{LIBRARY}ValueError: no", Place("parse", "/home/mia/clean.py", 88)),
        (f"{HEAD}{LIBRARY}ValueError: no", Place("map", "/usr/lib/python3.12/site-packages/pandas/series.py", 4700)),
        # The first exception of a chain is the cause, which the group is named after.
        (
            f"{HEAD}{OWN}ValueError: no\n{FROM}{HEAD}{OUTER}RuntimeError: it failed",
            Place("parse", "/home/mia/clean.py", 88),
        ),
        ('  File "<string>", line 1\n    x =\nSyntaxError', Place("", "<string>", 1)),
        ("", Place()),
        ("Traceback: no frames", Place()),
        (f'  File "{"a" * 90_000}', Place()),
        (f'  File "x", line {"9" * 5_000}, in f', Place()),
    ],
)
def test_the_place_of_an_error_is_the_innermost_frame_of_own_code(traceback: str, place: Place) -> None:
    assert raised_in(traceback) == place
