"""Workers and clients get a row at every change, and workers a verdict."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from daskscope.collector.aliases import Aliases
from daskscope.collector.scheduler.members import MAX_HELD_KEYS, MAX_PROCESSING_KEYS, Members, Work

A = "tcp://10.0.0.1:4001"
NOTHING: Work = (0, None)


class FakeWorker:
    def __init__(self, address: str) -> None:
        self.address = address
        self.server_id = f"id of {address}"
        self.name = 3
        self.host = "10.0.0.1"
        self.pid = 77
        self.nthreads = 2
        self.memory_limit = None
        self.nanny = None
        self.versions = {"packages": {"dask": "1"}}


class FakeTask:
    def __init__(self, nbytes: int, state: str = "memory") -> None:
        self.nbytes = nbytes
        self.state = state


class FakeClient:
    def __init__(self, *sizes: int) -> None:
        self.versions = {"packages": {"dask": "1"}}
        self.last_seen = 5.0
        self.wants_what = {FakeTask(size) for size in sizes}


class Bench:
    def __init__(self, **options: bool) -> None:
        self.rows: list[tuple[str, dict[str, Any]]] = []
        self.scheduler = SimpleNamespace(workers={A: FakeWorker(A)}, clients={})
        self.members = Members(
            self.scheduler,
            self.add,
            hostnames=options.get("hostnames", True),
            aliases=Aliases(keys=options.get("keys", True)),
        )
        self.members.add_worker(A, 100)

    def add(self, table: str, **row: Any) -> None:
        self.rows.append((table, row))

    def round(self, now_us: int) -> None:
        for _ in self.members.write_changes(now_us):
            pass

    def left(self, stimulus: str = "handle-worker-cleanup-1") -> dict[str, Any]:
        self.members.remove_worker(A, stimulus, 200, NOTHING)
        return self.rows[-1][1]


def test_a_worker_that_joins_is_written() -> None:
    table, row = Bench().rows[0]
    assert table == "workers"
    assert (row["worker"], row["server_id"], row["name"], row["host"]) == (A, f"id of {A}", "3", "10.0.0.1")
    assert (row["memory_limit"], row["nanny"], row["start_us"], row["seen_us"]) == (0, "", 100, 100)


def test_hostnames_can_be_left_out() -> None:
    assert Bench(hostnames=False).rows[0][1]["host"] == ""


def test_the_last_row_of_a_worker_has_a_verdict_its_keys_and_its_losses() -> None:
    bench = Bench()
    keys = {f"inc-{number}" for number in range(500)}
    message = {"action": "remove-worker", "processing-tasks": keys, "lost-computed-tasks": {"a", "b"}}
    bench.members.note_event(A, message)
    row = bench.left()
    assert (row["verdict"], row["end_us"], row["lost_count"], row["processing_count"]) == ("vanished", 200, 2, 500)
    assert len(row["processing"]) == MAX_PROCESSING_KEYS
    assert bench.members.workers == {}


def test_without_keys_only_their_number_is_kept() -> None:
    bench = Bench(keys=False)
    bench.members.note_event(A, {"action": "remove-worker", "processing-tasks": ["inc-1"]})
    row = bench.left()
    assert (row["processing"], row["processing_count"]) == ([], 1)


@pytest.mark.parametrize(
    ("topic", "message", "verdict"),
    [
        (A, {"action": "closing-worker", "reason": "nanny-close"}, "retired"),
        (A, {"action": "closing-worker", "reason": "worker-close"}, "closed"),
        (A, {"action": "closing-worker", "reason": "client-restart-1"}, "restarted"),
        ("all", {"action": "retire-workers", "retired": {A: {}}}, "retired"),
        ("all", {"action": "retire-workers", "workers": [SimpleNamespace(address=A)]}, "retired"),
        ("scheduler", {"action": "worker-ttl-timed-out", "workers": [A], "ttl": 30}, "lost connection"),
        ("all", {"action": "restart-workers"}, "restarted"),
        ("all", {"action": "restart-workers", "workers": {A: "OK"}}, "restarted"),
        ("all", {"action": "remove-worker", "worker": A, "expected": True}, "retired"),
        ("worker-restart-memory", {"worker": A, "pid": 1, "rss": 10**9}, "memory kill"),
        ("tcp://other", {"action": "closing-worker", "reason": "x"}, "vanished"),
    ],
)
def test_events_lead_to_verdicts(topic: str, message: dict[str, Any], verdict: str) -> None:
    bench = Bench()
    bench.members.note_event(topic, message)
    assert bench.left()["verdict"] == verdict


@pytest.mark.parametrize("action", ["remove-worker", "closing-worker", "retire-workers", "worker-ttl-timed-out", "x"])
@pytest.mark.parametrize("value", [None, 5, [[]], {1: 2}, object(), [None, A], "text", float("nan")])
def test_invalid_events_do_no_harm(action: str, value: Any) -> None:
    bench = Bench()
    names = ("worker", "workers", "retired", "ttl", "reason", "processing-tasks", "lost-computed-tasks", "expected")
    for topic in (A, "all", "worker-restart-memory"):
        bench.members.note_event(topic, {"action": action, "rss": value, **dict.fromkeys(names, value)})
        bench.members.note_event(topic, {"action": value})
    assert bench.left()["verdict"]


def test_an_unknown_worker_that_leaves_makes_no_row() -> None:
    bench = Bench()
    bench.members.remove_worker("tcp://other", "", 200, NOTHING)
    assert len(bench.rows) == 1


def test_the_state_of_an_agent_is_written_when_it_changes() -> None:
    bench = Bench()
    for _ in range(3):
        bench.members.set_agent_state(A, "running", 150)
    bench.members.set_agent_state("tcp://gone", "running", 150)
    assert [row.get("agent") for _, row in bench.rows] == [None, "running"]


def client(bench: Bench, *sizes: int) -> FakeClient:
    made = FakeClient(*sizes)
    bench.scheduler.clients["client-1"] = made
    bench.members.add_client("client-1", 100)
    return made


def test_the_results_a_client_holds_are_added_up() -> None:
    bench = Bench()
    made = client(bench, 10, 20, -1)
    bench.round(200)
    bench.round(300)
    made.wants_what.clear()
    bench.round(400)
    held = [(row.get("held_keys"), row.get("held_nbytes")) for table, row in bench.rows if table == "clients"]
    assert held == [(None, None), (3, 30), (0, 0)]


def test_failed_and_running_tasks_are_wanted_but_not_held() -> None:
    bench = Bench()
    made = client(bench, 10, 20)
    made.wants_what |= {FakeTask(-1, "erred"), FakeTask(-1, "processing"), FakeTask(-1, "no-worker")}
    bench.round(200)
    assert (bench.rows[-1][1]["held_keys"], bench.rows[-1][1]["held_nbytes"]) == (2, 30)


def test_members_from_before_the_recording_keep_their_start() -> None:
    bench = Bench()
    bench.members.add_worker(A, 500, 100)
    assert (bench.rows[-1][1]["start_us"], bench.rows[-1][1]["seen_us"]) == (100, 500)
    bench.scheduler.clients["client-1"] = FakeClient()
    bench.members.add_client("client-1", 500, 300)
    assert (bench.rows[-1][1]["connect_us"], bench.rows[-1][1]["seen_us"]) == (300, 500)


def test_a_client_that_only_sends_heartbeats_is_written_regularly() -> None:
    bench = Bench()
    made = client(bench)
    bench.round(200)
    before = len(bench.rows)
    for seconds in (20, 40, 50, 80):
        made.last_seen = float(seconds)
        bench.round(seconds * 1_000_000)
    assert [row["last_seen_us"] for _, row in bench.rows[before:]] == [40_000_000, 80_000_000]


def test_the_results_of_a_client_with_too_many_keys_are_not_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_HELD_KEYS >= 100_000
    monkeypatch.setattr("daskscope.collector.scheduler.members.MAX_HELD_KEYS", 2)
    bench = Bench()
    client(bench, 1, 2, 3)
    bench.round(200)
    assert bench.rows[-1][1]["held_keys"] == 3
    assert bench.rows[-1][1]["held_nbytes"] == -1


def test_a_client_may_leave_while_its_results_are_added_up() -> None:
    bench = Bench()
    client(bench, *range(1000))
    steps = bench.members.write_changes(200)
    next(steps)
    bench.members.remove_client("client-1", 250)
    before = len(bench.rows)
    for _ in steps:
        pass
    assert len(bench.rows) == before
    assert bench.rows[-1][1]["disconnect_us"] == 250
    assert bench.members.clients == {}


@pytest.mark.parametrize(
    ("left_us", "work", "verdict"),
    [
        (20_000_000, (7, "first"), "closed"),
        (20_000_000, (8, "first"), "retired"),
        (20_000_000, (7, "second"), "retired"),
        (5_000_000, (7, "first"), "retired"),
    ],
    ids=["left after the last work", "left before the last task", "left before the last graph", "left long ago"],
)
def test_workers_closed_by_their_nanny_are_judged_again_when_the_cluster_closes(
    left_us: int, work: Work, verdict: str
) -> None:
    bench = Bench()
    bench.members.note_event(A, {"action": "closing-worker", "reason": "nanny-close"})
    bench.members.remove_worker(A, "worker-close", left_us, (7, "first"))
    bench.members.note_closing(22_000_000, work)
    assert bench.rows[-1][1]["verdict"] == verdict


def test_a_worker_killed_just_before_the_cluster_closed_stays_killed() -> None:
    bench = Bench()
    bench.members.remove_worker(A, "handle-worker-cleanup-1", 21_000_000, NOTHING)
    bench.members.note_closing(22_000_000, NOTHING)
    assert bench.rows[-1][1]["verdict"] == "vanished"
