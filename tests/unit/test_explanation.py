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
        "start_us": NOW - 600 * MINUTE, "close_us": 0, "clock_offset_us": 0, "peak_workers": 0, "peak_threads": 0,
        "peak_memory_limit": 0,
    }  # fmt: skip
    return {**row, **values}


def client(**values: Any) -> dict[str, Any]:
    row = {"client": "me", "disconnect_us": 0, "last_seen_us": NOW - MINUTE, "held_keys": 0, "held_nbytes": 0}
    return {**row, **values}


def ask(row: dict[str, Any], *clients: dict[str, Any], state: str = "running", per_hour: float = 0.0) -> Explanation:
    return explain(row, clients, state, per_hour, NOW)


def ended(**values: Any) -> Explanation:
    return ask(run(end_us=NOW - 180 * MINUTE, **{"end_reason": "closed", **values}), state="finished")


def test_one_that_was_closed_says_when_and_by_what() -> None:
    assert ended().answer == "It was closed 3 h ago, and costs nothing any more."
    asked = ended(close_us=NOW - 181 * MINUTE)
    assert asked.answer == "It was closed 3 h ago because somebody asked this server to, and costs nothing any more."
    idle = {"idle_since_us": NOW - 200 * MINUTE, "idle_timeout_s": 1200.0}
    timed_out = "It was closed 3 h ago by its idle-timeout of 20 min 0 s, and costs nothing any more."
    assert ended(**idle).answer == timed_out
    assert ended(**{**idle, "idle_timeout_s": 1201.0}).answer == ended().answer
    just = ask(run(end_us=NOW), state="finished").answer
    assert just == "It was closed just now, and costs nothing any more."
    odd = ended(end_reason="the machine was taken away").answer
    assert odd == "It ended (the machine was taken away) 3 h ago, and costs nothing any more."


def test_one_that_is_over_says_what_it_had() -> None:
    had = ended(peak_workers=12, peak_threads=48, peak_memory_limit=96 << 30)
    assert had.evidence == (
        "ended 2027-01-15T05:00:00Z, after 7 h 0 min",
        "it had 12 workers with 48 threads and 96 GiB of memory",
    )
    assert ended(start_us=0, peak_workers=1, peak_threads=1).evidence == (
        "ended 2027-01-15T05:00:00Z",
        "it had 1 worker with 1 thread",
    )
    assert had.advice == ()


def test_one_whose_recording_was_ended_may_still_be_there() -> None:
    unseen = ended(end_reason="recording ended")
    assert unseen.answer.startswith("Its recording was ended 3 h ago. The cluster itself may still be there")
    assert unseen.advice == ("Register it again, or look whether its scheduler is still there.",)


def test_one_that_was_lost_is_said_to_be() -> None:
    lost = ask(run(seen_us=NOW - 5 * MINUTE, peak_workers=2, peak_threads=4), state="lost")
    assert lost.answer.startswith("It may not be running: nothing was heard of it for 5")
    assert lost.evidence[1:] == ("it had 2 workers with 4 threads",)


def test_clocks_that_differ_are_spoken_of_from_five_seconds_on() -> None:
    def said(offset: int, state: str = "running") -> list[str]:
        row = run(clock_offset_us=offset, end_us=NOW if state == "finished" else 0)
        return [line for line in ask(row, state=state).evidence if "clock" in line]

    assert said(5_000_000) == said(-5_000_000) == []
    for state in ("running", "finished", "lost"):
        assert said(12_000_000, state) == ["its clock is 12.0 s behind this server's"]
        assert said(-12_000_000, state) == ["its clock is 12.0 s ahead of this server's"]


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


def test_one_that_is_between_two_pieces_of_work_is_not_called_idle() -> None:
    """Dask does so a quarter of a second after the last task."""
    assert ask(run()).answer.startswith("No task runs or waits at this moment, and Dask does not call it idle yet")


def test_one_that_is_silent_may_be_gone_before_it_is_called_lost() -> None:
    quiet = "nothing was heard of it for 40.0 s: it may be gone"
    assert ask(run(tasks_processing=1, seen_us=NOW - 40_000_000)).evidence[0] == quiet
    assert not any("heard" in line for line in ask(run(tasks_processing=1, seen_us=NOW - 20_000_000)).evidence)


def test_clients_are_told_of_with_what_they_hold() -> None:
    held = client(held_keys=3, held_nbytes=2048)
    answer = ask(run(), held, client(client="gone", disconnect_us=1), client(client="fire-and-forget"))
    lines = [line for line in answer.evidence if line.startswith("client ")]
    assert lines == ["client me: last seen 1 min 0 s ago, holds 3 results (2 KiB)"]
    assert any("Results are held" in line for line in answer.advice)
    many = ask(run(), *(client(client=f"c{n}", held_nbytes=-1) for n in range(7)))
    assert "2 more clients are connected" in many.evidence
    assert sum("an unknown amount" in line for line in many.evidence) == 5
