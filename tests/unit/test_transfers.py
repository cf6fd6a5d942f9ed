"""Every transfer is reported once, and lost transfers are counted."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from daskscope.collector.aliases import PLAIN, Aliases
from daskscope.collector.rows import Columns
from daskscope.collector.worker.transfers import TransferLog
from daskscope.model.tables import TRANSFERS


class FakeWorker:
    """The attributes of a worker that the transfer log reads."""

    def __init__(self, maxlen: int = 1000) -> None:
        self.transfer_incoming_log: deque[dict[str, Any]] = deque(maxlen=maxlen)
        self.transfer_outgoing_log: deque[dict[str, Any]] = deque(maxlen=maxlen)
        self.transfer_outgoing_count_total = 0
        self.state = SimpleNamespace(transfer_incoming_count_total=0)

    def receive(self, second: float, total: int = 10) -> None:
        self.state.transfer_incoming_count_total += 1
        self.transfer_incoming_log.append(entry(second, total))

    def send(self, second: float, total: int = 10) -> None:
        self.transfer_outgoing_count_total += 1
        self.transfer_outgoing_log.append({**entry(second, total), "compressed": 4})


def entry(second: float, total: int) -> dict[str, Any]:
    keys = {("x", 0): total, "y": None}
    return {"start": second, "stop": second + 0.5, "middle": 0.0, "keys": keys, "total": total, "who": "tcp://other"}


def rows(columns: Columns) -> int:
    return len(columns["start_us"])


def test_an_incoming_transfer_becomes_a_row() -> None:
    worker = FakeWorker()
    log = TransferLog(worker)
    worker.receive(100.25, 77)
    columns = log.drain("tcp://me")
    assert {name: values[0] for name, values in columns.items()} == {
        "start_us": 100_250_000,
        "stop_us": 100_750_000,
        "source": "tcp://other",
        "destination": "tcp://me",
        "direction": "incoming",
        "nbytes": 77,
        "compressed_nbytes": 0,
        "keys": 2,
        "first_keys": ["('x', 0)", "y"],
    }


def keys_of_a_transfer(keys: list[str], aliases: Aliases = PLAIN) -> list[tuple[int, list[str]]]:
    """Return the number of results and the recorded keys of a received and a sent transfer."""
    worker = FakeWorker()
    log = TransferLog(worker, aliases=aliases)
    worker.receive(1)
    worker.send(2)
    for entries in (worker.transfer_incoming_log, worker.transfer_outgoing_log):
        entries[-1]["keys"] = dict.fromkeys(keys, 1)
    columns = log.drain("tcp://me")
    return list(zip(columns["keys"], columns["first_keys"], strict=True))


@pytest.mark.parametrize(
    ("keys", "recorded"),
    [
        ([f"key-{number}" for number in range(20)], 20),
        ([f"key-{number}" for number in range(21)], 20),
        ([f"{number:0500}" for number in range(9)], 4),
        (["x" * 2_001, "y"], 0),
        ([], 0),
    ],
)
def test_both_sides_report_the_first_keys_of_a_transfer(keys: list[str], recorded: int) -> None:
    assert keys_of_a_transfer(keys) == 2 * [(len(keys), keys[:recorded])]


def test_keys_of_transfers_are_aliases_if_keys_are_not_recorded() -> None:
    aliases = Aliases(keys=False)
    keys = [f"secret-{number}" for number in range(9)]
    assert "secret" not in str(expected := [aliases.key(key) for key in keys])
    assert keys_of_a_transfer(keys, aliases) == 2 * [(9, expected)]


def test_every_column_of_the_table_is_there() -> None:
    assert tuple(TransferLog(FakeWorker()).drain("w")) == TRANSFERS.names


def test_an_outgoing_transfer_has_this_worker_as_its_source() -> None:
    worker = FakeWorker()
    log = TransferLog(worker)
    worker.send(1.0)
    columns = log.drain("tcp://me")
    assert (columns["source"], columns["destination"], columns["compressed_nbytes"]) == (
        ["tcp://me"],
        ["tcp://other"],
        [4],
    )


def test_no_transfer_is_reported_twice() -> None:
    worker = FakeWorker()
    log = TransferLog(worker)
    worker.receive(1.0)
    log.drain("w")
    worker.receive(2.0)
    assert log.drain("w")["start_us"] == [2_000_000]
    assert rows(log.drain("w")) == 0


def test_equal_transfers_are_distinguished() -> None:
    worker = FakeWorker()
    log = TransferLog(worker)
    worker.receive(1.0)
    log.drain("w")
    worker.receive(1.0)
    assert rows(log.drain("w")) == 1


def test_rows_are_in_the_order_of_the_log() -> None:
    worker = FakeWorker()
    log = TransferLog(worker)
    for second in range(5):
        worker.receive(float(second))
    assert log.drain("w")["start_us"] == [second * 1_000_000 for second in range(5)]


def test_transfers_from_before_the_start_are_left_out() -> None:
    worker = FakeWorker()
    worker.receive(1.0)
    worker.receive(50.0)
    assert TransferLog(worker, since=40.0).drain("w")["start_us"] == [50_000_000]


def test_lost_transfers_are_counted() -> None:
    worker = FakeWorker(maxlen=10)
    log = TransferLog(worker)
    worker.receive(0.0)
    log.drain("w")
    for second in range(25):
        worker.receive(float(second))
    assert rows(log.drain("w")) == 10
    assert log.dropped == 15


def test_a_log_that_is_just_full_loses_nothing() -> None:
    worker = FakeWorker(maxlen=10)
    log = TransferLog(worker)
    for second in range(10):
        worker.receive(float(second))
    log.drain("w")
    worker.receive(11.0)
    log.drain("w")
    assert log.dropped == 0


def test_the_older_names_of_the_logs_are_known() -> None:
    worker = SimpleNamespace(incoming_transfer_log=deque([entry(1.0, 5)]), outgoing_transfer_log=deque())
    assert rows(TransferLog(worker).drain("w")) == 1


def test_a_client_that_fetches_a_result_has_no_address() -> None:
    worker = FakeWorker()
    worker.transfer_outgoing_log.append({**entry(1.0, 5), "who": None})
    assert TransferLog(worker).drain("w")["destination"] == [""]
