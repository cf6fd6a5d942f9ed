"""Waiting data is limited, and every loss is reported once."""

from __future__ import annotations

from daskscope.collector.worker.agent import Contents, Pending
from daskscope.testing import make_columns
from daskscope.wire.encode import Body, encode_body


def a_body(rows: int) -> Body:
    return encode_body("logs", make_columns("logs", [{}] * rows))


def test_the_oldest_bodies_are_dropped_and_their_rows_counted() -> None:
    pending = Pending(max_bytes=len(a_body(3).data) * 2)
    for _ in range(3):
        pending.add_body(a_body(3))
    pending.count_lost("logs", 4)
    contents = pending.contents()
    assert [body["rows"] for body in contents.bodies] == [3, 3]
    assert contents.dropped == {"logs": 7}


def test_the_oldest_causes_are_dropped_and_counted_apart_from_rows() -> None:
    pending = Pending(max_causes=2)
    pending.add_causes([{"key": key} for key in "abc"])
    assert pending.contents() == Contents([], [], [{"key": "b"}, {"key": "c"}], {})
    assert pending.causes_lost == 1


def test_a_loss_is_reported_until_the_scheduler_accepts_it() -> None:
    pending = Pending()
    pending.add_body(a_body(1))
    pending.count_lost("logs", 5)
    pending.count_lost("profiles", 2)
    assert pending.contents() == pending.contents()
    pending.mark_sent(pending.contents())
    assert not pending
    pending.count_lost("logs", 1)
    assert pending
    assert pending.contents() == Contents([], [], [], {"logs": 1})


def test_data_that_arrives_while_sending_is_kept() -> None:
    pending = Pending()
    pending.add_causes([{"key": "a"}])
    pending.count_lost("logs", 5)
    contents = pending.contents()
    pending.add_causes([{"key": "b"}])
    pending.count_lost("logs", 3)
    pending.mark_sent(contents)
    assert pending.contents() == Contents([], [], [{"key": "b"}], {"logs": 3})


def test_the_oldest_rows_are_dropped_and_counted() -> None:
    pending = Pending(max_rows=2)
    for level in ("INFO", "WARNING", "ERROR"):
        pending.add_rows("logs", {"level": [level, level]})
    waiting = [{"table": "logs", "columns": {"level": [level] * 2}} for level in ("WARNING", "ERROR")]
    assert pending.contents() == Contents([], waiting, [], {"logs": 2})
    pending.mark_sent(pending.contents())
    assert not pending
