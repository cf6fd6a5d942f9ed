"""The recorder in clusters that have no daskscope installed, change during the recording, refuse it, or die."""

from __future__ import annotations

import importlib
import operator
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask.config
import distributed
import pytest
from tests.helpers.processes import Processes
from tests.helpers.waiting import until

import daskscope
from daskscope import DaskscopeError, Recording
from daskscope.errors import ClusterError

# Untyped in distributed.
LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client
Security: Any = distributed.Security

Opened = Callable[[Path], Recording]

KILLED_CLIENT = """
import operator, sys, time
import distributed, daskscope

if __name__ == "__main__":
    with distributed.Client(sys.argv[1]) as client, daskscope.record(sys.argv[2]):
        while True:
            client.gather(client.map(operator.neg, range(50), pure=False))
            time.sleep(0.05)
"""


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Processes]:
    """A scheduler and two workers in processes that cannot import daskscope."""
    with Processes(tmp_path / "processes") as processes:
        processes.scheduler()
        processes.worker("first")
        processes.worker("second")
        yield processes


def names(recording: Recording, table: str, column: str) -> list[Any]:
    return list(recording[table][column])


def plugins(client: Any) -> list[str]:
    # A lambda is pickled by value; the scheduler cannot import this module.
    ours = lambda dask_scheduler: [  # noqa: E731
        name
        for name, part in (*dask_scheduler.plugins.items(), *dask_scheduler.handlers.items())
        if "daskscope" in name and not hasattr(part, "is_farewell")
    ]
    return list(client.run_on_scheduler(ours))


def agent(client: Any, address: str) -> bool:
    return bool(client.run(lambda dask_worker: "daskscope-agent" in dask_worker.plugins, workers=[address])[address])


def test_a_cluster_without_the_package_is_recorded_whole(bare: Processes, tmp_path: Path, opened: Opened) -> None:
    with Client(scheduler_file=str(bare.scheduler_file)) as client:
        client.wait_for_workers(2, timeout=30)
        with pytest.raises(ModuleNotFoundError):
            client.run_on_scheduler(importlib.import_module, "daskscope")
        imported = client.run(importlib.import_module, "daskscope", on_error="return").values()
        assert [type(answer) for answer in imported] == [ModuleNotFoundError] * 2
        first, second = client.scheduler_info()["workers"]

        with daskscope.record(tmp_path / "run.daskscope") as run:
            until(lambda: agent(client, first) and agent(client, second), "the start of the agents")
            made = client.submit(operator.mul, "x", 100_000, workers=[first])
            client.submit(len, made, workers=[second]).result()
            client.gather(client.map(time.sleep, [0.2] * 4, pure=False))
            with pytest.raises(ZeroDivisionError):
                client.submit(operator.truediv, 1, 0).result()

        assert plugins(client) == []
        until(lambda: not agent(client, first) and not agent(client, second), "the end of the agents")

    assert run.problem == ""
    recording = opened(tmp_path / "run.daskscope")
    assert sorted(names(recording, "tasks", "prefix")) == ["len", "mul", "sleep", "sleep", "sleep", "sleep", "truediv"]
    assert names(recording, "workers", "agent") == ["running", "running"]
    assert "sleep" in names(recording, "profiles", "prefix")
    assert set(names(recording, "samples", "worker")) == {"scheduler", first, second}
    assert (first, second) in set(zip(recording["transfers"]["source"], recording["transfers"]["destination"]))
    assert names(recording, "exceptions", "cause_type") == ["ZeroDivisionError"]
    for name in ("scheduler", "first", "second"):
        assert "daskscope: recording" not in bare.log(name)


def test_a_client_killed_in_the_middle_leaves_a_good_file_and_a_clean_scheduler(
    bare: Processes, tmp_path: Path
) -> None:
    path, script = tmp_path / "run.daskscope", tmp_path / "killed.py"
    script.write_text(KILLED_CLIENT)
    with Client(scheduler_file=str(bare.scheduler_file)) as client:
        address = client.scheduler.address
        process = subprocess.Popen([sys.executable, str(script), address, str(path)])
        try:
            # The file is empty for a moment.
            until(lambda: path.exists() and path.stat().st_size > 100, "a file")
            until(lambda: daskscope.open_recording(path)["tasks"].rows > 100, "a file with tasks")
            assert plugins(client) == ["daskscope", "daskscope"]
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(10)

        until(lambda: not plugins(client), "the recorder's leaving")
        assert client.submit(operator.neg, 1).result() == -1

    recording = daskscope.open_recording(path)
    assert recording["tasks"].rows > 100
    assert names(recording, "windows", "status") == ["open"]


