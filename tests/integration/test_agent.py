"""The agent in real workers brings its data to the scheduler and leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import distributed.worker
import pytest
from distributed import get_worker, span
from tests.helpers.waiting import until

import daskscope
from daskscope.collector.logs import MAX_LINES
from daskscope.collector.rows import checked
from daskscope.collector.worker import agent
from daskscope.collector.worker.agent import FEW_ROWS, NAME, flush_agent, start_agent, stop_agent
from daskscope.wire.decode import read_frame
from daskscope.wire.encode import Body, encode_body, seal

SETTINGS = {
    "profile": True,
    "profile_floor_s": 0.02,
    "transfers": True,
    "logs": True,
    "causes": True,
    "exception_text": True,
    "children": False,
    "push_interval_s": 0.5,
}
LONG = 100.0

# Untyped in distributed.
LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client
worker_module: Any = distributed.worker


@pytest.fixture(autouse=True)
def importable_by_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give worker processes this process's path, so that they can import the functions of this module."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[__name__.count(".")]))


@pytest.fixture(autouse=True)
def no_stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep Dask from logging that an event loop was blocked, as on any busy machine: tests count log lines."""
    monkeypatch.setattr(distributed.core, "tick_maximum_delay", 3600.0)


class Recorder:
    """A fake recorder that keeps every push."""

    def __init__(self) -> None:
        self.pushes: list[dict[str, Any]] = []
        self.answer: dict[str, Any] | None = {"status": "OK"}

    def handler(self, **push: Any) -> dict[str, str] | None:
        if self.answer is not None:
            self.pushes.append(push)
        return self.answer

    def rows(self, table: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for push in list(self.pushes):
            bodies = [*push["bodies"], *(vars(encode_body(**few)) for few in push["rows"])]
            found += [row for body in bodies if body["table"] == table for row in rows_of(body)]
        return found

    def dropped(self) -> dict[str, int]:
        sums: Counter[str] = Counter()
        for push in list(self.pushes):
            sums.update(push["dropped"])
        return dict(sums)

    def causes(self) -> list[dict[str, str]]:
        return [cause for push in list(self.pushes) for cause in push["causes"]]


def rows_of(pushed: dict[str, Any]) -> list[dict[str, Any]]:
    """Decode a body as a reader does."""
    frame = seal(Body(**pushed), cluster="c", epoch=1, sequence=0, kept=pushed["rows"], dropped=0)
    table = read_frame(frame).table()
    return [{name: table[name][row] for name in table} for row in range(table.rows)]


@contextmanager
def recorded(
    *, processes: bool, workers: int = 2, silence_logs: int | bool = logging.WARNING, **settings: Any
) -> Iterator[tuple[Any, Recorder]]:
    """A cluster with an agent in every worker and a recorder in its scheduler."""
    recorder = Recorder()
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=2,
            processes=processes,
            dashboard_address=None,
            memory_limit=0,
            silence_logs=silence_logs,
        ) as cluster,
        Client(cluster) as client,
    ):
        cluster.scheduler.handlers["daskscope"] = recorder.handler
        started = client.run(start_agent, settings={**SETTINGS, **settings})
        assert set(started.values()) == {"running"}
        yield client, recorder


def crunch(seconds: float) -> float:
    total, stop = 0.0, time.monotonic() + seconds
    while time.monotonic() < stop:
        total += sum(number * number for number in range(20_000))  # the hot line
    return total


def crunch_too(seconds: float) -> float:
    return crunch(seconds)


def a_key_of(function: Callable[[float], float]) -> tuple[str, int]:
    return f"{function.__name__}-{uuid.uuid4().hex}", 0


HOT_LINE = crunch.__code__.co_firstlineno + 3
# Before Python 3.12 a comprehension has its own frame; in both cases the time is spent in this line.


def fail_inside(number: int) -> None:
    try:
        raise KeyError(f"column {number}")
    except KeyError as inner:
        raise RuntimeError("could not load") from inner


async def fail_async() -> None:
    raise LookupError("in a coroutine")


