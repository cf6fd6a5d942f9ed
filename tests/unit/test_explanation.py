"""Why a cluster is still running, in words."""

from __future__ import annotations

from typing import Any

from daskscope.analysis.explanation import Explanation, explain

NOW = 1_800_000_000_000_000
MINUTE = 60_000_000


def run(**values: Any) -> dict[str, Any]:
    row = {
        "end_us": 0, "end_reason": "", "seen_us": NOW, "tasks_processing": 0, "tasks_queued": 0, "tasks_unrunnable": 0,
        "unrunnable_needs": "", "idle_since_us": 0, "idle_timeout_s": 0.0, "workers": 2, "threads": 8, "last_work_us": 0,
    }  # fmt: skip
    return {**row, **values}


def client(**values: Any) -> dict[str, Any]:
    row = {"client": "me", "disconnect_us": 0, "last_seen_us": NOW - MINUTE, "held_keys": 0, "held_nbytes": 0}
    return {**row, **values}


def ask(row: dict[str, Any], *clients: dict[str, Any], state: str = "running", per_hour: float = 0.0) -> Explanation:
    return explain(row, clients, state, per_hour, NOW)


def test_one_that_ended_or_was_lost_is_said_to_have() -> None:
    assert "not running any more" in ask(run(end_us=NOW, end_reason="closed"), state="finished").answer
    lost = ask(run(seen_us=NOW - 5 * MINUTE), state="lost")
    assert lost.answer.startswith("Nobody knows: nothing was heard of it for 5")


def test_one_that_works_says_how_much() -> None:
    busy = ask(run(tasks_processing=1, tasks_queued=2000), per_hour=1.5)
    assert busy.answer == "It is working: 1 task running or assigned, 2,000 queued."
    assert "it costs about $1.50 an hour" in busy.evidence
    assert "no client is connected" in busy.evidence


def test_tasks_that_cannot_run_are_named_with_what_they_ask_for() -> None:
    stuck = ask(run(tasks_unrunnable=3, unrunnable_needs='{"GPU": 3}'))
    assert stuck.answer.startswith("3 tasks cannot run: they ask for GPU (3), and Dask's idle clock does not start")
    assert any("Add a worker" in line for line in stuck.advice)
    for needs in ("", "no json", "[]", "{}"):
        assert ask(run(tasks_unrunnable=1, unrunnable_needs=needs)).answer.startswith("1 task cannot run, and Dask's")


def test_one_that_is_idle_says_until_when() -> None:
    for_ever = ask(run(idle_since_us=NOW - 3 * MINUTE), state="idle")
    assert for_ever.answer.startswith("It has been idle for 3")
    assert "no idle-timeout is set" in for_ever.answer
    soon = ask(run(idle_since_us=NOW - 3 * MINUTE, idle_timeout_s=300.0), state="idle")
    assert "its idle-timeout ends it in 2" in soon.answer
    late = ask(run(idle_since_us=NOW - 9 * MINUTE, idle_timeout_s=300.0), state="idle")
    assert "it should be ending" in late.answer


def test_clients_are_told_of_with_what_they_hold() -> None:
    held = client(held_keys=3, held_nbytes=2048)
    answer = ask(run(), held, client(client="gone", disconnect_us=1), client(client="fire-and-forget"))
    lines = [line for line in answer.evidence if line.startswith("client ")]
    assert lines == ["client me: last seen 1 min 0 s ago, holds 3 results (2 KiB)"]
    assert any("Results are held" in line for line in answer.advice)
    many = ask(run(), *(client(client=f"c{n}", held_nbytes=-1) for n in range(7)))
    assert "2 more clients are connected" in many.evidence
    assert sum("an unknown amount" in line for line in many.evidence) == 5
