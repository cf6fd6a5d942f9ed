"""A push of an agent is counted and forwarded once, or refused as a whole."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from daskscope.collector.delivery.outbox import Outbox
from daskscope.collector.scheduler.rpc import RecorderRpc
from daskscope.testing import make_columns
from daskscope.wire.encode import Body, encode_body


class Bench:
    def __init__(self) -> None:
        self.outbox = Outbox("c", 1)
        self.forwarded: list[tuple[str, int]] = []
        self.agents: list[tuple[str, str]] = []
        recorder = SimpleNamespace(
            members=SimpleNamespace(set_agent_state=lambda worker, state, now_us: self.agents.append((worker, state))),
            now_us=lambda: 5,
            children={},
        )
        plugin: Any = SimpleNamespace(
            outbox=self.outbox,
            encoder=self,
            recorder=recorder,
            guard=SimpleNamespace(is_open=False),
            is_closed=False,
            is_followed=False,
            settings=SimpleNamespace(push_interval=5.0),
            scheduler=SimpleNamespace(workers={"w1": None}),
        )
        self.plugin = plugin
        self.rpc = RecorderRpc(plugin)

    def forward(self, body: Body) -> None:
        self.forwarded.append((body.table, body.rows))

    def push(self, **push: Any) -> str:
        return str(self.reply(**push)["status"])

    def reply(self, **push: Any) -> dict[str, Any]:
        return asyncio.run(self.rpc.handle("push", worker="w1", **push))


def pushed(table: str, rows: int) -> dict[str, Any]:
    return vars(encode_body(table, make_columns(table, [{}] * rows)))


def test_rows_lost_by_a_worker_are_counted_with_or_without_a_batch_of_their_table() -> None:
    bench = Bench()
    assert bench.push(bodies=[pushed("logs", 2)], dropped={"logs": 3, "profiles": 4}) == "OK"
    assert bench.push(dropped={"profiles": 1}) == "OK"
    assert bench.forwarded == [("logs", 2)]
    assert bench.outbox.dropped == {"logs": 3, "profiles": 5}


def test_unknown_tables_are_left_out() -> None:
    bench = Bench()
    strange = {**pushed("logs", 2), "table": "of another version"}
    assert bench.push(bodies=[strange, pushed("logs", 1)], dropped={"of another version": 3}) == "OK"
    assert (bench.forwarded, bench.outbox.dropped) == ([("logs", 1)], {})


def test_a_refused_push_is_neither_counted_nor_forwarded() -> None:
    bench = Bench()
    whole = pushed("logs", 2)
    half = {name: value for name, value in whole.items() if name != "rows"}
    assert bench.push(bodies=[whole, half], dropped={"logs": 3}) == "refused"
    assert bench.push(bodies=[whole], dropped={"logs": 3, "profiles": "many"}) == "refused"
    assert (bench.forwarded, bench.outbox.dropped) == ([], {})


def few(table: str, rows: int, **values: Any) -> dict[str, Any]:
    return {"table": table, "columns": make_columns(table, [values] * rows)}


def test_rows_of_all_workers_share_a_batch() -> None:
    bench = Bench()
    for worker in ("w1", "w2"):
        assert bench.push(rows=[few("processes", 1, worker=worker), few("logs", 2, worker=worker)]) == "OK"
    drained = {table: (columns["worker"], rows) for table, columns, rows, _ in bench.rpc.worker_rows.drain()}
    assert drained == {"processes": (["w1", "w2"], 2), "logs": (["w1", "w1", "w2", "w2"], 4)}
    assert list(bench.rpc.worker_rows.drain()) == []


@pytest.mark.parametrize(
    "damage",
    [
        {"worker": ["w1", 5]},
        {"time_us": ["noon", "noon"]},
        {"worker": ["w1"]},
        pytest.param({"worker": ["w1", "\udcff"]}, id="surrogate"),
        {"cpu_us": [1, 1 << 63]},
        {"unknown": ["w1", "w1"]},
        {"cpu_us": ["much", "much"]},
    ],
)
def test_rows_that_do_not_fit_are_refused_with_the_whole_push(damage: dict[str, Any]) -> None:
    bench = Bench()
    damaged = few("processes", 2)
    damaged["columns"].update(damage)
    assert bench.push(rows=[few("logs", 1), damaged], dropped={"logs": 3}) == "refused"
    assert (list(bench.rpc.worker_rows.drain()), bench.outbox.dropped) == ([], {})


def test_rows_beyond_the_limit_are_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskscope.collector.rows.MAX_ROWS", 3)
    bench = Bench()
    for _ in range(2):
        bench.push(rows=[few("logs", 2)])
    assert [(table, rows, dropped) for table, _, rows, dropped in bench.rpc.worker_rows.drain()] == [("logs", 2, 2)]


def test_the_row_of_a_worker_lists_the_errors_of_its_agent() -> None:
    bench = Bench()
    bench.push(quality={"errors": {}, "causes_lost": 0})
    bench.push(quality={"errors": {"logs": "ValueError: x"}, "causes_lost": 12})
    assert bench.agents == [
        ("w1", "running"),
        ("w1", "running, but logs failed: ValueError: x; 12 causes of failures were lost"),
    ]


@pytest.mark.parametrize(("workers", "is_followed", "push_s"), [(50, False, 5.0), (500, False, 50.0), (500, True, 5.0)])
def test_agents_of_large_clusters_push_less_often_unless_somebody_follows(
    workers: int, is_followed: bool, push_s: float
) -> None:
    bench = Bench()
    bench.plugin.scheduler.workers = dict.fromkeys(range(workers))
    bench.plugin.is_followed = is_followed
    assert bench.reply() == {"status": "OK", "push_s": push_s}