def warn(text: str) -> str:
    logging.getLogger("distributed.analysis").warning(text)
    return str(get_worker().address)


def one_each(client: Any, function: Any, *args: Any) -> list[Any]:
    addresses = list(client.scheduler_info()["workers"])
    return [client.submit(function, *args, workers=[address], pure=False) for address in addresses]


def leaf_lines(rows: list[dict[str, Any]], **wanted: str) -> dict[int, int]:
    lines: dict[int, int] = {}
    for row in rows:
        if all(row[name] == value for name, value in wanted.items()):
            file, _, line = row["stack"][-1].split("\t")
            here = int(line) if file == crunch.__code__.co_filename else 0
            lines[here] = lines.get(here, 0) + int(row["count"])
    return lines


@pytest.mark.parametrize("processes", [True, False])
def test_the_profile_names_the_hot_line_for_each_prefix_and_span(processes: bool) -> None:
    with recorded(processes=processes, workers=1) as (client, recorder):
        futures = []
        for name in ("first", "second"):
            with span(name):
                # Dask assigns a span to a task group, not to a task, so each span needs its own group.
                futures += [client.submit(run, 0.7, key=a_key_of(run)) for run in (crunch, crunch_too)]
        client.gather(futures)
        client.run(flush_agent)
        rows = recorder.rows("profiles")
    spans = {row["span"] for row in rows if row["prefix"].startswith("crunch")}
    assert len(spans) == 2
    assert "" not in spans
    for prefix in ("crunch", "crunch_too"):
        for span_id in spans:
            lines = leaf_lines(rows, prefix=prefix, span=span_id)
            assert max(lines, key=lambda line: lines[line]) == HOT_LINE, (prefix, span_id, lines)


def computing(recorder: Any) -> list[dict[str, Any]]:
    """Return the profile rows of tasks, without event loops."""
    return [row for row in recorder.rows("profiles") if row["kind"] == "compute"]


def test_profile_rows_say_where_they_come_from() -> None:
    with recorded(processes=True, workers=1) as (client, recorder):
        client.submit(crunch, 0.5).result()
        client.run(flush_agent)
        (row, *_) = computing(recorder)
        addresses = list(client.scheduler_info()["workers"])
    assert row["source"] == "daskscope"
    assert row["worker"] in addresses
    assert not any("/distributed/" in frame for frame in row["stack"])


def test_dasks_own_profile_is_drained_if_the_sampler_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskscope.collector.worker.probes.current_frames", lambda: None)
    with recorded(processes=False, workers=1) as (client, recorder):
        client.submit(crunch, 1.5).result()
        until(lambda: computing(recorder))
        rows = computing(recorder)
    assert {row["source"] for row in rows} == {"dask"}
    assert {row["prefix"] for row in rows} == {"crunch"}


def test_profiles_are_off_if_dasks_profiler_is() -> None:
    off = {"distributed.worker.profile.enabled": False}
    with dask.config.set(off), recorded(processes=False, workers=1) as (client, recorder):
        client.submit(crunch, 0.3).result()
        client.run(flush_agent)
        until(lambda: recorder.pushes)
        assert recorder.rows("profiles") == []
        assert recorder.pushes[-1]["quality"]["profile"] == "off"


@pytest.mark.parametrize("processes", [True, False])
def test_a_transfer_is_reported_by_both_sides(processes: bool) -> None:
    with recorded(processes=processes) as (client, recorder):
        parts = one_each(client, bytes, 100_000)
        client.submit(len, parts[0], workers=list(client.scheduler_info()["workers"])[1]).result()
        client.run(flush_agent)
        until(lambda: len(recorder.rows("transfers")) >= 2)
        rows = recorder.rows("transfers")
    (incoming,) = [row for row in rows if row["direction"] == "incoming"]
    # The client fetched the result, too; that transfer has no address.
    (outgoing,) = [row for row in rows if row["direction"] == "outgoing" and row["destination"]]
    assert incoming["nbytes"] >= 100_000
    assert incoming["keys"] == outgoing["keys"] == 1
    assert incoming["source"] == outgoing["source"]
    assert incoming["destination"] == outgoing["destination"]


