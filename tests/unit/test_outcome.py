"""The headline says how a run ended and why, and claims nothing that was not recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.summary import extent
from daskscope.analysis.time.breakdown import breakdown
from daskscope.collector.scheduler.members import Traces, judge
from daskscope.insights.facts import Facts
from daskscope.insights.story import Outcome, outcome
from daskscope.model.recording import Completeness, Recording
from daskscope.model.states import RUN_STATES
from daskscope.model.tables import TABLES
from daskscope.testing import make_recording
from daskscope.wire.file import read_recording

GOLDEN = Path(__file__).parent.parent / "data" / "recordings" / "v1.daskscope"
S = 1_000_000
T = 1_700_000_000 * S
CLUSTER = [{"cluster": "c", "recording_us": T, "end_us": T + 100 * S, "end_reason": "closed"}]
WORKER = {"worker": "tcp://a", "name": "w-5", "server_id": "1", "nthreads": 1, "start_us": T, "end_us": T + 100 * S}
TASK = {"worker": "tcp://a", "start_us": T, "stop_us": T + 65 * S, "status": "ok", "prefix": "add"}
WINDOW = {"window": "w", "kind": "report", "start_us": T, "stop_us": T + 100 * S}


def outcome_of(*states: str, **tables: list[dict[str, Any]]) -> Outcome:
    computations = [{"computation": str(i), "state": state, "start_us": T} for i, state in enumerate(states)]
    rows = {"clusters": CLUSTER, "workers": [WORKER], "tasks": [TASK], "computations": computations}
    return ended(make_recording({**rows, **tables}))


def ended(recording: Recording) -> Outcome:
    return outcome(Facts.of(recording, *extent(recording)))


def test_a_finished_run() -> None:
    moved = {"interval_action": ["transfer"], "interval_start_us": [T + 70 * S], "interval_stop_us": [T + 89 * S]}
    spent = "Threads spent 65 % of the time computing, 19 % on transfers, and 16 % idle."

    assert outcome_of("done", tasks=[TASK | moved]) == Outcome("finished", "Finished in 1 min 40 s.", spent)


def test_the_main_reason_of_idle_time() -> None:
    two = [{**WORKER, "nthreads": 2}]

    assert outcome_of("done", workers=two, tasks=[{**TASK, "stop_us": T + 100 * S}]).reason == (
        "Threads spent 50 % of the time computing and 50 % idle: too few tasks could run in parallel."
    )


def test_a_small_reason_does_not_explain_all_idle_time() -> None:
    """Threads were idle for 90 % of the time: 80 % without work, and 10 % because one of two could not run anything."""
    computation = {"computation": "0", "state": "done", "start_us": T + 80 * S, "stop_us": T + 100 * S}
    late = {**TASK, "start_us": T + 80 * S, "stop_us": T + 100 * S}
    tables: dict[str, Any] = {"computations": [computation], "workers": [{**WORKER, "nthreads": 2}], "tasks": [late]}
    assert outcome_of(**tables).reason == (
        "Threads spent 10 % of the time computing and 90 % idle. Nothing was submitted for 80 % of the time."
    )


def test_waiting_in_tasks_is_not_computing() -> None:
    """Tasks that sleep or wait for a core do not compute, and the headline says for what they waited."""
    row = {"context": "execute", "prefix": "add", "unit": "seconds", "time_us": T + 65 * S}
    measured = [{**row, "activity": "thread-cpu", "value": 5.0}, {**row, "activity": "thread-noncpu", "value": 60.0}]
    found = outcome_of("done", activities=measured).reason
    assert found.startswith("Threads spent 5 % of the time computing, 60 % waiting in tasks, and 35 % idle")


def test_the_shares_have_one_base() -> None:
    """As the bar on the page: of all thread time, also the time in which nothing was submitted."""
    computations = [{"computation": "0", "state": "done", "start_us": T + 35 * S, "stop_us": T + 100 * S}]
    late = {**TASK, "start_us": T + 35 * S, "stop_us": T + 100 * S}

    assert outcome_of(computations=computations, tasks=[late]).reason == (
        "Threads spent 65 % of the time computing and 35 % idle. Nothing was submitted for 35 % of the time."
    )


def test_a_cluster_without_an_end_is_not_called_finished() -> None:
    running = [{**CLUSTER[0], "end_us": 0, "end_reason": ""}]

    found = outcome_of("done", clusters=running)

    assert (found.state, found.headline) == (
        "running",
        "The cluster was running when last heard from, after 1 min 5 s.",
    )
    # A block of work that was recorded has ended, whatever the cluster does.
    assert outcome_of("done", clusters=running, windows=[WINDOW]).headline == "Finished in 1 min 40 s."
    # The file was cut off inside of the block.
    cut = {**WINDOW, "stop_us": 0, "status": "open"}
    assert outcome_of("done", clusters=running, windows=[cut]).headline == found.headline


def test_wasted_work_is_part_of_the_reason() -> None:
    failed = {**TASK, "start_us": T + 70 * S, "stop_us": T + 80 * S, "status": "retried"}

    assert outcome_of("done", tasks=[TASK, failed]).reason == (
        "Threads spent 65 % of the time computing, 10 % on failed, cancelled or recomputed work, and 25 % idle."
    )


def test_a_failed_run_says_how_much_of_it_finished() -> None:
    computation = {"computation": "0", "state": "erred", "start_us": T, "tasks": 41, "erred": 1}
    error = {"fingerprint": "b", "type": "ValueError", "message": "no", "time_us": T, "prefix": "add"}
    tables: dict[str, Any] = {"computations": [computation], "exceptions": [error]}
    tasks = [{**TASK, "key": str(n), "stop_us": T + S} for n in range(40)]
    assert outcome_of(**tables, tasks=tasks).reason == "It was raised in add. 40 of 41 tasks finished."
    # Dask released the others without running them.
    killed = [{**task, "status": "killed"} for task in tasks[11:]]
    assert outcome_of(**tables, tasks=tasks[:11] + killed).reason == "It was raised in add. 11 of 41 tasks finished."
    # The result was lost, and recomputed.
    assert outcome_of(**tables, tasks=[*tasks, tasks[0]]).reason == "It was raised in add. 40 of 41 tasks finished."


def test_a_failed_run_does_not_say_how_much_of_it_finished_if_executions_are_missing() -> None:
    error = {"fingerprint": "b", "type": "ValueError", "message": "no", "time_us": T, "prefix": "add"}
    computation = {"computation": "0", "state": "erred", "start_us": T, "tasks": 41, "erred": 1}
    tables = {"clusters": CLUSTER, "workers": [WORKER], "tasks": [TASK], "exceptions": [error]}
    whole = make_recording({**tables, "computations": [computation]})
    part = replace(whole, completeness={**whole.completeness, "tasks": Completeness(1, missing=5)})
    earlier = make_recording({**tables, "computations": [{**computation, "start_us": T - S}]})
    assert ended(whole).reason == "It was raised in add. 1 of 41 tasks finished."
    assert {ended(recording).reason for recording in (part, earlier)} == {"It was raised in add."}


def test_a_failed_run() -> None:
    errors = [
        {"fingerprint": "a", "type": "OSError", "message": "flaky", "count": 9, "will_retry": 1, "time_us": T},
        {"fingerprint": "b", "type": "ValueError", "message": "no\nsuch  thing", "count": 2, "time_us": T},
        {"fingerprint": "c", "type": "KeyError", "message": "x" * 300, "count": 1, "time_us": T},
    ]

    assert outcome_of("erred", exceptions=errors) == Outcome(
        "failed",
        "Failed after 1 min 40 s: ValueError: no such thing.",
        "It was raised 2 times in unnamed tasks. There is 1 other error.",
    )
    assert outcome_of("done", "erred", "done", exceptions=errors[1:]).headline == (
        "1 of 3 computations failed: ValueError: no such thing."
    )
    assert outcome_of("erred").reason == "The error was not recorded."
    assert outcome_of("done", exceptions=errors).state == "finished"
    assert outcome_of(exceptions=errors).state == "failed"
    assert outcome_of(exceptions=errors[:1]).state == "finished"
    assert outcome_of("erred", exceptions=errors[2:]).headline == f"Failed after 1 min 40 s: KeyError: {'x' * 89}…"


def test_a_failure_names_its_place_and_the_tasks_that_need_its_result() -> None:
    error = {"fingerprint": "b", "type": "ValueError", "message": "no", "prefix": "load", "time_us": T}
    rows = [{**error, "worker": f"tcp://{name}", "key": name} for name in "ab"]
    needs = {"fingerprint": "b", "type": "ValueError", "message": "no", "prefix": "sum", "key": "s", "blamed_key": "a"}

    assert outcome_of("erred", exceptions=rows).reason == "It was raised 2 times in load on 2 workers."
    found = outcome_of("erred", exceptions=[*rows, {**needs, "time_us": T}])
    assert found.reason == "It was raised 2 times in load on 2 workers. 1 dependent task could not run."


def test_a_lost_worker_is_in_the_headline_of_a_finished_run() -> None:
    killed = {**WORKER, "verdict": "memory kill", "end_us": T + 50 * S}
    again = [{**TASK, "key": "a", "start_us": T, "stop_us": T + 3 * S}, {**TASK, "key": "a"}]

    found = outcome_of("done", workers=[killed])
    assert found.headline == "Finished in 1 min 40 s, but worker w-5 was killed for exceeding its memory limit."
    assert found.reason == "No result was recomputed; 1 thread missing for 50.0 s."
    joined = {**WORKER, "server_id": "2", "start_us": T + 54 * S}
    assert outcome_of("done", workers=[killed, joined], tasks=again).reason == (
        "1 result was recomputed in 3.00 s of compute time; 1 thread missing for 4.00 s."
    )
    # The input of a lost result was released, so it ran again on a worker that stayed.
    kept = [{**row, "key": "b", "worker": "tcp://b"} for row in again]
    both = [{**killed, "start_us": T}, {**WORKER, "worker": "tcp://b", "server_id": "3"}]
    assert "2 results were recomputed in 6.00 s" in outcome_of("done", workers=both, tasks=[*again, *kept]).reason
    vanished = {**killed, "verdict": "vanished", "evidence": "the connection dropped"}
    assert outcome_of("done", workers=[vanished]).reason.startswith("The connection dropped. No result was recomputed")
    assert outcome_of("erred", workers=[killed]).state == "failed"


def test_a_worker_is_killed_at_the_size_that_its_nanny_saw() -> None:
    """Samples are seconds apart, and the last one was of a small worker."""
    verdict, evidence = judge(Traces(memory_kill=361 * 2**20))
    killed = {**WORKER, "verdict": verdict, "evidence": evidence, "memory_limit": 400 * 2**20, "end_us": T + 50 * S}
    samples = [{"worker": "tcp://a", "time_us": T + 5, "memory": 50 * 2**20}]
    headline = outcome_of("done", workers=[killed], samples=samples).headline
    assert headline == "Finished in 1 min 40 s, but worker w-5 was killed at 90 % of its memory limit."


@pytest.mark.parametrize(
    "size", ["1.2.3 GiB", "9" * 400 + " B", "5 FooB", "nan GiB", ". MiB", "-5 MiB", "5 bytes", "٣ GiB", "", "1e9 B"]
)
def test_a_size_that_no_nanny_wrote_is_left_out(size: str) -> None:
    killed = {**WORKER, "verdict": "memory kill", "evidence": f"its nanny killed it at {size}", "memory_limit": 100}
    headline = outcome_of("done", workers=[{**killed, "end_us": T + 50 * S}]).headline
    assert headline == "Finished in 1 min 40 s, but worker w-5 was killed for exceeding its memory limit."


def test_an_unfinished_run() -> None:
    killed = {**WORKER, "verdict": "memory kill", "memory_limit": 100}
    samples = [{"worker": "tcp://a", "time_us": T + 5, "memory": 95}]
    two = [{**killed, "server_id": "2"}, killed]

    assert outcome_of("lost") == Outcome(
        "unfinished", "Unfinished after 1 min 40 s.", "The cluster ended before its tasks finished."
    )
    # It ran when the last row of its cluster was written.
    assert outcome_of("running") == outcome_of("lost")
    assert outcome_of("running", windows=[WINDOW]).reason == "The block ended before its tasks finished."
    assert (
        outcome_of("lost", workers=[killed], samples=samples).reason
        == "Worker w-5 was killed at 95 % of its memory limit."
    )
    assert outcome_of("lost", workers=[killed]).reason == "Worker w-5 was killed for exceeding its memory limit."
    assert outcome_of("lost", workers=two).reason == "2 workers were killed for exceeding their memory limit."
    assert outcome_of("lost", workers=[{**WORKER, "verdict": "vanished"}]).reason == "Worker w-5 was lost."
    assert outcome_of("lost", "done").headline == "1 of 2 computations did not finish."


def test_a_running_run() -> None:
    found = outcome_of("running", clusters=[{**CLUSTER[0], "end_us": 0, "end_reason": ""}])

    assert (found.state, found.headline) == ("running", "Still running after 1 min 5 s.")
    # The cluster of a finished block may run on.
    later = {**WINDOW, "stop_us": T + 20 * S}
    assert outcome_of("running", clusters=[{**CLUSTER[0], "end_us": 0}], windows=[later]).state == "unfinished"


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "KeyboardInterrupt: ", "asyncio.exceptions.CancelledError"])
def test_a_run_that_a_user_stopped_is_interrupted(error: str) -> None:
    stopped = {**WINDOW, "error": error}

    for state in ("running", "lost", "cancelled", "done"):
        found = outcome_of(state, windows=[stopped])
        assert (found.state, found.headline) == ("interrupted", "Interrupted after 1 min 40 s.")
    assert outcome_of("erred", windows=[stopped]).state == "failed"
    assert outcome_of(tasks=[], windows=[stopped]).reason == "No task had finished."
    assert outcome_of("done", windows=[{**WINDOW, "error": "ValueError: KeyboardInterrupt"}]).state == "finished"


def test_a_run_whose_work_was_cancelled_is_interrupted() -> None:
    assert outcome_of("cancelled").headline == "Interrupted after 1 min 40 s."
    both: list[dict[str, Any]] = [
        {"computation": "a", "state": "done"},
        {"computation": "b", "state": "cancelled", "abandoned": 16},
    ]
    found = outcome_of(computations=both)
    assert (found.state, found.headline) == ("interrupted", "1 of 2 computations was interrupted.")
    assert found.reason.startswith("16 tasks never ran. ")


def test_an_empty_run() -> None:
    assert ended(make_recording({})) == Outcome("finished", "Nothing ran.", "No worker joined during the recording.")
    assert outcome_of(tasks=[]) == Outcome("finished", "Nothing ran.", "No task finished during the recording.")


def test_a_run_without_a_finished_task_is_not_empty() -> None:
    given_up = outcome_of("cancelled", tasks=[])
    assert given_up == Outcome("interrupted", "Interrupted after 1 min 40 s.", "No task had finished.")
    assert outcome_of("lost", tasks=[]).headline == "Unfinished after 1 min 40 s."


def test_a_run_without_thread_time() -> None:
    assert outcome_of("done", tasks=[{"status": "ok"}], workers=[]).reason == "No thread time was recorded."


def test_the_breakdown_of_the_facts_is_used() -> None:
    recording = make_recording({"clusters": CLUSTER, "workers": [WORKER], "tasks": [TASK]})

    assert outcome(
        replace(Facts.of(recording, T, T + 100 * S), split=breakdown(recording, Bins(T, 65 * S, 1)))
    ).reason == ("Threads spent 100 % of the time computing and 0 % idle.")


def test_the_extent_is_that_of_the_only_window() -> None:
    def of(*windows: dict[str, Any]) -> tuple[int, int]:
        rows = [{"window": str(i), **window} for i, window in enumerate(windows)]
        start, stop = extent(make_recording({"clusters": CLUSTER, "windows": rows}))
        return (start - T) // S, (stop - T) // S

    inside = {"kind": "report", "start_us": T + 5 * S, "stop_us": T + 9 * S}
    assert of(inside, {"kind": "memory", "start_us": T}) == (5, 9)
    assert of(inside, inside) == (0, 100)
    assert of({**inside, "stop_us": 0}) == (5, 100)
    assert of({"kind": "record"}) == (0, 100)
    assert extent(make_recording({})) == (0, 0)


@pytest.mark.parametrize("blank", [False, True])
def test_any_recording_has_an_outcome(blank: bool) -> None:
    recording = make_recording({name: [{}] for name in TABLES}) if blank else read_recording(GOLDEN)

    assert ended(recording).state in RUN_STATES


def test_rows_that_cannot_be_read_are_counted_instead_of_nothing_ran() -> None:
    empty = make_recording({"clusters": CLUSTER, "workers": [WORKER], "computations": []})
    lost = {"tasks": Completeness(rows=0, missing=700), "workers": Completeness(rows=1)}
    damaged = replace(empty, completeness=lost, damage="the stored file runs/1/tasks.parquet is missing")
    text = "700 of 701 rows cannot be read: the stored file runs/1/tasks.parquet is missing. Restore the file from a backup."

    assert ended(empty).headline == "Nothing ran."
    assert ended(damaged) == Outcome("finished", "The rows of this run are missing.", text)
    some = make_recording({"clusters": CLUSTER, "workers": [WORKER], "tasks": [TASK]})
    found = ended(replace(some, completeness=lost, damage=damaged.damage))
    assert (found.headline, found.reason) == ("Finished in 1 min 40 s.", f"{text} {ended(some).reason}")
