"""The recorded rows add up to Dask's own counters, to the microsecond and the byte."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import distributed
import pytest
from distributed import span, wait
from distributed.metrics import context_meter
from tests.helpers.waiting import until

import daskscope
from daskscope import Recording
from daskscope.analysis.summary import summarise

# Untyped in distributed.
LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client


@pytest.fixture(autouse=True)
def importable_by_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[__name__.count(".")]))


def inc(number: int) -> int:
    time.sleep(0.001)
    return number + 1


def read_events(number: int) -> int:
    with context_meter.meter("my-reader"):
        time.sleep(0.002)
    context_meter.digest_metric("my-reader", 3 + number, "events")
    return number


def total_of(values: list[int]) -> int:
    return sum(values)


def workload(client: Any) -> list[Any]:
    """Run the workload; return the futures, which keep Dask from forgetting it."""
    # Every test process imports this file: 0.6 s of CPU time each for dask.dataframe.
    import dask.array as da
    import pandas as pd
    from dask.dataframe import from_pandas

    kept: list[Any] = []
    futures = client.map(inc, range(200))
    kept += [futures, client.submit(total_of, futures)]
    with span("outer"):
        kept.append(client.map(read_events, range(20)))
        with span("inner"):
            x = da.random.random((1200, 1200), chunks=(300, 300)).persist()
            kept += [x, (x @ x.T).sum(axis=0).persist()]
    frame = pd.DataFrame({"name": [f"n{number % 50}" for number in range(5000)], "value": range(5000)})
    shuffled = from_pandas(frame, npartitions=8).shuffle("name", npartitions=6)
    kept.append(shuffled.groupby("name").value.sum().persist())
    wait(kept)
    return kept


class Facts:
    """Return the scheduler's counters, read while the recording still runs."""

    def __init__(self, scheduler: Any) -> None:
        prefixes = scheduler.task_prefixes.values()
        self.durations = {
            (prefix.name, action): value
            for prefix in prefixes
            for action, value in prefix._all_durations_us.items()
            if value
        }
        self.nbytes = {prefix.name: prefix.nbytes_total for prefix in prefixes if prefix.nbytes_total}
        self.tasks = {
            prefix.name: sum(group.states["memory"] + group.states["released"] for group in prefix.groups)
            for prefix in prefixes
        }
        self.group_durations = {
            name: {action: value for action, value in group._all_durations_us.items() if value}
            for name, group in scheduler.task_groups.items()
        }
        self.edges = {
            (str(task.key), str(dependency.key))
            for task in scheduler.tasks.values()
            for dependency in task.dependencies
        }
        self.metrics = {key: value for key, value in scheduler.cumulative_worker_metrics.items() if key[0] in CONTEXTS}
        self.spans = {
            name: {key: value for key, value in each._cumulative_worker_metrics.items() if value}
            for name, each in scheduler.extensions["spans"].spans.items()
        }


CONTEXTS = ("execute", "gather-dep", "get-data", "memory-monitor", "p2p")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Recording, Facts]]:
    path = tmp_path_factory.mktemp("totals") / "run.daskscope"
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None, memory_limit=0
        ) as cluster,
        Client(cluster) as client,
    ):
        with daskscope.record(path, client) as recording:
            kept = workload(client)
            # A shuffle cleans up after its last task, and measures that as well.
            quiet(cluster.scheduler)
        yield recording.recording, Facts(cluster.scheduler)
        del kept


def quiet(scheduler: Any) -> None:
    """Wait until three heartbeats of each worker brought no new metrics of tasks."""
    seen: Any = None
    for _ in range(20):
        now = {key: value for key, value in scheduler.cumulative_worker_metrics.items() if key[0] in CONTEXTS[:3]}
        if now == seen:
            return
        seen = now
        time.sleep(1.5)