@pytest.mark.parametrize("processes", [True, False])
def test_the_innermost_cause_of_a_failure_arrives(processes: bool) -> None:
    with recorded(processes=processes, push_interval_s=LONG) as (client, recorder):
        future = client.submit(fail_inside, 7, key="fail_inside-7")
        future.exception()
        # Long before the next regular push: a failure is pushed at once.
        until(recorder.causes)
        (cause,) = recorder.causes()
    assert (cause["key"], cause["type"], cause["cause_type"]) == ("fail_inside-7", "RuntimeError", "KeyError")
    assert "KeyError: 'column 7'" in cause["traceback"]


def test_each_failure_is_reported_once_with_two_workers_in_a_process() -> None:
    with recorded(processes=False) as (client, recorder):
        for future in one_each(client, fail_inside, 1):
            future.exception()
        until(lambda: len(recorder.causes()) >= 2)
        client.run(flush_agent)
        pushed = {(push["worker"], cause["key"]) for push in recorder.pushes for cause in push["causes"]}
        assert len(recorder.causes()) == len({worker for worker, _ in pushed}) == 2


@pytest.mark.skipif(not hasattr(worker_module, "_run_task_async"), reason="this Dask does not name the task there")
def test_the_cause_of_a_failed_coroutine_arrives() -> None:
    with recorded(processes=True, workers=1) as (client, recorder):
        client.submit(fail_async, key="fail_async-1").exception()
        until(recorder.causes)
        assert recorder.causes()[0]["key"] == "fail_async-1"


def test_without_exception_text_no_text_leaves_the_worker() -> None:
    with recorded(processes=True, workers=1, exception_text=False) as (client, recorder):
        client.submit(fail_inside, 7).exception()
        until(recorder.causes)
        client.run(flush_agent)
        (cause,) = recorder.causes()
        assert (cause["message"], cause["cause_message"], cause["traceback"]) == ("", "", "")
        assert not any("column" in row["message"] for row in recorder.rows("logs"))


@pytest.mark.parametrize("processes", [True, False])
def test_a_warning_in_a_task_is_attributed_to_its_worker(processes: bool) -> None:
    with recorded(processes=processes) as (client, recorder):
        addresses = client.gather(one_each(client, warn, "no events"))
        client.run(flush_agent)
        rows = [row for row in recorder.rows("logs") if row["logger"] == "distributed.analysis"]
    assert sorted(row["worker"] for row in rows) == sorted(addresses)
    assert {row["message"] for row in rows} == {"no events"}


def test_a_blocked_event_loop_of_a_worker_is_recorded() -> None:
    def block() -> None:
        core: Any = sys.modules["distributed.core"]
        core.tick_maximum_delay = 0.1
        time.sleep(0.5)

    # A worker logs it as INFO, which a LocalCluster silences.
    with recorded(processes=True, workers=1, silence_logs=False) as (client, recorder):
        (address,) = client.run(block)
        until(lambda: recorder.rows("logs"))
    row = recorder.rows("logs")[0]
    assert row["message"].startswith("Event loop was unresponsive in")
    assert row["worker"] == address


def test_new_data_of_a_closing_worker_still_arrives() -> None:
    with recorded(processes=True, push_interval_s=LONG) as (client, recorder):
        address, _ = client.gather(one_each(client, warn, "last words"))
        client.retire_workers([address])
        until(lambda: recorder.rows("logs"))
        assert recorder.rows("logs")[0]["message"] == "last words"


def test_times_are_near_the_schedulers_clock() -> None:
    with recorded(processes=True, workers=1) as (client, recorder):
        before = time.time() - 5
        client.gather(one_each(client, warn, "now"))
        client.run(flush_agent)
        (row,) = recorder.rows("logs")
        assert before * 1e6 < row["time_us"] < (time.time() + 5) * 1e6


