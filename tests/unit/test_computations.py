"""Computations, groups and spans are tracked while they change, in small steps, and forgotten in the end."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from daskscope.collector.privacy import Scrubber
from daskscope.collector.scheduler import computations as module
from daskscope.collector.scheduler.computations import CODE_LIMIT, Computations
from daskscope.collector.scheduler.executions import EMPTY_MESSAGE, Executed
from daskscope.collector.scheduler.open_computation import Arrival


class FakeGroup:
    def __init__(self, name: str, span_id: str = "", **states: int) -> None:
        self.name = name
        self.prefix = SimpleNamespace(name=name.partition("-")[0])
        self.span_id = span_id
        self.states = {"waiting": 0, "memory": 0, **states}
        self.all_durations = {"compute": 1.5}
        self.nbytes_total = 100
        self.start, self.stop = 10.0, 20.0
        self.types = {"int"}
        self.dependencies: set[FakeGroup] = set()

    @property
    def done(self) -> bool:
        return not self.states["waiting"]


class FakeSpan:
    def __init__(self, id_: str, parent: FakeSpan | None = None) -> None:
        self.id = id_
        self.name = ("outer", id_)
        self.parent = parent
        self.children: list[FakeSpan] = []
        self.groups: set[FakeGroup] = set()
        self.enqueued = 5.0
        self.active_cpu_seconds = 3.0
        if parent is not None:
            parent.children.append(self)

    def traverse_spans(self) -> list[FakeSpan]:
        return [self, *(span for child in self.children for span in child.traverse_spans())]


class Bench:
    def __init__(self, *, code: bool = True) -> None:
        self.rows: list[tuple[str, dict[str, Any]]] = []
        self.spans: dict[str, FakeSpan] = {}
        self.dask_computations: list[Any] = []
        self.tasks: dict[str, Any] = {}
        scheduler = SimpleNamespace(
            computations=self.dask_computations,
            tasks=self.tasks,
            extensions={"spans": SimpleNamespace(spans=self.spans)},
        )
        self.computations = Computations(scheduler, self.add, Scrubber(["hunter2hunter2"]), code=code)

    def add(self, table: str, **row: Any) -> None:
        self.rows.append((table, row))

    def submit(self, *groups: FakeGroup, new: bool = True, fresh: dict[FakeGroup, int] | None = None) -> str:
        """Submit a graph that creates these groups; ``fresh`` tasks belong to existing groups."""
        if new:
            number = len(self.dask_computations)
            self.dask_computations.append(SimpleNamespace(id=f"c{number}", start=1.0 + number, groups=set(), code=[]))
        self.dask_computations[-1].groups |= set(groups)
        keys = [f"{group.name}-{number}" for group, count in (fresh or {}).items() for number in range(count)]
        owners = [group for group, count in (fresh or {}).items() for _ in range(count)]
        self.tasks |= {
            key: SimpleNamespace(state="released", group=group) for key, group in zip(keys, owners, strict=True)
        }
        return self.computations.add_graph("client-1", keys)

    def tick(self, now_us: int = 99) -> dict[str, list[dict[str, Any]]]:
        self.rows.clear()
        for _ in self.computations.write_changes(now_us):
            pass
        found: dict[str, list[dict[str, Any]]] = {"computations": [], "groups": [], "spans": []}
        for table, row in self.rows:
            found[table].append(row)
        return found


def ran(group: Any) -> Executed:
    return Executed(0, ["key", group, *EMPTY_MESSAGE.values(), 0, 0, 0])


def test_a_computation_is_tracked_until_its_tasks_are_finished() -> None:
    bench = Bench()
    group = FakeGroup("inc-1", waiting=3)
    assert bench.submit(group) == "c0"
    found = bench.tick()
    assert (found["computations"][0]["state"], found["computations"][0]["unfinished"]) == ("running", 3)
    assert found["computations"][0]["stop_us"] == 0
    group.states = {"waiting": 0, "memory": 3}
    found = bench.tick()
    (row,) = found["computations"]
    assert (row["state"], row["memory"], row["tasks"], row["stop_us"]) == ("done", 3, 3, 20_000_000)
    assert json.loads(found["groups"][0]["states"]) == {"memory": 3}
    assert json.loads(found["groups"][0]["durations_us"]) == {"compute": 1_500_000}
    assert (bench.computations.open, list(bench.computations.closed)) == ({}, ["c0"])


def test_unchanged_rows_are_not_written_again() -> None:
    bench = Bench()
    bench.submit(FakeGroup("inc-1", waiting=3))
    bench.tick()
    assert bench.tick() == {"computations": [], "groups": [], "spans": []}


def test_a_reader_that_joins_gets_all_open_computations() -> None:
    bench = Bench()
    bench.spans["s"] = span = FakeSpan("s")
    span.groups = {FakeGroup("inc-1", "s", waiting=3)}
    bench.submit(*span.groups)
    first = bench.tick()
    bench.computations.mark_unwritten()
    assert bench.tick() == first
    assert all(first.values())


@pytest.mark.parametrize(
    ("states", "cancelled", "expected"),
    [
        ({"memory": 1}, False, "done"),
        ({"memory": 1, "erred": 1}, False, "erred"),
        ({"released": 1}, True, "cancelled"),
        ({"erred": 1}, True, "erred"),
        ({"queued": 1}, False, "running"),
        ({"no-worker": 1}, True, "running"),
    ],
)
def test_states(states: dict[str, Any], cancelled: bool, expected: str) -> None:
    bench = Bench()
    bench.submit(FakeGroup("inc-1", **states))
    if cancelled:
        bench.computations.note_cancelled(None, 99)
    assert bench.tick()["computations"][0]["state"] == expected


def test_running_computations_are_lost_when_the_scheduler_closes() -> None:
    bench = Bench()
    bench.submit(FakeGroup("inc-1", processing=1), FakeGroup("inc-2", memory=1))
    bench.submit(FakeGroup("inc-3", processing=1))
    steps = bench.computations.write_lost(99)
    next(steps)
    # It yields after each group.
    assert [table for table, _ in bench.rows] == ["groups"]
    for _ in steps:
        pass
    states = [(row["computation"], row["state"]) for table, row in bench.rows if table == "computations"]
    assert states == [("c0", "lost"), ("c1", "lost")]
    assert bench.computations.open == {}


def test_graphs_merged_into_a_computation_are_counted() -> None:
    bench = Bench()
    group = FakeGroup("inc-1", waiting=1)
    bench.submit(group)
    bench.submit(group, new=False)
    assert bench.tick()["computations"][0]["submissions"] == 2


def test_a_finished_computation_whose_tasks_run_again_is_reopened() -> None:
    bench = Bench()
    group = FakeGroup("inc-1", memory=1)
    bench.submit(group)
    bench.tick()
    bench.computations.reopen_executed(ran(FakeGroup("other")))
    assert bench.computations.open == {}
    group.states = {"waiting": 1, "memory": 0}
    bench.computations.reopen_executed(ran(group))
    assert bench.tick()["computations"][0]["state"] == "running"


def test_a_graph_that_arrives_during_a_round_keeps_its_computation_open() -> None:
    bench = Bench()
    bench.submit(FakeGroup("inc-1", memory=1), FakeGroup("inc-2", memory=1))
    steps = bench.computations.write_changes(99)
    next(steps)
    bench.submit(FakeGroup("inc-3", waiting=1), new=False)
    for _ in steps:
        pass
    assert list(bench.computations.open) == ["c0"]
    assert bench.tick()["computations"][0]["state"] == "running"


def test_a_round_stops_after_each_group() -> None:
    bench = Bench()
    bench.submit(*(FakeGroup(f"inc-{number}", waiting=1) for number in range(1000)))
    steps = bench.computations.write_changes(99)
    for _ in range(10):
        next(steps)
    assert len(bench.rows) == 10


def test_finished_computations_are_forgotten_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CLOSED", 5)
    bench = Bench()
    for number in range(20):
        bench.submit(FakeGroup(f"inc-{number}", memory=1))
        bench.tick()
    assert list(bench.computations.closed) == ["c15", "c16", "c17", "c18", "c19"]


def test_large_finished_computations_are_forgotten_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CLOSED_GROUPS", 100)
    bench = Bench()
    for number in range(20):
        bench.submit(*(FakeGroup(f"inc-{number}-{part}", memory=1) for part in range(30)))
        bench.tick()
    assert list(bench.computations.closed) == ["c17", "c18", "c19"]


def test_spans_and_their_parents_are_written_and_released() -> None:
    bench = Bench()
    outer = FakeSpan("outer")
    inner = FakeSpan("inner", outer)
    bench.spans |= {"outer": outer, "inner": inner}
    group = FakeGroup("inc-1", "inner", waiting=1)
    inner.groups = {group}
    bench.submit(group)
    rows = {row["span"]: row for row in bench.tick()["spans"]}
    assert {name: (row["parent"], row["stop_us"]) for name, row in rows.items()} == {
        "inner": ("outer", 0),
        "outer": ("", 0),
    }
    assert rows["inner"]["tags"] == ["outer", "inner"]
    group.states = {"waiting": 0, "memory": 1}
    rows = {row["span"]: row for row in bench.tick()["spans"]}
    assert [(row["start_us"], row["stop_us"]) for row in rows.values()] == [(10_000_000, 20_000_000)] * 2
    assert bench.computations._open_spans == {}


def test_nothing_is_kept_of_spans_that_are_done() -> None:
    bench = Bench()
    for number in range(1000):
        name = f"s{number}"
        bench.spans[name] = span = FakeSpan(name)
        span.groups = {FakeGroup(f"inc-{number}", name, memory=1)}
        bench.submit(*span.groups)
        assert len(bench.tick()["spans"]) == 1
    assert bench.computations._open_spans == {}


def test_a_span_without_finished_tasks_has_not_started() -> None:
    bench = Bench()
    bench.spans["s"] = span = FakeSpan("s")
    group = FakeGroup("inc-1", "s", waiting=1)
    group.start = 0.0
    span.groups = {group}
    bench.submit(group)
    assert bench.tick()["spans"][0]["start_us"] == 0


def test_without_spans_and_computations_nothing_happens() -> None:
    bench = Bench()
    bench.computations.scheduler.extensions = {}
    assert bench.computations.add_graph("client-1") == ""
    bench.computations.note_cancelled(FakeGroup("inc-1"), 99)
    bench.submit(FakeGroup("inc-1", "s", waiting=1))
    assert bench.tick()["spans"] == []


def source(lines: int, at: int) -> Any:
    text = "\n".join(f"line {number} hunter2hunter2" for number in range(lines))
    return SimpleNamespace(code=text, lineno_relative=at, filename="a.py")


def test_code_is_cut_to_the_call_and_masked() -> None:
    bench = Bench()
    bench.submit(FakeGroup("inc-1", waiting=1))
    bench.dask_computations[-1].code = [(source(1000, 500),)]
    (row,) = bench.tick()["computations"]
    assert row["code"].splitlines()[row["code_line"]].startswith("line 500 ")
    assert row["code_file"] == "a.py"
    assert len(row["code"].splitlines()) == 31
    assert "hunter2" not in row["code"]


def test_code_can_be_switched_off() -> None:
    bench = Bench(code=False)
    bench.submit(FakeGroup("inc-1", waiting=1))
    bench.dask_computations[-1].code = [(source(3, 1),)]
    (row,) = bench.tick()["computations"]
    assert (row["code"], row["code_file"]) == ("", "")


def test_a_line_of_a_megabyte_is_cut() -> None:
    bench = Bench()
    bench.submit(FakeGroup("inc-1", waiting=1))
    bench.dask_computations[-1].code = ["x" * 1_000_000]
    assert len(bench.tick()["computations"][0]["code"]) <= CODE_LIMIT


def test_long_lists_of_a_group_are_cut() -> None:
    bench = Bench()
    group = FakeGroup("inc-1", waiting=1)
    group.types = {f"{number}" * 1000 for number in range(50)}
    group.dependencies = {FakeGroup(f"d-{number}") for number in range(1000)}
    bench.submit(group)
    (row,) = bench.tick()["groups"]
    assert (len(row["types"]), max(map(len, row["types"])), len(row["dependencies"])) == (20, 200, 100)


def test_a_computation_whose_tasks_failed_ends_with_the_last_failure() -> None:
    bench = Bench()
    group = FakeGroup("inc-1", erred=2)
    group.stop = 0.0
    bench.submit(group)
    bench.computations.count_failure(group, 30_000_000)
    bench.computations.note_failure(group, 40_000_000)
    (row,) = bench.tick()["computations"]
    assert (row["state"], row["start_us"], row["stop_us"]) == ("erred", 1_000_000, 40_000_000)


def test_a_success_after_the_last_failure_is_the_end() -> None:
    bench = Bench()
    group = FakeGroup("inc-1", memory=2)
    bench.submit(group)
    bench.computations.note_failure(group, 15_000_000)
    assert bench.tick()["computations"][0]["stop_us"] == 20_000_000


@pytest.mark.parametrize(
    ("states", "stop", "expected"),
    [
        ({"forgotten": 3}, 0.0, ("cancelled", 99_000_000)),
        ({"forgotten": 3}, 20.0, ("done", 20_000_000)),
        ({"released": 2, "forgotten": 1}, 0.0, ("done", 1_000_000)),
        ({"memory": 3}, 0.0, ("done", 1_000_000)),
    ],
    ids=["given up", "ran", "never needed", "there already"],
)
def test_a_computation_that_ended_without_running_was_cancelled(
    states: dict[str, Any], stop: float, expected: tuple[str, int]
) -> None:
    bench = Bench()
    group = FakeGroup("inc-1", **states)
    group.stop = stop
    bench.submit(group)
    (row,) = bench.tick(99_000_000)["computations"]
    assert (row["state"], row["stop_us"]) == expected


def test_cancelling_a_recomputed_task_does_not_undo_a_success() -> None:
    bench = Bench()
    group = FakeGroup("inc-1", memory=1)
    bench.submit(group)
    bench.tick()
    bench.computations.note_cancelled(group, 99)
    bench.computations.reopen_executed(ran(group))
    bench.computations.mark_unwritten()
    assert bench.tick()["computations"][0]["state"] == "done"


def borrowed(*, seen: bool) -> tuple[Bench, FakeGroup]:
    """Return a bench with 20 tasks done and held, and 160 more of the same group submitted later."""
    bench = Bench()
    group = FakeGroup("step", memory=20)
    group.stop = 5.0
    bench.submit(group)
    if seen:
        bench.tick()
    group.states = {"memory": 20, "released": 160}
    bench.submit(fresh={group: 160})
    group.states = {"memory": 20, "processing": 160}
    return bench, group


@pytest.mark.parametrize("seen", [True, False])
def test_computations_that_share_a_group_count_their_own_tasks(seen: bool) -> None:
    bench, group = borrowed(seen=seen)
    first = bench.tick()["computations"]
    assert [(row["computation"], row["state"], row["tasks"], row["unfinished"]) for row in first] == [
        *([] if seen else [("c0", "done", 20, 0)]),
        ("c1", "running", 160, 160),
    ]
    group.states, group.stop, group.all_durations = {"memory": 180}, 9.0, {"compute": 4.0}
    bench.computations.reopen_executed(ran(group))
    found = bench.tick()
    # The first is not reopened.
    (row,) = found["computations"]
    assert (row["computation"], row["state"], row["memory"], row["stop_us"]) == ("c1", "done", 160, 9_000_000)
    (part,) = found["groups"]
    assert json.loads(part["states"]) == {"memory": 160}
    assert json.loads(part["durations_us"]) == {"compute": 2_500_000}
    assert list(bench.computations.closed) == ["c0", "c1"]


def test_later_states_of_the_first_computations_tasks_do_not_count_for_the_second() -> None:
    bench, group = borrowed(seen=True)
    # All tasks of both computations are forgotten.
    group.states, group.stop = {"memory": 0, "forgotten": 180}, 9.0
    (row,) = bench.tick()["computations"]
    assert (row["state"], row["tasks"], row["memory"], row["forgotten"]) == ("done", 160, 0, 160)


def test_a_computation_in_a_shared_group_that_never_ran_was_cancelled() -> None:
    bench, group = borrowed(seen=True)
    group.states = {"memory": 20, "forgotten": 160}
    (row,) = bench.tick()["computations"]
    assert (row["computation"], row["state"]) == ("c1", "cancelled")


def test_tasks_of_the_first_that_run_again_do_not_keep_it_open() -> None:
    bench = Bench()
    old, new = FakeGroup("step", memory=3), FakeGroup("nap", processing=1)
    bench.submit(old)
    bench.submit(new)
    # A worker died, two tasks run again, and four more are submitted while the computation runs.
    old.states = {"memory": 1, "processing": 2, "released": 4}
    bench.submit(new=False, fresh={old: 4})
    old.states = {"memory": 1, "processing": 6}
    rows = bench.tick()["computations"]
    assert [(row["state"], row["tasks"], row["memory"], row["unfinished"]) for row in rows] == [
        ("done", 3, 3, 0),
        ("running", 5, 0, 5),
    ]
    old.states, new.states = {"memory": 7}, {"memory": 1}
    (row,) = bench.tick()["computations"]
    assert (row["state"], row["tasks"], row["groups"]) == ("done", 5, 2)


def test_a_group_of_an_unknown_computation_can_be_shared() -> None:
    bench = Bench()
    group = FakeGroup("step", memory=20, released=1)
    bench.submit(fresh={group: 1})
    group.states = {"memory": 21}
    group.stop = 21.0
    (row,) = bench.tick()["computations"]
    assert (row["tasks"], row["memory"], row["stop_us"]) == (1, 1, 21_000_000)


def test_a_graph_of_known_results_is_done() -> None:
    bench = Bench()
    group = FakeGroup("step", memory=2)
    bench.submit(group)
    bench.tasks["a"] = SimpleNamespace(state="memory", group=group)
    bench.dask_computations.append(SimpleNamespace(id="c1", start=2.0, groups=set(), code=[]))
    bench.computations.add_graph("client-1", ["a", "gone"])
    rows = bench.tick()["computations"]
    assert [(row["state"], row["tasks"], row["groups"]) for row in rows] == [("done", 2, 1), ("done", 2, 0)]


def test_cached_holders_are_forgotten_with_their_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CLOSED", 5)
    bench = Bench()
    group = FakeGroup("step", memory=1)
    bench.submit(group)
    for number in range(1, 50):
        other = FakeGroup(f"other-{number}", memory=1)
        group.states = {"memory": number, "released": 1}
        bench.submit(other, fresh={group: 1})
        group.states = {"memory": number + 1}
        bench.computations.find(other)
        bench.computations.note_failure(other, 99)
        (row,) = (row for row in bench.tick()["computations"] if row["computation"] == f"c{number}")
        assert (row["tasks"], row["memory"]) == (2, 2)
    bench.submit(FakeGroup("last", memory=1))
    assert bench.computations.find(other) is bench.computations.closed["c49"]
    assert len(bench.computations.closed) == 5
    assert set(bench.computations._holders) <= {group, other}


def test_failures_belong_to_the_computation_that_has_the_group() -> None:
    bench = Bench()
    one, two = FakeGroup("one", memory=1), FakeGroup("two", memory=1)
    bench.submit(one)
    bench.tick()
    bench.submit(two)
    bench.computations.count_failure(one, 99_000_000)
    found = {row["computation"]: row for row in bench.tick()["computations"]}
    assert {name: (row["state"], row["stop_us"]) for name, row in found.items()} == {
        "c0": ("erred", 99_000_000),
        "c1": ("done", 20_000_000),
    }
    assert bench.computations.find(FakeGroup("unknown")) is bench.computations.current


def test_recomputed_tasks_are_attributed_to_the_computation_that_has_the_group() -> None:
    bench = Bench()
    one, two = FakeGroup("one", memory=1), FakeGroup("two", memory=1)
    bench.submit(one)
    bench.tick()
    bench.submit(two)
    chunk = ran(one)
    chunk.values += ran(two).values
    bench.computations.reopen_executed(chunk)
    assert chunk.owners == {one: "c0"}
    # In a shared group it is not known which computation a task belongs to.
    two.states = {"memory": 1, "released": 1}
    bench.submit(FakeGroup("three"), fresh={two: 1})
    bench.submit(FakeGroup("four"))
    chunk = ran(two)
    bench.computations.reopen_executed(chunk)
    assert chunk.owners == {}


def test_a_running_computation_counts_its_tasks_by_prefix() -> None:
    bench = Bench()
    first, second, other = (
        FakeGroup("inc-1", waiting=2, memory=3),
        FakeGroup("inc-2", memory=1),
        FakeGroup("sum-1", erred=1),
    )
    bench.submit(first, second, other)
    (row,) = bench.tick()["computations"]
    assert json.loads(row["prefix_states"]) == {"inc": {"waiting": 2, "memory": 4}, "sum": {"erred": 1}}
    first.states = {"waiting": 0, "memory": 5}
    (row,) = bench.tick()["computations"]
    assert (row["state"], row["prefix_states"]) == ("erred", "")


def test_only_the_largest_prefixes_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PREFIXES", 2)
    bench = Bench()
    bench.submit(*(FakeGroup(f"{name}-1", waiting=count) for name, count in (("a", 1), ("b", 5), ("c", 2), ("d", 3))))
    (row,) = bench.tick()["computations"]
    assert json.loads(row["prefix_states"]) == {"b": {"waiting": 5}, "d": {"waiting": 3}, "(other)": {"waiting": 3}}


@pytest.mark.parametrize(
    ("message", "nbytes"),
    [
        ({"expr_ser": SimpleNamespace(frames=[b"12345", memoryview(b"678"), bytearray(2)])}, 10),
        ({"graph_header": {}, "graph_frames": [b"12345"]}, 5),
        ({}, 0),
        ({"expr_ser": None}, 0),
        ({"expr_ser": SimpleNamespace(frames=[None, "text", 5, [b"1"], b"12"])}, 2),
        ({"expr_ser": SimpleNamespace(frames=10**12)}, 0),
        ({"graph_frames": "text"}, 0),
        ({"graph_frames": {b"1": b"2"}}, 0),
    ],
)
def test_the_size_of_a_graph_is_the_size_of_its_buffers(message: dict[str, Any], nbytes: int) -> None:
    assert Arrival.of(message, 7) == Arrival(7, nbytes)
