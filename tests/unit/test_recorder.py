"""The recorder turns hook calls into rows, over a fake scheduler."""

from __future__ import annotations

import json
import pickle
from types import SimpleNamespace
from typing import Any

import pytest
from distributed.scheduler import KilledWorker, WorkerState
from tests.helpers.recorder_bench import T0, US, Bench, FakeGroup, FakeTask, FakeWorker, add_worker, remove_worker

from daskscope.collector.aliases import Aliases
from daskscope.collector.scheduler import recorder as module
from daskscope.collector.scheduler.events import MAX_WINDOWS, METRIC_TOPIC, WINDOW_TOPIC
from daskscope.collector.scheduler.recorder import SAMPLES_PER_TICK


def killed(key: str) -> bytes:
    """Return the pickled exception that the scheduler makes when a task's workers keep dying."""
    worker = WorkerState.__new__(WorkerState)
    object.__setattr__(worker, "address", "w1")
    return pickle.dumps(KilledWorker(key, worker, 3))


class Planted:
    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("raise SystemExit",)


def test_the_cluster_is_written_when_it_begins_changes_and_ends() -> None:
    bench = Bench(name="mine", user="me", host="my-host")
    bench.recorder.begin({"dask": "1"}, {"array.chunk-size": "1 MiB"})
    (row,) = bench.rows("clusters")
    assert (row["cluster"], row["name"], row["user"], row["host"]) == ("Scheduler-1", "mine", "me", "my-host")
    assert (row["start_us"], row["recording_us"], row["end_us"]) == (US - 100_000_000, US, 0)
    assert json.loads(row["config"]) == {"array.chunk-size": "1 MiB"}
    bench.round()
    assert bench.rows("clusters") == []
    bench.now_ns += 10_000_000_000
    bench.round()
    assert [row["seen_us"] for row in bench.rows("clusters")] == [US + 10_000_000]
    bench.round()
    assert bench.rows("clusters") == []
    bench.scheduler.total_nthreads = 4
    bench.round()
    assert bench.rows("clusters")[0]["threads"] == 4
    bench.recorder.end("closed")
    assert bench.rows("clusters")[-1]["end_reason"] == "closed"


def test_hostnames_can_be_left_out() -> None:
    bench = Bench(host="my-host", hostnames=False)
    bench.recorder.begin({}, {})
    assert bench.rows("clusters")[0]["host"] == ""


def erred(bench: Bench, key: str = "load-1", start: str = "processing", **kw: Any) -> None:
    bench.recorder.executions.transition(key, start, "erred", stimulus_id="s", **kw)


def test_a_task_that_raised() -> None:
    bench = Bench()
    bench.task("load-1")
    computed = ({"action": "compute", "start": T0, "stop": T0 + 1},)
    erred(bench, worker="w1", exception_text="ValueError('x')", traceback_text="", thread=3, startstops=computed)
    (row,) = bench.rows("exceptions")
    assert (row["key"], row["prefix"], row["type"], row["message"], row["worker"]) == (
        "load-1",
        "load",
        "ValueError",
        "x",
        "w1",
    )
    assert bench.recorder.rotate().statuses == [(0, "error")]


def test_a_task_whose_workers_died() -> None:
    bench = Bench()
    bench.task("load-1")
    add_worker(bench)
    erred(bench, worker="w1", exception=killed("load-1"), cause="load-1")
    remove_worker(bench, ["load-1"])
    (row,) = bench.rows("exceptions")
    assert row["type"] == "KilledWorker"
    assert row["message"].startswith("Attempted to run task 'load-1' on 4 different workers")
    # It failed for good; "killed" is only for tasks that run again.
    assert bench.recorder.rotate().statuses == [(0, "error")]


def test_a_task_no_worker_may_run_has_no_execution() -> None:
    bench = Bench()
    bench.task("load-1")
    erred(bench, start="no-worker", exception=pickle.dumps(RuntimeError("no worker")), cause="load-1")
    assert bench.rows("exceptions")[0]["message"] == "no worker"
    assert bench.recorder.rotate().rows == 0