def test_children_are_sent_if_they_are_watched() -> None:
    with recorded(processes=True, workers=1, children=True) as (client, recorder):
        client.run(flush_agent)
        until(lambda: recorder.pushes)
        children = recorder.pushes[-1]["children"]
    assert children["children"] == 0
    assert children["time_us"] > 0


def test_starting_twice_starts_once() -> None:
    with recorded(processes=False, workers=1) as (client, _):

        def again(dask_worker: Any) -> tuple[str, bool]:
            before = dask_worker.plugins[NAME]
            return start_agent(dask_worker, SETTINGS), dask_worker.plugins[NAME] is before

        assert list(client.run(again).values()) == [("running", True)]


def test_an_agent_without_probes_is_off() -> None:
    with LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster, Client(cluster) as client:
        nothing = dict.fromkeys(("profile", "transfers", "logs", "causes", "children"), False)
        assert list(client.run(start_agent, settings=nothing).values()) == ["off"]


def test_starting_an_agent_that_cannot_run_returns_the_reason() -> None:
    assert start_agent(object(), SETTINGS).startswith("refused: ")


def test_a_stopped_agent_leaves_nothing_behind() -> None:
    original = worker_module.error_message
    handlers = list(logging.getLogger("distributed").handlers)
    with recorded(processes=False) as (client, _):
        assert worker_module.error_message is not original
        assert set(client.run(stop_agent).values()) == {"off"}
        assert not any(client.run(lambda dask_worker: NAME in dask_worker.plugins).values())
        assert worker_module.error_message is original
        assert logging.getLogger("distributed").handlers == handlers
        assert client.submit(abs, -1).result() == 1


def test_an_agent_whose_pushes_are_refused_removes_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "GIVE_UP_S", 0.5)
    original = worker_module.error_message
    with recorded(processes=False, workers=1, push_interval_s=0.1) as (client, recorder):
        recorder.answer = None
        until(lambda: worker_module.error_message is original)
        until(lambda: not any(client.run(lambda dask_worker: NAME in dask_worker.plugins).values()))
        assert client.submit(abs, -1).result() == 1


def test_an_agent_pushes_as_seldom_as_the_recorder_asks() -> None:
    async def push_s(dask_worker: Any) -> float:
        # An agent without new data would not push.
        assert await flush_agent(dask_worker)
        return float(dask_worker.plugins[NAME].push_s)

    with recorded(processes=False, workers=1, push_interval_s=0.1) as (client, recorder):
        assert list(client.run(push_s).values()) == [0.1]
        recorder.answer = {"status": "OK", "push_s": 0.3}
        assert list(client.run(push_s).values()) == [0.3]
        # Never more often than configured.
        recorder.answer = {"status": "OK", "push_s": 0.01}
        assert list(client.run(push_s).values()) == [0.1]


def test_refused_data_is_sent_later() -> None:
    with recorded(processes=False, workers=1, push_interval_s=0.2) as (client, recorder):
        recorder.answer = None
        client.gather(one_each(client, warn, "patience"))
        assert list(client.run(flush_agent).values()) == [False]
        recorder.answer = {"status": "OK"}
        until(lambda: [row for row in recorder.rows("logs") if row["message"] == "patience"])


def warn_often(times: int) -> None:
    for number in range(times):
        logging.getLogger("distributed.analysis").warning("line %d", number)


