"""The explanation why a cluster is still running."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from daskscope.analysis.running.still_running import ClientStatus, Explanation, RunStatus, describe_state, explain
from daskscope.model.states import RunState

NOW = 1_800_000_000_000_000
MINUTE = 60_000_000


def run(**values: Any) -> RunStatus:
    present = RunStatus(start_us=NOW - 600 * MINUTE, seen_us=NOW, received_us=NOW, workers=2, threads=8)
    return replace(present, **values)


def client(**values: Any) -> ClientStatus:
    return replace(ClientStatus("me", last_seen_us=NOW - MINUTE), **values)


def ask(row: RunStatus, *clients: ClientStatus, state: RunState = "running", per_hour: float = 0.0) -> Explanation:
    return explain(row, clients, state, per_hour, NOW)


def ended(**values: Any) -> Explanation:
    return ask(run(end_us=NOW - 180 * MINUTE, **{"end_reason": "closed", **values}), state="finished")


def test_a_closed_cluster_says_when_and_why() -> None:
    assert ended().answer == "Closed 3 h ago."
    asked = ended(close_us=NOW - 181 * MINUTE)
    assert asked.answer == "Closed 3 h ago at the request of a user of this server."
    idle = {"idle_since_us": NOW - 200 * MINUTE, "idle_timeout_s": 1200.0}
    timed_out = "Closed 3 h ago by its idle-timeout of 20 min 0 s."
    assert ended(**idle).answer == timed_out
    assert ended(**{**idle, "idle_timeout_s": 1201.0}).answer == ended().answer
    just = ask(run(end_us=NOW), state="finished").answer
    assert just == "Closed just now."
    odd = ended(end_reason="the machine was taken away").answer
    assert odd == "Ended 3 h ago (the machine was taken away)."


def test_a_finished_cluster_shows_its_peak_size() -> None:
    had = ended(peak_workers=12, peak_threads=48, peak_memory_limit=96 << 30)
    assert had.evidence == (
        "ended 2027-01-15T05:00:00Z after 7 h 0 min",
        "12 workers with 48 threads and 96 GiB of memory at peak",
    )
    assert ended(start_us=0, peak_workers=1, peak_threads=1).evidence == (
        "ended 2027-01-15T05:00:00Z",
        "1 worker with 1 thread at peak",
    )
    assert had.advice == ()


def test_a_cluster_whose_recording_stopped_may_still_run() -> None:
    unseen = ended(end_reason="recording ended")
    assert unseen.answer.startswith("Recording stopped 3 h ago. The cluster may still be running")
    assert unseen.advice == ("Register the cluster again, or check whether its scheduler is still running.",)


def test_a_lost_cluster() -> None:
    lost = ask(run(seen_us=NOW - 5 * MINUTE, peak_workers=2, peak_threads=4), state="lost")
    assert lost.answer.startswith("Probably not running: its last message came 5")
    assert lost.evidence[1:] == ("2 workers with 4 threads at peak",)


def test_clock_differences_are_reported_above_five_seconds() -> None:
    def clock_lines(offset: int, state: RunState = "running") -> list[str]:
        row = run(clock_offset_us=offset, end_us=NOW if state == "finished" else 0)
        return [line for line in ask(row, state=state).evidence if "clock" in line]

    assert clock_lines(5_000_000) == clock_lines(-5_000_000) == []
    for state in ("running", "finished", "lost"):
        assert clock_lines(12_000_000, state) == ["the scheduler's clock is 12.0 s behind the server's"]
        assert clock_lines(-12_000_000, state) == ["the scheduler's clock is 12.0 s ahead of the server's"]


def test_a_working_cluster_counts_its_tasks() -> None:
    busy = ask(run(tasks_processing=1, tasks_queued=2000), per_hour=1.5)
    assert busy.answer == "It is working: 1 task processing, 2,000 queued."
    assert "costs about $1.50 per hour" in busy.evidence
    assert "no client is connected" in busy.evidence


def test_a_cluster_whose_tasks_do_not_end_is_not_called_working() -> None:
    """They may be long, or wait for each other forever."""
    quiet = ask(run(tasks_processing=4, last_work_us=NOW - 30_000_000))
    assert quiet.answer == "No task has finished for 30.0 s: 4 tasks processing, 0 queued."
    assert ask(run(tasks_processing=4, last_work_us=NOW - 5_000_000)).answer.startswith("It is working: ")


def test_unrunnable_tasks_are_listed_with_the_resources_they_need() -> None:
    stuck = ask(run(tasks_unrunnable=3, unrunnable_needs='{"GPU": 3}'))
    assert stuck.answer == "3 tasks cannot run: no worker offers GPU (3)."
    assert "Dask's idle timer does not start while such tasks wait" in stuck.evidence
    assert any("Add a worker" in line for line in stuck.advice)
    for needs in ("", "no json", "[]", "{}"):
        assert ask(run(tasks_unrunnable=1, unrunnable_needs=needs)).answer == "1 task cannot run."


def test_an_idle_cluster_says_when_it_closes() -> None:
    unlimited = ask(run(idle_since_us=NOW - 3 * MINUTE), state="idle")
    assert unlimited.answer.startswith("It has been idle for 3")
    assert "no idle-timeout is set" in unlimited.answer
    soon = ask(run(idle_since_us=NOW - 3 * MINUTE, idle_timeout_s=300.0), state="idle")
    assert "Its idle-timeout closes it in 2" in soon.answer
    late = ask(run(idle_since_us=NOW - 9 * MINUTE, idle_timeout_s=300.0), state="idle")
    assert "It should close soon" in late.answer


def test_a_cluster_is_not_idle_right_after_a_task() -> None:
    """Dask marks a cluster idle a quarter of a second after its last task."""
    assert ask(run()).answer.startswith("No tasks are processing or queued. Dask has not marked it idle yet")


def test_a_cluster_is_not_silent_because_its_rows_waited_to_be_sent() -> None:
    """An idle cluster sends rows that are up to 30 s old."""
    offset_us = 2_000_000
    arrived = run(clock_offset_us=offset_us, received_us=NOW + offset_us - 20_000_000, seen_us=NOW - 50_000_000)
    assert "gone" not in ask(arrived, state="idle").answer
    assert describe_state(arrived, "lost", NOW).startswith("no message for 20.0 s")


def test_a_silent_cluster_may_be_gone_before_it_counts_as_lost() -> None:
    quiet = "no message for 50.0 s: the scheduler may be gone"
    assert ask(run(tasks_processing=1, seen_us=NOW - 50_000_000)).evidence[0] == quiet
    # The recorder of an idle cluster sends a message every 30 s.
    assert not any("no message" in line for line in ask(run(seen_us=NOW - 35_000_000), state="idle").evidence)


def test_clients_are_listed_with_the_results_they_hold() -> None:
    held = client(held_keys=3, held_nbytes=2048)
    answer = ask(run(), held, client(client="gone", disconnect_us=1), client(client="fire-and-forget"))
    lines = [line for line in answer.evidence if line.startswith("client ")]
    assert lines == ["client me: last seen 1 min 0 s ago, holds 3 results (2 KiB)"]
    assert any("clients hold results" in line for line in answer.advice)
    many = ask(run(), *(client(client=f"c{n}", held_nbytes=-1) for n in range(7)))
    assert "2 more clients connected" in many.evidence
    assert sum("size unknown" in line for line in many.evidence) == 5


def test_the_reason_of_a_state() -> None:
    assert describe_state(run(end_us=NOW), "finished", NOW) == "closed"
    assert describe_state(run(seen_us=NOW - MINUTE), "lost", NOW).startswith("no message for 1 min 0 s")
    assert describe_state(run(), "idle", NOW) == "no task is running or waiting"
    assert describe_state(run(tasks_processing=1, tasks_queued=2), "running", NOW) == "3 tasks running or waiting"
    assert describe_state(run(tasks_unrunnable=1), "running", NOW).startswith("1 task cannot run")
    assert describe_state(run(), "running", NOW) == "it has just finished a task"
