"""Calls of actor methods are recorded as long as they took, and nothing stays in the worker afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

import daskscope
from daskscope import Recording
from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.summary import extent
from daskscope.analysis.time.breakdown import breakdown


class Meter:
    """An actor that measures its own calls."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0

    def burn(self, seconds: float) -> float:
        return self._measure(seconds, lambda: sum(range(1000)))

    def rest(self, seconds: float) -> float:
        return self._measure(seconds, lambda: time.sleep(seconds))

    def fail(self) -> None:
        raise ValueError("on purpose")

    def times(self) -> tuple[float, float]:
        return self.wall, self.cpu

    def _measure(self, seconds: float, step: Callable[[], object]) -> float:
        start, cpu = time.perf_counter(), time.thread_time()
        while time.perf_counter() - start < seconds:
            step()
        self.wall += time.perf_counter() - start
        self.cpu += time.thread_time() - cpu
        return seconds


def submits(dask_worker: Any) -> bool:
    """Return whether the worker's executor of actors is as Dask made it."""
    return "submit" not in vars(dask_worker.executors["actor"])


def make_actor(client: Any, kind: type) -> Any:
    return client.submit(kind, actor=True).result()


def test_calls_are_recorded_with_their_times(client: Any, tmp_path: Path, opened: Callable[[Path], Recording]) -> None:
    path = tmp_path / "run.daskscope"
    with daskscope.record(path, client):
        assert not any(client.run(submits).values())
        meter = make_actor(client, Meter)
        assert [meter.burn(0.4).result() for _ in range(3)] == [0.4] * 3
        assert meter.rest(0.5).result() == 0.5
        with pytest.raises(ValueError, match="on purpose"):
            meter.fail().result()
        wall, cpu = meter.times().result()
    assert all(client.run(submits).values())

    recording = opened(path)
    calls = recording["actor_calls"]
    assert sorted(calls["method"]) == ["burn", "burn", "burn", "fail", "rest", "times"]
    assert set(calls["prefix"]) == {"Meter"}
    assert set(calls["key"]) == {meter.key}
    assert [s for m, s in zip(calls["method"], calls["status"], strict=True) if m == "fail"] == ["error"]
    assert list(calls["status"]).count("ok") == 5
    assert (calls["stop_us"] - calls["start_us"]).sum() / 1e6 == pytest.approx(wall, abs=0.02)
    assert calls["cpu_us"].sum() / 1e6 == pytest.approx(cpu, abs=0.02)
    found = breakdown(recording, Bins.over(*extent(recording)))
    # The thread of the actor is one of the worker's threads: creating it counts too, which takes milliseconds.
    assert found.compute_us / 1e6 == pytest.approx(wall, abs=0.1)
    assert found.split["cpu"] / 1e6 == pytest.approx(cpu, abs=0.1)
    assert sum(found.split.values()) == found.thread_us


def nap(seconds: float) -> None:
    time.sleep(seconds)


def test_an_actor_beside_tasks_takes_nothing_from_them(tmp_path: Path) -> None:
    options: dict[str, Any] = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    path = tmp_path / "run.daskscope"
    with LocalCluster(**options) as cluster, Client(cluster) as client, daskscope.record(path, client) as made:
        meter = make_actor(client, Meter)
        naps = client.map(nap, [0.4] * 4, pure=False)
        meter.burn(1.2).result()
        client.gather(naps)
        wall, _ = meter.times().result()
    found = breakdown(made.recording, Bins.over(*extent(made.recording)))
    calls = made.recording["actor_calls"]
    assert found.waiting_us["native"] == 0
    # The naps took 1.6 s of the only thread, and the actor computed on its own beside them.
    assert found.split["noncpu"] / 1e6 >= 1.55
    assert found.actors_beside_us / 1e6 >= wall - (found.thread_us / 1e6 - 1.6) - 0.05
    assert (calls["stop_us"] - calls["start_us"]).sum() / 1e6 == pytest.approx(wall, abs=0.05)
    assert sum(found.split.values()) == found.thread_us


def test_profiles_do_not_show_the_measurement(client: Any, tmp_path: Path, opened: Callable[[Path], Recording]) -> None:
    with daskscope.record(tmp_path / "run.daskscope", client):
        make_actor(client, Meter).burn(1.0).result()

    profiles = opened(tmp_path / "run.daskscope")["profiles"]
    mine = [stack for prefix, stack in profiles.records("prefix", "stack") if prefix == "Meter.burn"]
    assert mine
    assert all(stack[0].split("\t")[1] == "burn" for stack in mine)


def test_keys_are_left_out_if_they_are_private(client: Any, tmp_path: Path) -> None:
    with daskscope.record(tmp_path / "run.daskscope", client, keys=False):
        make_actor(client, Meter).burn(0.01).result()

    assert set(daskscope.open_recording(tmp_path / "run.daskscope")["actor_calls"]["key"]) == {""}