def broken_for(table: str, function: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    def broken(name: str, columns: Any) -> Any:
        if name == table:
            raise ValueError("put in by a test")
        return function(name, columns)

    return broken


@pytest.mark.parametrize("lines", [5, FEW_ROWS + 5])
def test_rows_that_cannot_be_encoded_are_counted_and_others_arrive(lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "encode_body", broken_for("logs", encode_body))
    monkeypatch.setattr(agent, "checked", broken_for("logs", checked))
    with recorded(processes=False, workers=1, push_interval_s=LONG) as (client, recorder):
        client.submit(warn_often, lines).result()

        def a_profile_arrives() -> bool:
            # On a busy machine, 0.3 s may pass without a sample.
            client.submit(crunch, 0.3, pure=False).result()
            assert list(client.run(flush_agent).values()) == [True]
            return "crunch" in {row["prefix"] for row in recorder.rows("profiles")}

        until(a_profile_arrives)
        assert list(client.run(flush_agent).values()) == [True]
    assert recorder.dropped() == {"logs": lines}
    assert recorder.rows("logs") == []
    assert recorder.pushes[0]["quality"]["errors"] == {"logs": "ValueError: put in by a test"}


def test_a_loss_is_reported_once_if_workers_share_a_process_and_a_push_is_refused() -> None:
    with recorded(processes=False, push_interval_s=LONG) as (client, recorder):
        recorder.answer = None
        client.submit(warn_often, MAX_LINES + 200).result()
        assert list(client.run(flush_agent).values()) == [False, False]
        recorder.answer = {"status": "OK"}
        client.run(flush_agent)
        client.run(flush_agent)
    assert recorder.dropped() == {"logs": 200}
    assert len(recorder.rows("logs")) == MAX_LINES


def warn_about_a_file() -> None:
    logging.getLogger("distributed.worker").warning("cannot read \udcff.csv")


def test_a_text_that_messages_cannot_carry_arrives_as_a_body() -> None:
    """A log line may have an undecodable file name; it must not block everything else of its worker."""
    with recorded(processes=True, workers=1, push_interval_s=LONG) as (client, recorder):
        client.submit(warn_about_a_file).result()
        assert list(client.run(flush_agent).values()) == [True]
    assert any("cannot read" in row["message"] for row in recorder.rows("logs"))


def break_encoding(dask_worker: Any) -> None:
    """Break the encoding in a worker's shipped agent."""
    module: Any = sys.modules[type(dask_worker.plugins[NAME]).__module__]
    module.checked = broken_for("logs", module.checked)
    module.encode_body = broken_for("logs", module.encode_body)


def test_a_loss_reaches_the_recording_even_if_no_batch_of_its_table_follows(tmp_path: Path) -> None:
    with (
        LocalCluster(n_workers=1, processes=True, dashboard_address=None, memory_limit=0) as cluster,
        Client(cluster) as client,
        daskscope.record(tmp_path / "run.daskscope", client) as run,
    ):
        until(lambda: all(client.run(lambda dask_worker: NAME in dask_worker.plugins).values()))
        client.run(break_encoding)
        client.submit(warn_often, 7).result()
    assert run.recording is not None
    assert run.recording["logs"].rows == 0
    assert json.loads(run.recording["clusters"]["dropped"][0]) == {"logs": 7}
    assert list(run.recording["workers"]["agent"]) == ["running, but logs failed: ValueError: put in by a test"]


def test_a_scheduler_without_the_handler_does_not_disturb_the_worker() -> None:
    with LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster, Client(cluster) as client:
        client.run(start_agent, settings=SETTINGS)
        assert list(client.run(flush_agent).values()) == [False]
        assert client.submit(abs, -1).result() == 1


def test_flushing_brings_dasks_own_metrics() -> None:
    with recorded(processes=True, workers=1, push_interval_s=LONG) as (client, _):

        def last_seen(dask_scheduler: Any) -> float:
            return float(max(worker.last_seen for worker in dask_scheduler.workers.values()))

        before = client.run_on_scheduler(last_seen)
        assert list(client.run(flush_agent).values()) == [True]
        assert client.run_on_scheduler(last_seen) > before


def test_flushing_a_worker_without_an_agent_returns_false() -> None:
    class Bare:
        plugins: dict[str, Any] = {}  # noqa: RUF012 - never written

        async def heartbeat(self) -> None:
            return None

    assert asyncio.run(flush_agent(Bare())) is False


def test_a_worker_with_an_agent_can_be_dumped() -> None:
    with recorded(processes=True, workers=1) as (client, _):
        (dump,) = client.run(lambda dask_worker: str(dask_worker._to_dict())).values()
        assert dump
