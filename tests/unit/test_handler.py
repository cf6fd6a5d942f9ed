"""What agents push: counted and forwarded once, or refused as a whole."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from daskscope.collector.handler import Handler
from daskscope.collector.outbox import Outbox
from daskscope.testing import make_columns
from daskscope.wire.encode import Body, encode_body


class Bench:
    def __init__(self) -> None:
        self.outbox = Outbox("c", 1)
        self.forwarded: list[tuple[str, int]] = []
        self.agents: list[tuple[str, str]] = []
        recorder = SimpleNamespace(
            members=SimpleNamespace(agent=lambda worker, state, now_us: self.agents.append((worker, state))),
            now_us=lambda: 5,
            children={},
        )
        plugin: Any = SimpleNamespace(
            outbox=self.outbox,
            writer=self,
            recorder=recorder,
            guard=SimpleNamespace(open=False),
            closed=False,
        )
        self.handler = Handler(plugin)

    def forward(self, body: Body) -> None:
        self.forwarded.append((body.table, body.rows))

    def push(self, **push: Any) -> str:
        answer = asyncio.run(self.handler.handle("push", worker="w1", **push))
        return str(answer["status"])


def pushed(table: str, rows: int) -> dict[str, Any]:
    return vars(encode_body(table, make_columns(table, [{}] * rows)))


def test_what_a_worker_lost_is_counted_whether_a_batch_of_that_table_comes_or_not() -> None:
    bench = Bench()
    assert bench.push(bodies=[pushed("logs", 2)], dropped={"logs": 3, "profiles": 4}) == "OK"
    assert bench.push(dropped={"profiles": 1}) == "OK"
    assert bench.forwarded == [("logs", 2)]
    assert bench.outbox.dropped == {"logs": 3, "profiles": 5}


def test_tables_that_are_not_known_here_are_left_out() -> None:
    bench = Bench()
    strange = {**pushed("logs", 2), "table": "of another version"}
    assert bench.push(bodies=[strange, pushed("logs", 1)], dropped={"of another version": 3}) == "OK"
    assert (bench.forwarded, bench.outbox.dropped) == ([("logs", 1)], {})


def test_a_push_that_is_refused_counts_and_forwards_nothing_of_it() -> None:
    bench = Bench()
    whole = pushed("logs", 2)
    half = {name: value for name, value in whole.items() if name != "rows"}
    assert bench.push(bodies=[whole, half], dropped={"logs": 3}) == "refused"
    assert bench.push(bodies=[whole], dropped={"logs": 3, "profiles": "many"}) == "refused"
    assert (bench.forwarded, bench.outbox.dropped) == ([], {})


def test_the_row_of_a_worker_says_what_troubles_its_agent() -> None:
    bench = Bench()
    bench.push(quality={"errors": {}, "causes_lost": 0})
    bench.push(quality={"errors": {"logs": "ValueError: x"}, "causes_lost": 12})
    assert bench.agents == [
        ("w1", "running"),
        ("w1", "running, but logs failed: ValueError: x; 12 causes of failures were lost"),
    ]