def test_a_file_cut_off_anywhere_opens_up_to_its_last_whole_batch(client: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.daskscope"
    with daskscope.record(path):
        client.gather(client.map(operator.neg, range(100), pure=False))
    whole = path.read_bytes()

    path.write_bytes(whole[:-7])

    recording = daskscope.open_recording(path)
    assert recording.damage
    assert recording.damaged_bytes < len(whole) / 2


def test_a_killed_scheduler_raises_no_daskscope_error_in_the_block(bare: Processes, heard: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.daskscope"
    client = Client(scheduler_file=str(bare.scheduler_file), timeout=20)
    client.wait_for_workers(2, timeout=30)
    try:
        with pytest.raises(Exception) as caught, daskscope.record(path, client) as run:
            client.gather(client.map(operator.neg, range(50), pure=False))
            until(lambda: daskscope.open_recording(path)["tasks"].rows >= 50, "a file with tasks")
            bare.kill("scheduler")
            until(lambda: client.status != "running", "the client's noticing")
            client.submit(operator.neg, 1).result(timeout=1)
    finally:
        client.close(timeout=1)

    assert not isinstance(caught.value, (DaskscopeError, AssertionError))
    assert run.problem
    assert len([line for line in heard.lines if "ends early" in line]) == 1
    assert daskscope.open_recording(path)["tasks"].rows >= 50


def test_a_scheduler_that_hangs_does_not_hang_the_client(
    bare: Processes, heard: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daskscope.client.record.END_TIMEOUT", 0.5)
    scheduler = bare.running["scheduler"]
    with Client(scheduler_file=str(bare.scheduler_file)) as client:
        client.wait_for_workers(2, timeout=30)
        try:
            with daskscope.record(tmp_path / "run.daskscope") as run:
                os.kill(scheduler.pid, signal.SIGSTOP)
        finally:
            os.kill(scheduler.pid, signal.SIGCONT)

        assert "did not answer" in run.problem
        assert len([line for line in heard.lines if "ends early" in line]) == 1


def test_a_cluster_with_tls_is_recorded(tmp_path: Path, opened: Opened) -> None:
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=None, memory_limit=0, security=Security.temporary()
        ) as cluster,
        Client(cluster) as client,
    ):
        assert cluster.scheduler_address.startswith("tls://")
        with daskscope.record(tmp_path / "run.daskscope"):
            client.gather(client.map(operator.neg, range(10)))
            until(lambda: agent(client, *cluster.scheduler.workers), "the agent's start")

    recording = opened(tmp_path / "run.daskscope")
    assert recording["tasks"].rows == 10
    assert names(recording, "workers", "agent") == ["running"]


@pytest.mark.parametrize("minimum", [0, 1])
def test_an_adaptive_cluster_is_recorded_through_its_scaling(minimum: int, tmp_path: Path, opened: Opened) -> None:
    with (
        LocalCluster(n_workers=0, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        cluster.adapt(minimum=minimum, maximum=3, interval="50ms", wait_count=2, target_duration="100ms")
        with daskscope.record(tmp_path / "run.daskscope"):
            client.gather(client.map(time.sleep, [0.1] * 20, pure=False))
            until(lambda: len(cluster.scheduler.workers) <= minimum, "scaling down")
            client.submit(operator.neg, 1, pure=False).result()

    recording = opened(tmp_path / "run.daskscope")
    workers = recording["workers"]
    assert sorted(set(recording["tasks"]["prefix"])) == ["neg", "sleep"]
    assert recording["tasks"].rows == 21
    assert workers.rows > 1
    gone = [verdict for verdict, end in zip(workers["verdict"], workers["end_us"]) if end]
    assert gone
    assert set(gone) == {"retired"}


def test_a_restart_in_the_middle_is_recorded(cluster: Any, client: Any, tmp_path: Path, opened: Opened) -> None:
    before = set(cluster.scheduler.workers)
    with daskscope.record(tmp_path / "run.daskscope"):
        client.gather(client.map(operator.neg, range(10), pure=False))
        client.restart(timeout=60)
        client.wait_for_workers(2, timeout=30)
        after = set(cluster.scheduler.workers)
        until(lambda: all(agent(client, address) for address in after), "the agents' start")
        client.gather(client.map(operator.neg, range(10), pure=False))

    recording = opened(tmp_path / "run.daskscope")
    workers = recording["workers"]
    assert names(recording, "tasks", "prefix") == ["neg"] * 20
    assert set(workers["worker"]) == before | after
    left = {address: verdict for address, verdict in zip(workers["worker"], workers["verdict"]) if verdict}
    assert left == dict.fromkeys(before, "restarted")
    assert "restart" in names(recording, "events", "kind")


def test_a_worker_that_joins_late_gets_an_agent(tmp_path: Path, opened: Opened) -> None:
    with (
        LocalCluster(n_workers=0, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
        daskscope.record(tmp_path / "run.daskscope"),
    ):
        cluster.scale(1)
        client.submit(time.sleep, 0.2).result()
        until(lambda: agent(client, *cluster.scheduler.workers), "the agent's start")

    recording = opened(tmp_path / "run.daskscope")
    assert names(recording, "workers", "agent") == ["running"]
    assert recording["tasks"].rows == 1


def test_a_worker_that_refuses_the_agent_is_recorded_without_one(tmp_path: Path, opened: Opened) -> None:
    with (
        dask.config.set({"distributed.worker.blocked-handlers": ["run"]}),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
        daskscope.record(tmp_path / "run.daskscope") as run,
    ):
        client.gather(client.map(time.sleep, [0.05] * 10, pure=False))
        members = cluster.scheduler.plugins["daskscope"].recorder.members.workers.values()
        until(lambda: all(member.row.get("agent") for member in members), "the answers of the workers")

    assert run.problem == ""
    recording = opened(tmp_path / "run.daskscope")
    assert [state.partition(":")[0] for state in recording["workers"]["agent"]] == ["refused", "refused"]
    assert recording["tasks"].rows == 10
    # The scheduler's event loop may have a profile.
    assert "compute" not in set(recording["profiles"]["kind"])
    assert set(names(recording, "samples", "worker")) == {"scheduler", *recording["workers"]["worker"]}


def test_a_scheduler_that_refuses_plugins_gives_a_one_line_error_with_advice(tmp_path: Path) -> None:
    with (
        dask.config.set({"distributed.scheduler.blocked-handlers": ["register_scheduler_plugin"]}),
        LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster,
        Client(cluster),
        pytest.raises(ClusterError) as caught,
        daskscope.record(tmp_path / "run.daskscope"),
    ):
        pass

    assert "\n" not in str(caught.value)
    assert "dask scheduler --preload daskscope.analytics" in str(caught.value)
    assert not (tmp_path / "run.daskscope").exists()


def test_a_recorder_that_cannot_start_says_why_and_the_next_can_start(
    client: Any, cluster: Any, heard: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Opened
) -> None:
    heard.may_fail = True
    monkeypatch.setattr(
        "daskscope.collector.settings.Settings.plain", lambda settings: {"queue_limit": 1, "prices": {1j: 1}}
    )
    for _ in range(2):
        with (
            pytest.raises(ClusterError, match=r"refused to record: .*complex"),
            daskscope.record(tmp_path / "run.daskscope"),
        ):
            pass
        assert plugins(client) == []
    monkeypatch.undo()

    with daskscope.record(tmp_path / "run.daskscope"):
        client.submit(operator.neg, 1, pure=False).result()

    assert opened(tmp_path / "run.daskscope")["tasks"].rows == 1


def test_a_recorder_that_fails_repeatedly_is_switched_off_and_the_file_says_so(
    client: Any, cluster: Any, heard: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard.may_fail = True
    monkeypatch.setenv("DASKSCOPE_STRICT", "0")
    with daskscope.record(tmp_path / "run.daskscope"):
        client.submit(operator.neg, 1, pure=False).result()
        plugin = cluster.scheduler.plugins["daskscope"]
        plugin.recorder.event = None
        for number in range(30):
            client.log_event("topic", number)
        until(lambda: plugin.guard.is_open, "the breaker's opening")
        assert client.submit(operator.neg, 2, pure=False).result() == -2

    assert plugins(client) == []
    assert len([line for line in heard.lines if "switched off" in line]) == 1
    recording = daskscope.open_recording(tmp_path / "run.daskscope")
    assert recording["tasks"].rows == 1
    assert "collector-disabled" in names(recording, "events", "kind")
