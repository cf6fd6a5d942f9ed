"""Comparisons of hand-made runs with known differences."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers.hostile import hostile_tables

import daskscope
from daskscope.analysis.compare.changes import Changes, Difference, compare_runs
from daskscope.analysis.compare.comparison import headline, notes, to_markdown
from daskscope.analysis.compare.measurements import Measured, PrefixTimes, measure, measured_of
from daskscope.model.recording import Recording
from daskscope.testing import make_recording
from daskscope.wire.file import read_recording

GOLDEN = Path(__file__).parent.parent / "data" / "recordings" / "v1.daskscope"
T = 1_700_000_000_000_000
CLUSTER = {
    "cluster": "c", "address": "tcp://h:8786", "start_us": T,
    "versions": '{"dask": "1"}', "config": '{"scheduler": {"x": true}}',
}  # fmt: skip
EXECUTE = {"context": "execute", "unit": "seconds"}
PREFIXES = {"load": 8_000, "clean": 4_000, "score": 5_000, "store": 3_000}


def a_run(seed: int, *, noise: float = 0.02, slowed: dict[str, float] | None = None, **changed: Any) -> Measured:
    """Return a run of four prefixes, 20 tasks each; ``slowed`` multiplies the time of some."""
    random, factors = Random(seed), slowed or {}

    def times(name: str, us: float) -> PrefixTimes:
        each = round(us * factors.get(name, 1.0) * random.lognormvariate(0.0, noise))
        return PrefixTimes(20, 20 * each, each, round(0.95 * each), round(1.05 * each), 2_000, each)

    prefixes = {name: times(name, us) for name, us in PREFIXES.items()}
    wall = sum(found.total_us for found in prefixes.values()) // 2
    run = Measured(
        source=f"run-{seed}",
        start_us=T + seed,
        wall_us=wall,
        prefixes=prefixes,
        thread_us={"cpu": 2 * wall - 1_000, "idle": 1_000},
        spans_us={"train": wall},
        memory=(100, 200, 150),
        peak_memory=200,
        transferred=500,
        workers=2,
        threads=2,
        errors=0,
        other_cores=0.1,
    )
    return replace(run, **changed)


def runs(first: int, count: int = 5, **changed: Any) -> list[Measured]:
    return [a_run(seed, **changed) for seed in range(first, first + count)]


def verdicts(changes: Changes) -> dict[str, str]:
    return {"": changes.wall.verdict, **{prefix.prefix: prefix.verdict for prefix in changes.prefixes}}


def test_identical_code_shows_no_difference() -> None:
    changes = compare_runs(runs(0), runs(100))
    assert verdicts(changes) == dict.fromkeys(("", *PREFIXES), "no difference shown")
    assert headline(changes).startswith("No difference shown: 199 ms instead of 200 ms. 5 repeats before and 5 after.")
    assert (changes.is_shown, changes.slowdowns()) == (False, ())


def test_a_slowed_prefix_is_named() -> None:
    changes = compare_runs(runs(0), runs(100, slowed={"score": 1.4}))
    assert verdicts(changes) == {
        "": "slower", "score": "slower", "load": "no difference shown",
        "clean": "no difference shown", "store": "no difference shown",
    }  # fmt: skip
    assert re.match(r"[\d.]+ % slower: \d+ ms instead of \d+ ms\. All 5 runs after are slower", headline(changes))
    assert "Slower tasks: score (+" in headline(changes)
    assert [change.name for change in changes.slowdowns(0.2)] == ["score", "score"]
    assert changes.slowdowns(0.5) == ()


def test_a_sped_up_prefix_is_named() -> None:
    changes = compare_runs(runs(0), runs(100, slowed={"score": 0.7}))
    assert (verdicts(changes)["score"], changes.slowdowns()) == ("faster", ())


def test_a_proven_change_below_the_minimum_is_not_named() -> None:
    changes = compare_runs(runs(0, noise=0.001), runs(100, noise=0.001, slowed={"score": 1.03}))
    assert verdicts(changes)["score"] == "no difference shown"


def test_if_half_of_the_prefixes_get_slower_the_others_are_not_called_faster() -> None:
    changes = compare_runs(runs(0), runs(100, slowed={"score": 1.3, "clean": 1.3}))
    assert set(verdicts(changes).values()) <= {"slower", "no difference shown"}


def test_one_run_each_cannot_tell_but_gives_a_hint() -> None:
    changes = compare_runs([a_run(0)], [a_run(1, slowed={"score": 1.5})])
    assert set(verdicts(changes).values()) == {"cannot tell"}
    assert headline(changes).startswith(
        "Cannot tell noise from change: 228 ms instead of 200 ms. One run each; 5 repeats each can prove a difference."
    )
    (hint,) = changes.hints
    assert hint.startswith(("A score task took 4", "A score task took 5"))
    assert hint.endswith(" longer, more than the tasks of one run differ.")


def test_too_few_repeats_are_said() -> None:
    changes = compare_runs(runs(0, 3), runs(100, 3, slowed={"score": 2.0}))
    assert set(verdicts(changes).values()) == {"cannot tell"}
    assert "3 and 3 repeats are too few; 5 each can prove a difference" in headline(changes)


def test_a_run_is_ranked_among_its_history() -> None:
    changes = compare_runs(runs(0, 10), [a_run(100, slowed={"score": 1.5})])
    assert [hint.partition(" took ")[0] for hint in changes.hints] == ["The run", "A score task"]
    assert "than in all 10 earlier runs" in changes.hints[1]


def test_times_are_not_compared_if_the_machine_was_busier() -> None:
    def doubled(times: PrefixTimes) -> PrefixTimes:
        return replace(times, median_us=2 * times.median_us, total_us=2 * times.total_us)

    busy = [replace(run, wall_us=2 * run.wall_us, other_cores=1.5) for run in runs(100)]
    slow = [replace(run, prefixes={name: doubled(times) for name, times in run.prefixes.items()}) for run in busy]
    changes = compare_runs(runs(0), slow)
    assert set(verdicts(changes).values()) == {"cannot tell"}
    assert not changes.is_shown
    assert headline(changes) == (
        "Times cannot be compared: 398 ms instead of 200 ms. Other programs on the hosts used 0.1 cores before and 1.5 after. "
        "CPU times show no difference."
    )


def test_code_that_uses_more_cpu_is_named_on_a_busy_machine() -> None:
    busy = [replace(run, wall_us=2 * run.wall_us, other_cores=1.5) for run in runs(100, slowed={"score": 1.3})]
    changes = compare_runs(runs(0), busy)
    found = {prefix.prefix: (prefix.time.verdict, prefix.cpu.verdict) for prefix in changes.prefixes}
    assert found["score"] == ("cannot tell", "slower")
    assert headline(changes).startswith("Slower tasks: score (+")
    assert "% CPU time per task)" in headline(changes)


def test_tasks_that_wait_are_compared_by_time_on_a_busy_machine() -> None:
    def waiting(run: Measured) -> Measured:
        return replace(run, prefixes={**run.prefixes, "load": replace(run.prefixes["load"], cpu_us=10)})

    busy = [replace(waiting(run), other_cores=1.5) for run in runs(100, slowed={"load": 1.3})]
    changes = compare_runs(list(map(waiting, runs(0))), busy)
    assert {prefix.prefix: prefix.time.verdict for prefix in changes.prefixes} == {
        "load": "slower", "clean": "cannot tell", "score": "cannot tell", "store": "cannot tell",
    }  # fmt: skip


def test_a_load_that_varies_alike_on_both_sides_is_noise_like_any_other() -> None:
    def loaded(side: list[Measured], loads: tuple[float, ...]) -> list[Measured]:
        return [replace(run, other_cores=load) for run, load in zip(side, loads, strict=True)]

    before, after = loaded(runs(0), (0.0, 1.0, 0.0, 1.0, 0.0)), loaded(runs(100), (1.0, 0.0, 1.0, 0.0, 1.0))
    assert compare_runs(before, after).is_load_different is False
    assert compare_runs(loaded(runs(0), (0.0,) * 5), loaded(runs(100), (1.0,) * 5)).is_load_different is True


@pytest.mark.parametrize(("factor", "verdict"), [(1.5, "cannot tell"), (2.5, "slower"), (0.3, "faster")])
def test_one_prefix_on_a_busy_machine_must_change_by_more_than_a_neighbour_can_cause(
    factor: float, verdict: str
) -> None:
    def only_score(run: Measured) -> Measured:
        return replace(run, prefixes={"score": run.prefixes["score"]})

    busy = [replace(only_score(run), other_cores=1.5) for run in runs(100, slowed={"score": factor})]
    (prefix,) = compare_runs(list(map(only_score, runs(0))), busy).prefixes
    assert (prefix.cpu.verdict, prefix.time.verdict) == (verdict, "cannot tell")


def test_new_and_missing_prefixes_and_counts_are_noted() -> None:
    def with_merge(run: Measured) -> Measured:
        store = replace(run.prefixes["store"], count=40)
        kept = {name: times for name, times in run.prefixes.items() if name != "load"}
        return replace(run, prefixes={**kept, "merge": run.prefixes["load"], "store": store})

    changes = compare_runs(runs(0), list(map(with_merge, runs(100))))
    assert set(notes(changes)) == {
        "Tasks of load ran only before.", "Tasks of merge ran only after.", "store ran 20 → 40 tasks.",
    }  # fmt: skip
    assert verdicts(changes)["load"] == "only before"


def test_versions_config_and_code_are_compared() -> None:
    before = runs(0, versions={"dask": "1", "numpy": "2"}, config={"a": "1"}, code=("x = 1\ny.compute()",))
    after = runs(100, versions={"dask": "2", "numpy": "2", "new": "1"}, config={"a": "1"}, code=("x = 2\ny.compute()",))
    changes = compare_runs(before, after)
    assert changes.versions == (Difference("dask", "1", "2"), Difference("new", "", "1"))
    assert (changes.config, changes.code) == (
        (),
        "--- before\n+++ after\n@@ -1,2 +1,2 @@\n-x = 1\n+x = 2\n y.compute()",
    )


def test_markdown_shows_names_as_they_are() -> None:
    odd = {"<img src=x>|`a`": PrefixTimes(1, 9, 9, 9, 9, 0, 9)}
    text = to_markdown(compare_runs(runs(0, prefixes=odd), runs(100, prefixes=odd)), "Benchmark")
    assert text.startswith("### Benchmark\n**No difference shown: ")
    # Inside of code, nothing is HTML, and a backtick would end it.
    assert "| `<img src=x>\\|'a'` |" in text
    assert text.count("<img") == 1
    assert "| Total time | " in text


def test_code_cannot_leave_its_block_in_markdown() -> None:
    before, after = (runs(first, code=(f"x = {first}\n````\n<script>",)) for first in (0, 100))
    text = to_markdown(compare_runs(before, after))
    assert text.count("\n`````diff\n") == 1
    assert text.count("\n`````\n") == 1


@pytest.mark.parametrize("recording", [read_recording(GOLDEN), make_recording(hostile_tables()), make_recording({})])
def test_any_recording_compared_with_itself_shows_no_difference(recording: Recording) -> None:
    found = daskscope.compare([recording] * 5, [recording] * 5)
    assert (found.is_shown, found.changes.hints) == (False, ())
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["headline"] == found.headline
    assert found.to_markdown()


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 6), st.sampled_from((0.7, 1.0, 1.4)))
def test_a_set_compared_with_itself_shows_nothing(seed: int, count: int, factor: float) -> None:
    same = runs(seed, count, slowed={"score": factor})
    changes = compare_runs(same, same)
    assert not changes.is_shown
    assert changes.hints == ()
    assert {change.ratio for change in changes.tested} <= {0.0}


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 6), st.sampled_from((0.7, 0.9, 1.0, 1.2)))
def test_swapping_the_sides_negates_the_changes(seed: int, before: int, after: int, factor: float) -> None:
    first, second = runs(seed, before), runs(seed + 50, after, slowed={"score": factor})
    forth, back = verdicts(compare_runs(first, second)), verdicts(compare_runs(second, first))
    other = {"slower": "faster", "faster": "slower"}
    assert {name: other.get(verdict, verdict) for name, verdict in forth.items()} == back


def test_a_recording_is_measured() -> None:
    tasks = [
        {
            "id": at, "key": f"score-{at}", "prefix": "score", "worker": "a", "status": "ok", "nbytes": 10, "span": "s",
            "start_us": T + 10_000 * at, "stop_us": T + 10_000 * at + us,
        }
        for at, us in enumerate((1_000, 2_000, 9_000))
    ]  # fmt: skip
    recording = make_recording(
        {
            "clusters": [CLUSTER],
            "workers": [{"worker": "a", "server_id": "a", "host": "h", "nthreads": 1, "start_us": T}],
            "tasks": tasks,
            "spans": [{"span": "s", "tags": ["train"]}],
            "activities": [
                {"time_us": T + 30_000, "prefix": "score", "activity": name, "value": 0.006, **EXECUTE}
                for name in ("thread-cpu", "thread-noncpu")
            ],
            "processes": [{"worker": "a", "time_us": T, "wall_us": 100, "cpu_us": 50, "host_cpu_us": 150}],
            "samples": [
                {"time_us": T, "worker": "a", "memory": 70, "cpu_percent": 50.0},
                {"time_us": T, "worker": "scheduler", "memory": 30, "cpu_percent": 20.0},
            ],
        }
    )  # fmt: skip
    found = measure(recording, T, T + 30_000)
    assert found.prefixes == {"score": PrefixTimes(3, 12_000, 2_000, 1_000, 9_000, 30, 2_000)}
    assert (found.wall_us, found.thread_us["idle"], found.spans_us) == (30_000, 18_000, {"train": 12_000})
    assert (found.versions, found.config) == ({"dask": "1"}, {"scheduler.x": "True"})
    assert (found.other_cores, found.peak_memory, found.threads) == (0.8, 70, 1)
    assert measured_of(found.to_dict()) == found


@pytest.mark.parametrize("data", [{}, {"format": 99}, {"format": 1}, {**a_run(0).to_dict(), "prefixes": []}])
def test_other_data_is_not_a_measured_run(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"format|not a measured run"):
        measured_of(data)


def test_memory_that_was_not_recorded_is_not_zero() -> None:
    sampled, unknown = a_run(0), replace(a_run(1), memory=(-1, -1), peak_memory=0)
    changes = compare_runs([unknown], [sampled])
    assert changes.peak_memory.before is None and changes.peak_memory.after == sampled.peak_memory
    assert "| Peak memory | not recorded |" in to_markdown(changes)


def test_every_run_is_a_dot_of_the_picture() -> None:
    changes = compare_runs(runs(0), runs(100))
    assert len(changes.walls_before) == len(changes.walls_after) == 5
    assert min(changes.walls_after) == (changes.wall.after_range or (0, 0))[0]
