"""Every execution makes one row, even from an invalid message, and the columns stay aligned."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from daskscope.collector.aliases import Aliases
from daskscope.collector.privacy import Scrubber
from daskscope.collector.scheduler.executions import (
    MAX_DEPENDENCIES,
    Executed,
    Execution,
    Executions,
    build_executions,
    edge_columns,
    task_columns,
)
from daskscope.model.recording import Table
from daskscope.wire.decode import read_frame
from daskscope.wire.encode import encode_body, seal

T0 = 1_700_000_000.0
WORKER = "tcp://10.0.0.1:40001"
SCRUBBER = Scrubber()


class Prefix:
    def __init__(self, name: str) -> None:
        self.name = name


class Group:
    def __init__(self, name: str, span_id: str | None = "span-1") -> None:
        self.name = name
        self.prefix = Prefix(name.partition("-")[0])
        self.span_id = span_id


class Task:
    def __init__(self, key: Any, group: Group) -> None:
        self.key = key
        self.group = group
        self.dependencies: set[Task] = set()


class Bench:
    """The hot path over a dict of tasks as the scheduler, with a fake clock."""

    def __init__(self, **options: Any) -> None:
        self.now = T0
        self.tasks: dict[Any, Task] = {}
        self.others: list[tuple[Any, ...]] = []
        self.errors: list[BaseException] = []
        self.group = Group("inc-aa")
        self.hot: Executions = build_executions(
            self.tasks,
            lambda: round(self.now * 1e6) * 1000,
            lambda *args: self.others.append(args),
            self.errors.append,
            **options,
        )

    def task(self, key: Any, *dependencies: Any) -> Task:
        task = self.tasks.setdefault(key, Task(key, self.group))
        task.dependencies |= {self.tasks[other] for other in dependencies}
        return task

    def assign(self, key: Any, at: float) -> None:
        self.task(key)
        self.now = T0 + at
        self.hot.transition(key, "waiting", "processing", stimulus_id="s")

    def finish(self, key: Any, start: float, stop: float, *before: dict[str, Any], **kw: Any) -> None:
        compute = {"action": "compute", "start": T0 + start, "stop": T0 + stop}
        message = {
            "worker": WORKER,
            "nbytes": 28,
            "typename": "int",
            "thread": 99,
            "startstops": (*before, compute),
            "metadata": {},
            "status": "OK",
            **kw,
        }
        self.hot.transition(key, "processing", "memory", stimulus_id="task-finished-1", **message)

    def run(self, key: Any, *dependencies: Any, start: float = 1.0, stop: float = 2.0, **kw: Any) -> None:
        self.task(key, *dependencies)
        self.assign(key, start - 0.5)
        self.finish(key, start, stop, **kw)

    def forget(self, key: Any) -> None:
        self.hot.transition(key, "memory", "released", stimulus_id="s")
        self.hot.transition(key, "released", "forgotten", stimulus_id="s")
        self.tasks.pop(key, None)


def us(seconds: float) -> int:
    return int((T0 + seconds) * 1e6)


def decoded(table: str, columns: dict[str, Any]) -> Table:
    body = encode_body(table, columns)
    return read_frame(seal(body, cluster="c", epoch=1, sequence=0, kept=body.rows, dropped=0)).table()


def rows(chunk: Executed, *, keys: bool = True) -> list[dict[str, Any]]:
    table = decoded("tasks", task_columns(chunk, SCRUBBER, Aliases(keys=keys)))
    found = [{name: table[name][row] for name in table} for row in range(table.rows)]
    for row in found:
        # Times are kept in steps of 128 µs, so compare milliseconds.
        row["assigned_us"], row["queued_us"] = (
            round(int(row[name]) / 1e3) * 1000 for name in ("assigned_us", "queued_us")
        )
    return found


def edges(chunk: Executed) -> set[tuple[int, int]]:
    table = decoded("edges", edge_columns(chunk))
    return set(zip(table["task"].tolist(), table["dependency"].tolist(), strict=True))


def aligned(chunk: Executed) -> bool:
    """Return whether the columns have as many rows as the chunk; encoding refuses columns of different lengths."""
    return encode_body("tasks", task_columns(chunk, SCRUBBER)).rows == chunk.rows


def test_a_success_becomes_a_row() -> None:
    bench = Bench()
    bench.run(("x-aa", 0), start=1.0, stop=2.5)
    (row,) = rows(bench.hot.rotate())
    assert row["key"] == "('x-aa', 0)"
    assert (row["group"], row["prefix"], row["span"]) == ("inc-aa", "inc", "span-1")
    assert (row["worker"], row["thread"], row["nbytes"], row["type"]) == (WORKER, 99, 28, "int")
    assert (row["assigned_us"], row["start_us"], row["stop_us"]) == (us(0.5), us(1.0), us(2.5))
    assert (row["status"], row["interval_action"]) == ("ok", [])
    assert bench.errors == []


def test_a_task_that_was_never_queued_became_runnable_when_it_was_assigned() -> None:
    bench = Bench()
    bench.run("inc-1")
    (row,) = rows(bench.hot.rotate())
    assert row["queued_us"] == row["assigned_us"]


@pytest.mark.parametrize("state", ["queued", "no-worker"])
def test_the_time_in_the_queue_is_kept(state: str) -> None:
    bench = Bench()
    bench.task("inc-1")
    bench.now = T0 + 0.25
    bench.hot.transition("inc-1", "waiting", state, stimulus_id="s")
    bench.run("inc-1", start=2.0, stop=3.0)
    (row,) = rows(bench.hot.rotate())
    assert (row["queued_us"], row["assigned_us"]) == (us(0.25), us(1.5))


@pytest.mark.parametrize(
    ("start", "finish"),
    [
        ("released", "waiting"),
        ("memory", "released"),
        ("released", "memory"),
        ("erred", "released"),
    ],
)
def test_transitions_between_other_states_make_no_row(start: str, finish: str) -> None:
    bench = Bench()
    bench.task("inc-1")
    bench.hot.transition("inc-1", start, finish, stimulus_id="s")
    assert (bench.hot.rows(), bench.others, bench.errors) == (0, [], [])


@pytest.mark.parametrize("start", ["waiting", "queued", "no-worker"])
def test_the_release_of_a_task_that_did_not_start_is_handed_on(start: str) -> None:
    bench = Bench()
    bench.task("inc-1")
    bench.hot.transition("inc-1", start, "released", stimulus_id="s")
    assert (bench.hot.rows(), bench.others, bench.errors) == (0, [("inc-1", start, "released", "s", {})], [])


@pytest.mark.parametrize(
    ("start", "finish"),
    [
        ("processing", "erred"),
        ("processing", "released"),
        ("processing", "waiting"),
        ("waiting", "erred"),
        ("released", "erred"),
        ("no-worker", "erred"),
        ("queued", "erred"),
    ],
)
def test_transitions_other_than_success_are_passed_on(start: str, finish: str) -> None:
    bench = Bench()
    bench.task("inc-1")
    bench.hot.transition("inc-1", start, finish, stimulus_id="cancel-key-1", worker="w")
    assert bench.others == [("inc-1", start, finish, "cancel-key-1", {"worker": "w"})]
    assert bench.hot.rows() == 0


@pytest.mark.parametrize("status", ["error", "retried", "killed"])
def test_failed_executions_are_rows_too(status: str) -> None:
    bench = Bench()
    bench.run("inc-1")
    bench.assign("inc-2", 0.5)
    startstops = [{"action": "compute", "start": T0 + 1, "stop": T0 + 2}] if status != "killed" else []
    bench.hot.add(Execution("inc-2", bench.group, WORKER, 5, startstops, status))
    bench.run("inc-3")
    got = rows(bench.hot.rotate())
    assert [row["status"] for row in got] == ["ok", status, "ok"]
    assert [row["id"] for row in got] == [0, 1, 2]
    assert got[1]["assigned_us"] == us(0.5)


def test_a_retried_task_has_a_row_for_each_attempt() -> None:
    bench = Bench()
    for attempt in range(3):
        bench.assign("inc-1", attempt)
        computed = [{"action": "compute", "start": T0 + attempt + 0.5, "stop": T0 + attempt + 0.75}]
        bench.hot.add(Execution("inc-1", bench.group, WORKER, 5, computed, "retried"))
    bench.run("inc-1", start=5.0, stop=6.0)
    got = rows(bench.hot.rotate())
    assert [row["status"] for row in got] == ["retried"] * 3 + ["ok"]
    assert [row["assigned_us"] for row in got] == [us(0), us(1), us(2), us(4.5)]


def interval(action: str, start: float, stop: float, **more: str) -> dict[str, Any]:
    return {"action": action, "start": T0 + start, "stop": T0 + stop, **more}


def test_intervals_other_than_computing_are_kept() -> None:
    bench = Bench()
    bench.assign("inc-1", 0.0)
    bench.finish("inc-1", 2.0, 3.0, interval("transfer", 0.5, 1.0, source="tcp://w2"), interval("disk-read", 1.0, 1.25))
    (row,) = rows(bench.hot.rotate())
    got = zip(
        row["interval_action"],
        row["interval_start_us"],
        row["interval_stop_us"],
        row["interval_source"],
        strict=True,
    )
    assert set(got) == {("transfer", us(0.5), us(1.0), "tcp://w2"), ("disk-read", us(1.0), us(1.25), "")}
    assert (row["start_us"], row["stop_us"]) == (us(2.0), us(3.0))


def test_each_interval_counts_once_over_re_runs() -> None:
    bench = Bench()
    first = (interval("transfer", 0.5, 1.0, source="a"),)
    bench.assign("inc-1", 0.0)
    bench.finish("inc-1", 1.0, 2.0, *first)
    # The worker reports the intervals of the first run again.
    again = (*first, interval("compute", 1.0, 2.0), interval("disk-write", 2.0, 2.5), interval("transfer", 3.0, 3.5))
    bench.assign("inc-1", 2.75)
    bench.finish("inc-1", 4.0, 5.0, *again)
    one, two = rows(bench.hot.rotate())
    assert one["interval_action"] == ["transfer"]
    assert sorted(two["interval_action"]) == ["disk-write", "transfer"]
    assert sorted(two["interval_start_us"]) == [us(2.0), us(3.0)]
    assert (two["start_us"], two["stop_us"]) == (us(4.0), us(5.0))


def test_negative_durations_become_zero() -> None:
    bench = Bench()
    bench.assign("inc-1", 0.0)
    bench.finish("inc-1", 3.0, 2.0, interval("transfer", 1.0, 0.5))
    (row,) = rows(bench.hot.rotate())
    assert row["start_us"] == row["stop_us"] == us(2.0)
    assert row["interval_start_us"] == row["interval_stop_us"]


def test_durations_are_rounded_as_dask_rounds_them() -> None:
    bench = Bench()
    bench.assign("inc-1", 0.0)
    start, stop = T0 + 0.1000004, T0 + 0.2000011
    bench.finish("inc-1", 0, 0, startstops=({"action": "compute", "start": start, "stop": stop},))
    (row,) = rows(bench.hot.rotate())
    assert row["stop_us"] - row["start_us"] == round((stop - start) * 1e6)


def test_edges_name_the_executions_of_both_ends() -> None:
    bench = Bench()
    bench.run("inc-1")
    bench.run("inc-2")
    bench.run("inc-3", "inc-1", "inc-2")
    assert edges(bench.hot.rotate()) == {(2, 0), (2, 1)}


def test_edges_reach_back_over_a_rotation() -> None:
    bench = Bench()
    bench.run("inc-1")
    bench.hot.rotate()
    bench.run("inc-2", "inc-1")
    chunk = bench.hot.rotate()
    assert chunk.first_id == 1
    assert edges(chunk) == {(1, 0)}


def test_a_dependency_from_before_the_recording_is_not_known() -> None:
    bench = Bench()
    bench.task("inc-0")
    bench.run("inc-1", "inc-0")
    assert edges(bench.hot.rotate()) == {(0, -1)}


def test_an_assignment_time_is_never_used_as_a_dependency() -> None:
    bench = Bench()
    bench.run("inc-1")
    bench.assign("inc-2", 0.0)
    bench.task("inc-2", "inc-1")
    bench.assign("inc-1", 3.0)
    bench.finish("inc-2", 3.0, 4.0)
    assert edges(bench.hot.rotate()) == {(1, -1)}


def test_too_many_dependencies_are_dropped_and_counted() -> None:
    bench = Bench()
    many = [f"inc-{number}" for number in range(MAX_DEPENDENCIES + 1)]
    for key in many:
        bench.task(key)
    bench.run("sum-1", *many)
    bench.run("sum-2", *many[1:])
    chunk = bench.hot.rotate()
    assert chunk.edges_dropped == MAX_DEPENDENCIES + 1
    assert len(chunk.dependencies) == MAX_DEPENDENCIES


def test_edges_can_be_switched_off() -> None:
    bench = Bench(edges=False)
    bench.run("inc-1")
    bench.run("inc-2", "inc-1")
    assert bench.hot.rotate().dependencies == []


def test_a_rotation_begins_with_empty_columns_and_goes_on_counting() -> None:
    bench = Bench()
    bench.hot.set_computation("c1")
    bench.run("inc-1")
    first = bench.hot.rotate()
    bench.run("inc-2")
    second = bench.hot.rotate()
    assert [row["id"] for row in rows(first) + rows(second)] == [0, 1]
    assert [row["computation"] for row in rows(first) + rows(second)] == ["c1", "c1"]
    assert bench.hot.rotate().rows == 0


def test_rows_belong_to_the_computation_that_was_running() -> None:
    bench = Bench()
    bench.run("inc-0")
    for number in (1, 2):
        bench.hot.set_computation("unused")
        bench.hot.set_computation(f"c{number}")
        bench.run(f"inc-{number}")
    bench.hot.set_computation("c3")
    got = rows(bench.hot.rotate())
    bench.run("inc-3")
    got += rows(bench.hot.rotate())
    assert [row["computation"] for row in got] == ["", "c1", "c2", "c3"]


def test_recomputed_tasks_belong_to_the_computation_that_has_their_group() -> None:
    bench = Bench()
    again = Group("load-aa")
    bench.hot.set_computation("c1")
    for number, group in enumerate((bench.group, again, again, bench.group, again)):
        if number == 4:
            bench.hot.set_computation("c2")
        bench.task(f"inc-{number}").group = group
        bench.run(f"inc-{number}")
    chunk = bench.hot.rotate()
    chunk.owners[again] = "c0"
    assert [row["computation"] for row in rows(chunk)] == ["c1", "c0", "c0", "c1", "c0"]


def test_nothing_is_kept_of_a_key_that_dask_forgot() -> None:
    bench = Bench()
    live = inspect.getclosurevars(bench.hot.transition).nonlocals["live"]
    for number in range(1000):
        bench.run(f"inc-{number}")
    assert len(live) == 1000
    for number in range(1000):
        bench.forget(f"inc-{number}")
    assert len(live) == 0


def test_without_keys_only_the_group_is_named() -> None:
    bench = Bench()
    bench.run("inc-secret")
    (row,) = rows(bench.hot.rotate(), keys=False)
    assert row["key"] == row["group"] == Aliases(keys=False).group("inc-aa")


@pytest.mark.parametrize("missing", ["startstops", "worker", "nbytes", "typename", "thread"])
def test_an_incomplete_message_leaves_the_columns_aligned(missing: str) -> None:
    bench = Bench()
    bench.run("inc-1")
    bench.assign("inc-2", 0.5)
    message: dict[str, Any] = {
        "worker": WORKER,
        "nbytes": 1,
        "typename": "int",
        "thread": 1,
        "startstops": (interval("compute", 1, 2),),
    }
    del message[missing]
    bench.hot.transition("inc-2", "processing", "memory", stimulus_id="s", **message)
    bench.run("inc-3")
    chunk = bench.hot.rotate()
    assert bench.errors == []
    assert aligned(chunk)
    found = rows(chunk)
    assert [row["key"] for row in found] == ["inc-1", "inc-2", "inc-3"]
    kept = {name: found[1][name] for name in ("worker", "nbytes", "type", "thread")}
    said = {"worker": WORKER, "nbytes": 1, "type": "int", "thread": 1}
    column = "type" if missing == "typename" else missing
    assert kept == {name: type(value)() if name == column else value for name, value in said.items()}


@pytest.mark.parametrize(
    "broken",
    [
        {"worker": ["unhashable"]},
        {"typename": {}},
        {"startstops": None},
        {"startstops": (interval("transfer", 0, 1), {"action": "compute"})},
        {"startstops": ({"action": "compute", "start": None, "stop": 1.0},)},
    ],
)
def test_an_invalid_message_leaves_the_columns_aligned(broken: dict[str, Any]) -> None:
    bench = Bench()
    bench.assign("inc-1", 0.5)
    bench.finish("inc-1", 1.0, 2.0, **broken)
    bench.run("inc-2")
    chunk = bench.hot.rotate()
    assert bench.errors == []
    assert aligned(chunk)
    broke, row = rows(chunk)
    assert (broke["key"], broke["worker"], broke["interval_action"]) == ("inc-1", "", [])
    assert (row["key"], row["worker"], row["interval_action"]) == ("inc-2", WORKER, [])


def test_intervals_of_a_row_that_fails_later_do_not_go_to_the_next() -> None:
    bench = Bench()
    bench.assign("inc-1", 0.5)
    bench.finish("inc-1", 1.0, 2.0, interval("transfer", 0.5, 0.75), worker=["unhashable"])
    bench.run("inc-2")
    found = rows(bench.hot.rotate())
    assert [(row["key"], row["interval_action"]) for row in found] == [("inc-1", []), ("inc-2", [])]


def test_an_unknown_task_leaves_the_columns_aligned() -> None:
    bench = Bench()
    bench.finish("inc-unknown", 1.0, 2.0)
    bench.run("inc-2")
    chunk = bench.hot.rotate()
    assert len(bench.errors) == 1
    assert aligned(chunk)
    assert len(rows(chunk)) == 1


def test_no_transition_raises() -> None:
    bench = Bench()
    bench.hot.transition(["unhashable"], "processing", "memory", stimulus_id="s")
    bench.hot.transition(["unhashable"], "released", "forgotten", stimulus_id="s")
    bench.hot.transition(["unhashable"], "waiting", "processing", stimulus_id="s")
    assert {type(error) for error in bench.errors} == {TypeError}


def test_more_than_65535_groups_in_one_chunk_are_kept() -> None:
    bench = Bench(edges=False)
    count = 66_000
    for number in range(count):
        key = f"load_{number}"
        bench.tasks[key] = Task(key, Group(key))
        bench.finish(key, 1.0, 2.0)
    table = decoded("tasks", task_columns(bench.hot.rotate(), SCRUBBER))
    assert table["group"][count - 1] == f"load_{count - 1}"


def test_a_queued_task_that_is_cancelled_leaves_nothing_behind() -> None:
    bench = Bench()
    before = referrers(bench)
    for number in range(100):
        key = f"inc-{number}"
        bench.task(key)
        bench.hot.transition(key, "waiting", "queued", stimulus_id="s")
        bench.hot.transition(key, "queued", "released", stimulus_id="s")
        bench.hot.transition(key, "released", "forgotten", stimulus_id="s")
    assert referrers(bench) == before


def referrers(bench: Bench) -> int:
    """Return the number of entries in all dictionaries of the closures."""
    cells = getattr(bench.hot.transition, "__closure__", None) or ()
    owners = [getattr(cell.cell_contents, "__self__", cell.cell_contents) for cell in cells]
    return sum(len(owner) for owner in {id(o): o for o in owners if type(o) is dict and o is not bench.tasks}.values())
