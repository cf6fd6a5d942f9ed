"""Every second and byte is recorded once, under any label and unit."""

from __future__ import annotations

from typing import Any

from daskscope.collector.scheduler.activities import Activities


class Added(list[dict[str, Any]]):
    def add(self, table: str, **row: Any) -> None:
        assert table == "activities"
        self.append(row)

    def take(self, activities: Activities, time_us: int) -> None:
        """Run a whole round and return its rows."""
        for _ in activities.write_changes(time_us, self.add):
            pass

    def sums(self) -> dict[tuple[str, ...], float]:
        sums: dict[tuple[str, ...], float] = {}
        for row in self:
            key = tuple(row[name] for name in ("context", "span", "prefix", "activity", "unit"))
            sums[key] = sums.get(key, 0) + row["value"]
        return sums


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no")


def test_totals_from_before_the_recording_are_not_counted() -> None:
    totals = {("get-data", "network", "bytes"): 100.0}
    activities, added = Activities(totals, spans=True), Added()
    added.take(activities, 1)
    totals["get-data", "network", "bytes"] = 130.0
    added.take(activities, 2)
    assert added.sums() == {("get-data", "", "", "network", "bytes"): 30.0}


def test_an_unchanged_metric_makes_no_row() -> None:
    totals = {("get-data", "network", "bytes"): 100.0}
    activities, added = Activities({}, spans=True), Added()
    activities.totals = totals
    added.take(activities, 1)
    added.take(activities, 2)
    assert len(added) == 1


def test_metrics_of_a_span_are_not_counted_from_the_totals_again() -> None:
    totals: dict[Any, float] = {}
    activities, added = Activities(totals, spans=True), Added()
    for _ in range(2):
        activities.add_heartbeat({("execute", "s1", "inc", "thread-cpu", "seconds"): 1.5})
        totals["execute", "inc", "thread-cpu", "seconds"] = (
            totals.get(("execute", "inc", "thread-cpu", "seconds"), 0) + 1.5
        )
    added.take(activities, 1)
    added.take(activities, 2)
    assert added.sums() == {("execute", "s1", "inc", "thread-cpu", "seconds"): 3.0}


def test_a_context_that_begins_to_report_spans_is_not_counted_twice() -> None:
    totals: dict[Any, float] = {}
    activities, added = Activities(totals, spans=True), Added()
    round_ = activities.write_changes(1, added.add)
    # The heartbeat arrives between two steps of a round.
    totals["other", "a", "b", "seconds"] = 0.0
    next(round_)
    activities.add_heartbeat({("new", "s1", "prefix", "work", "seconds"): 2.0})
    totals["new", "prefix", "work", "seconds"] = 2.0
    for _ in round_:
        pass
    added.take(activities, 2)
    assert added.sums() == {("new", "s1", "prefix", "work", "seconds"): 2.0}


def test_without_the_spans_extension_everything_comes_from_the_totals() -> None:
    totals: dict[Any, float] = {}
    activities, added = Activities(totals, spans=False), Added()
    totals["execute", "inc", "thread-cpu", "seconds"] = 4.0
    added.take(activities, 1)
    assert added.sums() == {("execute", "", "inc", "thread-cpu", "seconds"): 4.0}


def test_any_label_any_unit_any_depth() -> None:
    activities, added = Activities({}, spans=True), Added()
    activities.add_heartbeat(
        {
            ("execute", "s1", "inc", 42, "furlongs"): 1.0,
            ("execute", "s1", "inc", None, ("a", 1)): 2.0,
            ("execute", "s1", "inc", "one", "two", "three", "bytes"): 3.0,
            ("execute", "s1", "bytes"): 4.0,
            ("execute", "s1"): 5.0,
            ("execute",): 6.0,
            ("execute", "s1", Unprintable(), "x", "y"): 7.0,
        }
    )
    added.take(activities, 1)
    assert added.sums() == {
        ("execute", "s1", "inc", "42", "furlongs"): 1.0,
        ("execute", "s1", "inc", "None", "('a', 1)"): 2.0,
        ("execute", "s1", "inc", "one/two/three", "bytes"): 3.0,
        ("execute", "s1", "", "", "bytes"): 4.0,
        ("execute", "s1", "", "", ""): 5.0,
        ("execute", "", "", "", ""): 6.0,
        ("execute", "s1", "<Unprintable>", "x", "y"): 7.0,
    }


def test_totals_without_a_tuple_and_with_any_tuple() -> None:
    totals: dict[Any, float] = {}
    activities, added = Activities(totals, spans=True), Added()
    totals |= {"latency": 0.5, ("p3p", "where", "background", "busy", "count"): 2.0, ("alone",): 1.0, (): 3.0}
    added.take(activities, 1)
    assert added.sums() == {
        ("latency", "", "", "total", "seconds"): 0.5,
        ("p3p", "", "where", "background/busy", "count"): 2.0,
        ("alone", "", "", "", ""): 1.0,
        ("()", "", "", "total", ""): 3.0,
    }


def test_long_labels_are_cut() -> None:
    activities, added = Activities({}, spans=True), Added()
    activities.add_heartbeat({("execute", "s", "inc", "x" * 10_000, "seconds"): 1.0})
    added.take(activities, 1)
    assert len(added[0]["activity"]) == 500


def test_an_abandoned_round_neither_loses_nor_repeats_a_metric() -> None:
    totals: dict[Any, float] = {}
    activities, added = Activities(totals, spans=True), Added()
    activities.add_heartbeat({("execute", "s", f"p{number}", "cpu", "seconds"): 1.0 for number in range(10)})
    totals |= {("get-data", str(number), "bytes"): 1.0 for number in range(10)}
    for steps in (5, 10, 100):
        for _, _step in zip(activities.write_changes(1, added.add), range(steps)):
            pass
    added.take(activities, 2)
    sums = added.sums()
    assert len(sums) == 20
    assert set(sums.values()) == {1.0}
