"""The sums of a recording equal Dask's own counters, on every supported version of Dask and Python."""

from __future__ import annotations

import importlib.metadata
import operator
import os
import subprocess
import time
import timeit
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import dask.array
import distributed
import pytest
from tests.helpers.processes import Processes
from tests.helpers.waiting import until

import daskscope
from daskscope import Recording
from daskscope.collector.compat import group_durations_us

pytestmark = pytest.mark.compat

ROOT = Path(__file__).parents[2]
# Untyped in distributed.
LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client

VERSION = importlib.metadata.version("distributed")
FINE = ("execute", "gather-dep", "get-data")


class Truth(NamedTuple):
    """The scheduler's own counters, and the recording."""

    recording: Recording
    tasks: dict[str, int]
    durations_us: dict[tuple[str, str], int]
    fine: dict[tuple[str, ...], float]


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Truth]:
    path = tmp_path_factory.mktemp("compat") / "run.daskscope"
    tasks: Counter[str] = Counter()
    durations: Counter[tuple[str, str]] = Counter()
    with (
        LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None, memory_limit=0) as cluster,
        Client(cluster) as client,
    ):
        with daskscope.record(path):
            data = dask.array.random.random((2000, 2000), chunks=(500, 500))
            total = client.compute((data @ data.T).sum())
            naps = client.map(time.sleep, [0.05] * 8, pure=False)
            failed = client.submit(operator.truediv, 1, 0)
            distributed.wait([total, *naps, failed])
            # Hold the futures until here, so that Dask does not forget a group.
            groups = [group for group in cluster.scheduler.task_groups.values() if group.prefix.name != "finalize"]
            until(lambda: all(not group.states["processing"] for group in groups))
        for group in groups:
            tasks[group.prefix.name] += sum(count for state, count in group.states.items() if state != "waiting")
            for action, spent in group_durations_us(group).items():
                durations[group.prefix.name, action] += spent
        fine = {
            tuple(map(str, key)): value
            for key, value in cluster.scheduler.cumulative_worker_metrics.items()
            if isinstance(key, tuple) and key[0] in FINE
        }
        del total, naps, failed
    yield Truth(daskscope.open_recording(path), dict(tasks), dict(durations), fine)


def test_the_recording_is_whole(truth: Truth) -> None:
    recording = truth.recording

    assert recording.damage == ""
    assert not any(held.missing or held.dropped for held in recording.completeness.values())
    assert "collector-disabled" not in list(recording["events"]["kind"])
    assert list(recording["clusters"]["end_reason"]) == ["recording ended"]
    assert list(recording["workers"]["agent"]) == ["running", "running"]


def test_tasks_by_prefix_equal_dasks(truth: Truth) -> None:
    executed = Counter(truth.recording["tasks"]["prefix"])

    assert {name: executed[name] for name in truth.tasks} == truth.tasks


def test_seconds_by_prefix_and_action_equal_dasks(truth: Truth) -> None:
    table = truth.recording["tasks"]
    spent: Counter[tuple[str, str]] = Counter()
    for row in range(table.rows):
        # Dask adds up successful tasks only.
        if table["status"][row] != "ok":
            continue
        prefix = table["prefix"][row]
        spent[prefix, "compute"] += int(table["stop_us"][row] - table["start_us"][row])
        starts, stops = table["interval_start_us"][row], table["interval_stop_us"][row]
        for action, start, stop in zip(table["interval_action"][row], starts, stops):
            spent[prefix, action] += int(stop - start)

    assert set(spent) >= set(truth.durations_us)
    # Older versions of Dask add up float seconds, which are rounded once at the end; the recording rounds once per task.
    tolerance = len(table["prefix"])
    assert {key: spent[key] for key in truth.durations_us} == pytest.approx(truth.durations_us, abs=tolerance)


def test_fine_metrics_equal_dasks(truth: Truth) -> None:
    table = truth.recording["activities"]
    added: Counter[tuple[str, ...]] = Counter()
    for context, prefix, activity, unit, value in zip(
        table["context"], table["prefix"], table["activity"], table["unit"], table["value"]
    ):
        if context in FINE:
            added[tuple(part for part in (context, prefix, activity, unit) if part)] += value

    assert truth.fine
    assert dict(added) == pytest.approx(truth.fine, rel=1e-6, abs=1e-6)


def test_failures_and_their_causes_are_recorded(truth: Truth) -> None:
    exceptions = truth.recording["exceptions"]

    assert list(exceptions["type"]) == ["ZeroDivisionError"]
    assert list(exceptions["cause_type"]) == ["ZeroDivisionError"]
    assert list(truth.recording["tasks"]["status"]).count("error") == 1


def test_every_source_has_rows(truth: Truth) -> None:
    rows = {
        name: truth.recording[name].rows for name in ("samples", "profiles", "transfers", "edges", "spans", "groups")
    }

    assert [name for name, count in rows.items() if not count] == []


def test_the_calling_code_is_recorded(truth: Truth) -> None:
    assert any("client.map(time.sleep" in code for code in truth.recording["computations"]["code"])


def other_pythons() -> list[str]:
    """Return interpreters of other Python versions with the newest distributed; see scripts/compat."""
    found = [ROOT / ".venv" / "bin" / "python", *sorted(ROOT.glob(".venvs/*/bin/python"))]
    return [str(path) for path in found if os.access(path, os.X_OK)]


@pytest.mark.parametrize("python", other_pythons(), ids=lambda path: Path(path).parts[-3])
def test_a_cluster_of_another_python_is_recorded(python: str, tmp_path: Path) -> None:
    version = "import sys, distributed; print(sys.version_info[:2], distributed.__version__)"
    theirs = subprocess.run([python, "-c", version], capture_output=True, text=True, check=True).stdout.strip()
    if theirs.split()[-1] != VERSION:
        pytest.skip(f"Dask itself does not connect {VERSION} and {theirs.split()[-1]}")

    with Processes(tmp_path / "processes", python=python) as processes:
        processes.scheduler()
        processes.worker("worker")
        # Dask warns that versions differ, which is intended here.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            client = Client(scheduler_file=str(processes.scheduler_file))
        with client:
            client.wait_for_workers(1, timeout=30)
            with daskscope.record(tmp_path / "run.daskscope") as run:
                naps = ["sleep(0.1)"] * 5
                client.gather(client.map(timeit.timeit, naps, setup="from time import sleep", number=1, pure=False))
        assert "Traceback" not in processes.log("scheduler")

    recording = daskscope.open_recording(tmp_path / "run.daskscope")
    assert run.problem == ""
    assert list(recording["tasks"]["prefix"]) == ["timeit"] * 5
    assert list(recording["workers"]["agent"]) == ["running"]
    assert "timeit" in list(recording["profiles"]["prefix"])
