"""Recordings of small programs about which a rule once said something false, and what must be said about them.

``benchmarks/insight_cases.py`` has the programs.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.kept_recordings import MAX_BYTES

from daskscope.analysis.summary import extent
from daskscope.insights.facts import Facts, Finding
from daskscope.insights.rules import findings
from daskscope.wire.file import read_recording

KEPT = Path(__file__).parent.parent / "data" / "cases"


def facts(name: str) -> Facts:
    recording = read_recording(KEPT / f"{name}.daskscope")
    return Facts.of(recording, *extent(recording))


def found(name: str) -> dict[str, Finding]:
    return {finding.rule: finding for finding in reversed(findings(facts(name)))}


@pytest.mark.parametrize("path", sorted(KEPT.iterdir()), ids=lambda path: path.stem)
def test_cases_are_small_and_name_no_machine(path: Path) -> None:
    assert path.stat().st_size <= MAX_BYTES
    recording = read_recording(path)
    assert {*recording["clusters"]["user"], *recording["clusters"]["host"]} == {""}


@pytest.mark.parametrize(("name", "rule"), [("one-long-tile", "stragglers"), ("combine-at-the-end", "serial-sections")])
def test_splitting_a_task_of_6_s_over_two_threads_saves_half_of_it(name: str, rule: str) -> None:
    gain = found(name)[rule].gain
    assert gain is not None
    assert [gain.wall_low_us, gain.wall_high_us] == pytest.approx([3e6, 3e6], rel=0.15)


def test_short_tasks_save_what_their_twin_saved() -> None:
    """42 tasks of 100 ticks each took 2.2 to 2.6 s of 5.4 s, on the same two cores."""
    gain = found("ticks")["short-tasks"].gain
    assert gain is not None
    assert gain.of == "run"
    assert gain.wall_low_us < 2.8e6 < gain.wall_high_us < 1.15 * 3.2e6


@pytest.mark.parametrize("name", ["lower", "add-arrays"])
def test_a_loop_over_native_calls_is_not_a_python_loop(name: str) -> None:
    assert "python-loops" not in found(name)


@pytest.mark.parametrize(
    ("name", "reason", "rule"),
    [
        ("pool-that-rests", "blocked", "off-cpu"),
        ("pool-that-asks", "network", "network-reads"),
        ("pool-that-computes", "native", "library-threads"),
        ("loop-that-asks", "network", "network-reads"),
        ("loop-that-rests", "blocked", "off-cpu"),
    ],
)
def test_a_wait_for_a_pool_is_what_its_threads_wait_for(name: str, reason: str, rule: str) -> None:
    waiting = facts(name).split.waiting_us
    assert waiting[reason] >= 0.9 * sum(waiting.values())
    assert {"locks", "network-reads", "library-threads", "off-cpu"} & found(name).keys() == {rule}


def test_first_tasks_with_slow_inputs_do_not_import() -> None:
    made = found("slow-inputs-first")
    assert "warm-up" not in made
    assert made["stragglers"].title == "4 blur tasks took up to 2.00 s"


def test_a_thread_that_waits_for_the_import_of_another_is_no_straggler() -> None:
    made = found("imports")
    assert "stragglers" not in made
    assert made["warm-up"].title.endswith(" s: it imports modules")


def test_coroutines_are_not_too_short_to_be_sampled() -> None:
    assert found("coroutines")["off-cpu"].advice.startswith("await_reply tasks are coroutines.")


def test_a_wait_names_its_line() -> None:
    assert "insight_cases.py, line 19, in blur." in found("one-long-tile")["off-cpu"].evidence
    assert "insight_tasks.py, line 159, in digest." in found("pool-that-computes")["library-threads"].evidence


def test_a_shuffle_moves_data_and_waits_for_no_lock() -> None:
    split = facts("shuffle").split
    assert split.split["transfer"] >= 0.05 * split.thread_us
    assert split.waiting_us["lock"] == 0


def test_a_client_that_sends_data_in_the_graph_is_not_idle() -> None:
    made = found("data-in-the-graph")
    assert next(iter(findings(facts("data-in-the-graph")))).rule == "large-graphs"
    assert made["large-graphs"].title.startswith("Building, sending and unpacking graphs of 229 MiB took up to 2.")
    assert "nothing-submitted" not in made