def test_a_task_that_depends_on_a_failed_one() -> None:
    bench = Bench()
    culprit = bench.task("load-1")
    culprit.exception_text = "ValueError('x')"
    bench.task("sum-1").exception_blame = culprit
    erred(bench, "sum-1", "waiting")
    (row,) = bench.rows("exceptions")
    assert (row["key"], row["blamed_key"], row["type"]) == ("sum-1", "load-1", "ValueError")


def test_a_failure_with_retries_left() -> None:
    bench = Bench()
    bench.task("load-1").retries = 1
    message = {"key": "load-1", "worker": "w1", "exception_text": "ValueError('x')", "traceback_text": "", "run_id": 4}
    bench.recorder.before_task_erred(message)
    assert bench.rows("exceptions")[0]["will_retry"] == 1
    assert bench.recorder.rotate().statuses == [(0, "retried")]


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"retries": 0}, {}), ({"state": "memory"}, {}), ({}, {"run_id": 3}), ({}, {"key": "unknown"})],
)
def test_a_final_stale_or_unknown_failure_is_not_a_retry(changes: dict[str, Any], message: dict[str, Any]) -> None:
    bench = Bench()
    task = bench.task("load-1")
    task.retries = 1
    for name, value in changes.items():
        setattr(task, name, value)
    bench.recorder.before_task_erred({"key": "load-1", "worker": "w1", "run_id": 4, **message})
    assert bench.rows("exceptions") == []


def test_without_keys_no_key_is_in_a_failure() -> None:
    bench = Bench(keys=False)
    bench.task("load-mark7").retries = 0
    erred(bench, "load-mark7", worker="w1", exception=killed("load-mark7"))
    bench.task("sum-mark8").exception_blame = bench.scheduler.tasks["load-mark7"]
    erred(bench, "sum-mark8", "waiting")
    one, two = bench.rows("exceptions")
    assert "mark" not in str([one, two])
    assert (one["key"], two["key"], two["blamed_key"]) == tuple(
        map(Aliases(keys=False).group, ("load-group", "sum-group", "load-group"))
    )
    assert Aliases(keys=False).key("load-mark7") in one["message"]


class FollowedGroup(FakeGroup):
    """The attributes of a group that a computation reads."""

    def __init__(self, name: str, **states: int) -> None:
        super().__init__(name)
        self.states = states
        self.all_durations: dict[str, float] = {}
        self.nbytes_total = 0
        self.start = self.stop = 0.0
        self.types: set[str] = set()
        self.dependencies: set[Any] = set()


def submitted(bench: Bench, key: str, **states: int) -> FakeTask:
    """Submit a computation of one task."""
    task = bench.task(key)
    task.group = FollowedGroup(key, **states)
    number = len(bench.scheduler.computations)
    bench.scheduler.computations.append(
        SimpleNamespace(id=f"c{number}", start=float(T0), stop=-1.0, groups={task.group}, code=[])
    )
    bench.recorder.graph("client-1", [key])
    return task


@pytest.mark.parametrize(
    ("stimulus", "state"),
    [
        ("client-releases-keys-1.5", "cancelled"),
        ("cancel-key-1.5", "cancelled"),
        ("remove-client-1.5", "cancelled"),
        ("client-restart-1.5", "cancelled"),
        ("client-restart-workers-1.5", "done"),
        ("handle-worker-cleanup-1.5", "done"),
        ("retire-workers-1.5", "done"),
        ("check-worker-ttl-1.5", "done"),
        ("worker-send-comm-fail-1.5", "done"),
        ("reschedule-1.5", "done"),
        ("", "done"),
    ],
)
def test_released_tasks_are_cancelled_and_moved_tasks_are_not(stimulus: str, state: str) -> None:
    bench = Bench()
    task = submitted(bench, "load-1", processing=1)
    bench.now_ns += 5 * 10**9
    bench.recorder.executions.transition("load-1", "processing", "released", stimulus_id=stimulus)
    assert isinstance(task.group, FollowedGroup)
    # It ran on another worker, if it was not cancelled.
    task.group.states, task.group.stop = {"forgotten": 1}, float(T0 + 1)
    bench.round()
    (row,) = bench.rows("computations")
    assert (row["state"], row["stop_us"]) == (state, US + (5_000_000 if state == "cancelled" else 1_000_000))