def names(labels: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the name of one of Dask's metrics in the table's columns: context, prefix, activity, unit."""
    context, *before, unit = labels
    prefix = before[0] if len(before) > 1 else ""
    return (str(context), str(prefix), "/".join(map(str, before[1:] if prefix else before)), str(unit))


def test_the_recording_is_complete(recorded: tuple[Recording, Facts]) -> None:
    recording, _ = recorded
    assert recording.damage == ""
    assert not any(held.dropped or held.missing for held in recording.completeness.values())
    assert set(recording["tasks"]["status"]) == {"ok"}


def test_tasks_by_prefix(recorded: tuple[Recording, Facts]) -> None:
    recording, facts = recorded
    counts = Counter(recording["tasks"]["prefix"])
    assert counts["inc"] == 200
    assert counts == {name: count for name, count in facts.tasks.items() if name in counts}
    assert set(facts.durations) >= {(prefix, "compute") for prefix in counts}


def test_microseconds_by_prefix_and_action(recorded: tuple[Recording, Facts]) -> None:
    recording, facts = recorded
    table = recording["tasks"]
    sums: Counter[tuple[str, str]] = Counter()
    for row in range(table.rows):
        prefix = table["prefix"][row]
        sums[prefix, "compute"] += int(table["stop_us"][row] - table["start_us"][row])
    lists = [table[name] for name in ("interval_action", "interval_start_us", "interval_stop_us")]
    for prefix, *columns in zip(table["prefix"], *lists, strict=True):
        for action, start, stop in zip(*columns, strict=True):
            sums[prefix, action] += stop - start
    assert any(action == "transfer" for _, action in sums)
    assert {key: value for key, value in sums.items() if value} == facts.durations


def test_bytes_by_prefix(recorded: tuple[Recording, Facts]) -> None:
    recording, facts = recorded
    sums: Counter[str] = Counter()
    for prefix, nbytes in zip(recording["tasks"]["prefix"], recording["tasks"]["nbytes"].tolist(), strict=True):
        sums[prefix] += nbytes
    assert {name: value for name, value in sums.items() if value} == facts.nbytes


def test_counters_of_groups(recorded: tuple[Recording, Facts]) -> None:
    recording, facts = recorded
    table = recording["groups"]
    written = dict(zip(table["group"], map(json.loads, table["durations_us"]), strict=True))
    assert {name: {a: v for a, v in each.items() if v} for name, each in written.items()} == {
        name: each for name, each in facts.group_durations.items() if name in written
    }
    assert set(recording["tasks"]["group"]) <= set(written)


def test_edges(recorded: tuple[Recording, Facts]) -> None:
    recording, facts = recorded
    keys = dict(zip(recording["tasks"]["id"].tolist(), recording["tasks"]["key"], strict=True))
    edges = {
        (keys[task], keys[dependency])
        for task, dependency in zip(
            recording["edges"]["task"].tolist(), recording["edges"]["dependency"].tolist(), strict=True
        )
    }
    ran = set(keys.values())
    # The scheduler has forgotten tasks that were released meanwhile; their edges are still in the recording.
    known = {edge for edge in facts.edges if edge[0] in ran and edge[1] in ran}
    assert len(known) > 200
    assert known <= edges
    assert {edge for edge in edges if edge[0] in {task for task, _ in facts.edges}} == known
    assert recording["edges"].rows == len(edges)


def activities(recording: Recording, *, by_span: bool) -> dict[tuple[str, ...], float]:
    table = recording["activities"]
    columns = (
        ("span", "context", "prefix", "activity", "unit") if by_span else ("context", "prefix", "activity", "unit")
    )
    sums: dict[tuple[str, ...], float] = {}
    for *key, value in zip(*(table[name] for name in columns), table["value"].tolist(), strict=True):
        sums[tuple(key)] = sums.get(tuple(key), 0.0) + value
    return sums


def test_activities(recorded: tuple[Recording, Facts]) -> None:
    recording, facts = recorded
    found = {key: value for key, value in activities(recording, by_span=False).items() if key[0] == "execute"}
    expected = {names(key): value for key, value in facts.metrics.items() if key[0] == "execute"}
    assert found == pytest.approx(expected, rel=1e-9)
    assert found["execute", "read_events", "my-reader", "events"] == sum(3 + number for number in range(20))
    assert found["execute", "read_events", "my-reader", "seconds"] > 0
    contexts = {key[0] for key in activities(recording, by_span=False)}
    assert {"execute", "gather-dep", "get-data"} <= contexts


def test_what_tasks_of_a_shuffle_do_counts_once_among_the_activities(recorded: tuple[Recording, Facts]) -> None:
    recording, facts = recorded
    found: dict[tuple[str, str], float] = {}
    for shown in summarise(recording).activities:
        key = (shown.activity.removeprefix("p2p-"), shown.unit)
        found[key] = found.get(key, 0.0) + shown.total
    expected = {names(key): value for key, value in facts.metrics.items() if key[:2] == ("p2p", "foreground")}
    assert {key[2] for key in expected} >= {"shards", "shard-partition-cpu", "get-output-cpu"}
    for _, _, activity, unit in expected:
        by_task = sum(v for k, v in facts.metrics.items() if names(k)[2:] == (f"p2p-{activity}", unit))
        assert found[activity, unit] == pytest.approx(by_task)


def test_activities_without_a_task(recorded: tuple[Recording, Facts]) -> None:
    recording, facts = recorded
    found = activities(recording, by_span=False)
    expected = {names(key): value for key, value in facts.metrics.items() if key[0] in ("gather-dep", "get-data")}
    for key, value in expected.items():
        assert found[key] == pytest.approx(value, rel=1e-9)


def test_activities_by_span(recorded: tuple[Recording, Facts]) -> None:
    recording, facts = recorded
    found = {key: value for key, value in activities(recording, by_span=True).items() if key[0] and value}
    expected = {(name, *names(key)): value for name, metrics in facts.spans.items() for key, value in metrics.items()}
    assert found == pytest.approx(expected, rel=1e-9)


def test_spans(recorded: tuple[Recording, Facts]) -> None:
    recording, facts = recorded
    table = recording["spans"]
    tags = {name: tuple(each) for name, each in zip(table["span"], table["tags"], strict=True)}
    assert {("outer",), ("outer", "inner")} <= set(tags.values())
    assert set(tags) == set(facts.spans)
    parents = dict(zip(table["span"], table["parent"], strict=True))
    inner = next(name for name, each in tags.items() if each == ("outer", "inner"))
    assert tags[parents[inner]] == ("outer",)


def startstops_of(key: str, dask_worker: Any) -> list[str]:
    """Return the intervals a worker reported with the last run of a task."""
    return [each["action"] for each in dask_worker.state.tasks[key].startstops]


def test_a_key_that_runs_again_counts_each_interval_once(
    client: Any, cluster: Any, tmp_path: Path, opened: Callable[[Path], Recording]
) -> None:
    """A worker keeps a released task while another one there depends on it, and reports its earlier intervals again."""
    here, there = cluster.scheduler.workers
    path, key = tmp_path / "again.daskscope", "total-again"
    # It drops copies of results every two seconds, and an input would be fetched again.
    client.amm.stop()
    with daskscope.record(path, client):
        part = client.submit(inc, 1, key="inc-part", workers=[there])
        future = client.submit(total_of, [part], key=key, workers=[here])
        kept = client.submit(inc, future, key="inc-kept", workers=[here])
        wait(kept)
        for _ in range(2):
            future.release()
            until(lambda: cluster.scheduler.tasks[key].state == "released")
            future = client.submit(total_of, [part], key=key, workers=[here])
            wait(future)
        reported = client.run(startstops_of, key, workers=[here])[here]
    assert reported == ["transfer", "compute", "compute", "compute"]
    table = opened(path)["tasks"]
    rows = table.take(table["key"] == key)
    starts, stops = rows["start_us"].tolist(), rows["stop_us"].tolist()
    assert len(starts) == len(set(starts)) == 3
    assert all(stop <= start for stop, start in zip(stops, starts[1:], strict=False))
    assert [list(actions) for actions in rows["interval_action"]] == [["transfer"], [], []]