def test_a_result_released_after_its_computation_is_done() -> None:
    bench = Bench()
    submitted(bench, "load-1", memory=1)
    bench.recorder.executions.transition("load-1", "memory", "released", stimulus_id="client-releases-keys-1.5")
    bench.round()
    assert bench.rows("computations")[0]["state"] == "done"


@pytest.mark.parametrize("how", ["erred", "retried", "killed"])
def test_a_failure_belongs_to_its_own_computation_and_not_to_the_last(how: str) -> None:
    bench = Bench()
    task = submitted(bench, "load-1", memory=1)
    submitted(bench, "sum-1", memory=1)
    bench.now_ns += 5 * 10**9
    if how == "killed":
        add_worker(bench)
        remove_worker(bench, ["load-1"])
    elif how == "retried":
        task.retries = 1
        bench.recorder.before_task_erred({"key": "load-1", "worker": "w1", "exception_text": "ValueError('x')"})
    else:
        erred(bench, worker="w1", exception_text="ValueError('x')", traceback_text="")
    assert bench.recorder.rotate().owners == {task.group: "c0"}
    bench.recorder.failures.flush_ready(bench.now_ns // 1000, everything=True)
    bench.round()
    found: dict[str, list[dict[str, Any]]] = {}
    for name, columns, count, _ in bench.recorder.rows.drain():
        made = columns()
        found[name] = [{column: values[row] for column, values in made.items()} for row in range(count)]
    states = {row["computation"]: (row["state"], row["stop_us"] - US) for row in found["computations"]}
    assert states == {"c0": ("erred" if how == "erred" else "done", 5_000_000), "c1": ("done", 0)}
    assert [row["computation"] for row in found.get("exceptions", [])] == ([] if how == "killed" else ["c0"])


ADDED, REMOVED = {"action": "add-worker"}, {"action": "remove-worker"}


@pytest.mark.parametrize(
    ("events", "start"),
    [
        ([(T0 - 50.0, ADDED), (T0 - 20.0, {"action": "x"})], -50),
        ([(T0 - 90.0, ADDED), (T0 - 60.0, REMOVED), (T0 - 50.0, ADDED)], -50),
        ([(T0 - 60.0, REMOVED), (T0 - 50.0, "text"), (T0 - 20.0, {"action": "x"})], -50),
        ([(T0 + 5.0, ADDED)], 0),
        ([], 0),
    ],
    ids=["added", "another had its address", "the log is cut", "the clock was set", "nothing is known"],
)
def test_workers_from_before_the_recording_start_when_dask_added_them(events: list[Any], start: int) -> None:
    bench = Bench()
    known = {"server_id": "s1", "name": 0, "host": "h", "nthreads": 1, "memory_limit": 0, "nanny": "", "versions": {}}
    bench.scheduler.workers["w1"] = SimpleNamespace(processing=(), **known)
    bench.scheduler.get_events = {"w1": tuple(events)}.__getitem__
    bench.recorder.begin({}, {})
    (row,) = bench.rows("workers")
    assert (row["start_us"], row["seen_us"]) == (US + start * 1_000_000, US)


def test_an_unknown_task_is_reported_not_raised() -> None:
    bench = Bench()
    erred(bench, "unknown")
    assert [(place, type(error)) for place, error in bench.errors] == [("transition", KeyError)]


def test_only_events_on_the_list_are_kept() -> None:
    bench = Bench()
    for topic in ("all", "print", "warn", "mine", "tcp://10.0.0.1:1"):
        bench.recorder.event(topic, {"action": "something", "text": "x"})
    assert [row["topic"] for row in bench.rows("events")] == ["all"]


def test_with_a_star_all_are_kept() -> None:
    bench = Bench(topics=("*",))
    bench.recorder.event("mine", "hello")
    assert [row["topic"] for row in bench.rows("events")] == ["mine"]


def test_metrics() -> None:
    bench = Bench()
    message = {"name": "events", "value": 5, "unit": "1", "labels": {"dataset": "hunter2hunter2", "n": 3}}
    bench.recorder.event(METRIC_TOPIC, message)
    (row,) = bench.rows("metrics")
    assert (row["name"], row["value"], row["unit"]) == ("events", 5.0, "1")
    assert json.loads(row["labels"]) == {"dataset": "***", "n": 3}


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __float__ = __str__


@pytest.mark.parametrize(
    "message",
    [
        {},
        None,
        "text",
        {"name": "x"},
        {"name": "x", "value": "text"},
        {"name": "x", "value": Hostile()},
        {"window": Hostile(), "name": Hostile(), "labels": Hostile(), "done": True, "error": Hostile()},
        {"window": ["a"], "labels": [1, 2]},
    ],
)
@pytest.mark.parametrize("topic", [METRIC_TOPIC, WINDOW_TOPIC])
def test_invalid_messages_under_daskscopes_topics_do_no_harm(topic: str, message: Any) -> None:
    bench = Bench()
    bench.recorder.event(topic, message)
    assert bench.rows("metrics") == []


def test_metrics_out_of_bounds() -> None:
    bench = Bench()
    labels: dict[Any, Any] = {(1, 2): Hostile(), "long": "x" * 100_000}
    bench.recorder.event(METRIC_TOPIC, {"name": "n" * 1000, "value": 10**400, "labels": labels})
    bench.recorder.event(METRIC_TOPIC, {"name": "n", "value": True, "labels": {"self": labels}})
    one, two = bench.rows("metrics")
    assert (len(one["name"]), one["value"], two["value"]) == (200, float("inf"), 1.0)
    assert all(isinstance(json.loads(row["labels"]), dict) for row in (one, two))


def test_windows_open_and_close() -> None:
    bench = Bench()
    bench.recorder.window({"window": "w", "kind": "record", "name": "mine"})
    bench.now_ns += 10**9
    bench.recorder.window({"window": "w", "done": True, "error": "ValueError: hunter2hunter2"})
    one, two = bench.rows("windows")
    assert (one["status"], one["start_us"], one["stop_us"]) == ("open", US, 0)
    assert (two["status"], two["start_us"], two["stop_us"]) == ("error", US, US + 1_000_000)
    assert (two["kind"], two["name"], two["error"]) == ("record", "mine", "ValueError: ***")


def test_without_exception_text_a_window_names_the_type_only() -> None:
    bench = Bench(exception_text=False)
    bench.recorder.window({"window": "w", "done": True, "error": "ValueError: mark"})
    (row,) = bench.rows("windows")
    assert (row["error"], row["status"]) == ("ValueError", "error")


def test_windows_that_are_never_closed_are_forgotten() -> None:
    bench = Bench()
    for number in range(MAX_WINDOWS + 100):
        bench.recorder.window({"window": f"w{number}"})
    assert len(bench.recorder.windows._open) == MAX_WINDOWS


def test_samples_of_workers_and_the_scheduler() -> None:
    bench = Bench()
    bench.scheduler.workers = {name: FakeWorker(name) for name in ("a", "b")}
    bench.scheduler.workers["b"].metrics = {}
    bench.recorder.children["a"] = {"children": 3}
    bench.recorder.tick_samples(US, 7)
    one, two = bench.rows("samples")
    assert (one["worker"], one["cpu_percent"], one["memory"], one["executing"], one["children"]) == ("a", 5.0, 1, 1, 3)
    assert (two["worker"], two["loop_lag_us"]) == ("scheduler", 7)


@pytest.mark.parametrize("value", ["text", None, [1], float("nan"), float("inf"), {}])
def test_user_metrics_in_heartbeats_do_no_harm(value: Any) -> None:
    bench = Bench()
    bench.scheduler.workers = {"a": FakeWorker("a")}
    names = ("cpu", "host_net_io", "host_disk_io", "task_counts", "event_loop_interval", "num_fds", "gil_contention")
    bench.scheduler.workers["a"].metrics = dict.fromkeys(names, value)
    bench.recorder.tick_samples(US, 0)
    assert bench.rows("samples")[0]["cpu_percent"] == 0.0


def test_many_workers_take_turns() -> None:
    bench = Bench()
    count = 2 * SAMPLES_PER_TICK + 100
    bench.scheduler.workers = {str(number): FakeWorker(str(number)) for number in range(count)}
    seen: set[str] = set()
    for _ in range(3):
        bench.recorder.tick_samples(US, 0)
        rows = bench.rows("samples")
        assert len(rows) == SAMPLES_PER_TICK + 1
        seen |= {row["worker"] for row in rows}
    assert len(seen) == count + 1


def test_children_of_removed_workers_are_forgotten() -> None:
    bench = Bench()
    bench.scheduler.workers = {"a": FakeWorker("a")}
    bench.recorder.children |= {str(number): {"children": 1} for number in range(100)}
    bench.recorder.tick_samples(US, 0)
    assert bench.recorder.children == {}


def test_the_requirements_of_unrunnable_tasks_are_counted() -> None:
    bench = Bench()
    needs = {"resource_restrictions": {"GPU": 1}, "worker_restrictions": None, "host_restrictions": None}
    bench.scheduler.unrunnable = dict.fromkeys(map(str, range(3)))
    bench.scheduler.unrunnable = [SimpleNamespace(**needs) for _ in range(3)]
    bench.recorder.begin({}, {})
    (row,) = bench.rows("clusters")
    assert (row["tasks_unrunnable"], json.loads(row["unrunnable_needs"])) == (3, {"GPU=1": 3})


def test_a_round_resumes_where_its_time_ran_out() -> None:
    bench = Bench()
    bench.recorder.begin({}, {})
    bench.rows("clusters")
    bench.scheduler.cumulative_worker_metrics.update({("get-data", str(n), "bytes"): 1.0 for n in range(100)})
    # Every reading of the clock advances it by a tenth of a round's budget.
    bench.step_ns = module.ROUND_BUDGET_NS // 10
    assert bench.recorder.advance() is False
    bench.recorder.begin_round(US)
    steps = 0
    while bench.recorder.advance():
        bench.recorder.begin_round(US)
        steps += 1
    assert 5 <= steps <= 20
    bench.step_ns = 0
    assert len(bench.rows("activities")) == 100


def test_a_round_that_fails_is_abandoned_and_the_next_starts_over() -> None:
    bench = Bench()
    bench.recorder.begin({}, {})
    broken = bench.scheduler.cumulative_worker_metrics
    broken["get-data", "x", "bytes"] = "no number"
    bench.recorder.begin_round(US)
    with pytest.raises(TypeError):
        bench.recorder.advance()
    assert bench.recorder.advance() is False
    broken["get-data", "x", "bytes"] = 1.0
    bench.recorder.begin_round(US)
    assert bench.recorder.advance() is False
    assert len(bench.rows("activities")) == 1


def test_rows_are_limited_and_dropped_rows_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskscope.collector.rows.MAX_ROWS", 10)
    bench = Bench()
    for _ in range(25):
        bench.recorder.event("all", {"action": "x"})
    ((_, _, count, dropped),) = list(bench.recorder.rows.drain())
    assert (count, dropped) == (10, 15)


def test_an_exception_forged_by_a_worker_is_not_loaded() -> None:
    bench = Bench()
    bench.task("load-1")
    erred(bench, worker="w1", exception=pickle.dumps(Planted()), cause="load-1")
    assert bench.rows("exceptions")[0]["message"] == "of an unknown type"
