"""The answer says how it ended and why; it never claims what is not known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from daskscope.analysis.answer import Answer, answer
from daskscope.analysis.bins import Bins
from daskscope.analysis.breakdown import breakdown
from daskscope.analysis.summary import extent
from daskscope.model.tables import TABLES
from daskscope.testing import make_recording
from daskscope.wire.file import read_recording

GOLDEN = Path(__file__).parent.parent / "data" / "recordings" / "v1.daskscope"
S = 1_000_000
T = 1_700_000_000 * S
CLUSTER = [{"cluster": "c", "recording_us": T, "end_us": T + 100 * S, "end_reason": "closed"}]
WORKER = {"worker": "tcp://a", "name": "w-5", "server_id": "1", "nthreads": 1, "start_us": T, "end_us": T + 100 * S}
TASK = {"worker": "tcp://a", "start_us": T, "stop_us": T + 65 * S, "status": "ok", "prefix": "add"}


def answered(*states: str, **tables: list[dict[str, Any]]) -> Answer:
    computations = [{"computation": str(i), "state": state, "start_us": T} for i, state in enumerate(states)]
    rows = {"clusters": CLUSTER, "workers": [WORKER], "tasks": [TASK], "computations": computations}
    return answer(make_recording({**rows, **tables}))


def test_it_finished() -> None:
    moved = {"interval_action": ["transfer"], "interval_start_us": [T + 70 * S], "interval_stop_us": [T + 89 * S]}

    assert answered("done", tasks=[TASK | moved]) == Answer(
        "finished",
        "Finished in 1 min 40 s.",
        "Threads computed 65 % of the time, moved data 19 % and stood idle 16 %.",
    )


def test_work_that_was_lost_is_part_of_the_reason() -> None:
    failed = {**TASK, "start_us": T + 70 * S, "stop_us": T + 80 * S, "status": "retried"}

    assert answered("done", tasks=[TASK, failed]).reason == (
        "Threads computed 65 % of the time, moved data 0 %, lost 10 % to work that failed or ran again "
        "and stood idle 25 %."
    )


def test_it_failed() -> None:
    errors = [
        {"fingerprint": "a", "type": "OSError", "message": "flaky", "count": 9, "will_retry": 1, "time_us": T},
        {"fingerprint": "b", "type": "ValueError", "message": "no\nsuch  thing", "count": 2, "time_us": T},
        {"fingerprint": "c", "type": "KeyError", "message": "x" * 300, "count": 1, "time_us": T},
    ]

    assert answered("erred", exceptions=errors) == Answer(
        "erred", "Failed after 1 min 40 s.", "ValueError: no such thing, 2 times; 1 other error."
    )
    assert answered("done", "erred", "done", exceptions=errors[1:]).headline == "1 of 3 computations failed."
    assert answered("erred").reason == "What failed was not recorded."
    assert answered("done", exceptions=errors).status == "finished"
    assert answered(exceptions=errors).status == "erred"
    assert answered(exceptions=errors[:1]).status == "finished"
    assert answered("erred", exceptions=errors[2:]).reason == f"KeyError: {'x' * 199}…, 1 time."


def test_it_was_lost() -> None:
    killed = {**WORKER, "verdict": "memory kill", "memory_limit": 100}
    samples = [{"worker": "tcp://a", "time_us": T + 5, "memory": 95}]
    two = [{**killed, "server_id": "2"}, killed]

    assert answered("lost") == Answer("lost", "Lost after 1 min 40 s.", "The cluster ended before its tasks did.")
    assert answered("lost", workers=[killed], samples=samples).reason == "Worker w-5 was killed at 95 % of its memory."
    assert answered("lost", workers=[killed]).reason == "Worker w-5 was killed for its memory."
    assert answered("lost", workers=two).reason == "2 workers were killed for their memory."
    assert answered("lost", workers=[{**WORKER, "verdict": "vanished"}]).reason == "Worker w-5 vanished."
    assert answered("lost", "done").headline == "1 of 2 computations was lost."


def test_it_still_runs_or_was_cancelled() -> None:
    assert (answered("running").status, answered("running").headline) == ("running", "Still running after 1 min 40 s.")
    assert answered("cancelled").headline == "Cancelled after 1 min 40 s."


def test_nothing_ran() -> None:
    assert answer(make_recording({})) == Answer("idle", "Nothing ran.", "No worker joined while this was recorded.")
    assert answered(tasks=[]) == Answer("idle", "Nothing ran.", "No task finished while this was recorded.")


def test_what_ended_before_a_task_had_finished_did_run() -> None:
    given_up = answered("cancelled", tasks=[])
    assert given_up == Answer("finished", "Cancelled after 1 min 40 s.", "None of its tasks had finished.")
    assert answered("lost", tasks=[]).headline == "Lost after 1 min 40 s."


def test_where_no_thread_is_known_nothing_is_claimed() -> None:
    assert answered("done", tasks=[{"status": "ok"}], workers=[]).reason == "How busy its threads were is not known."


def test_a_breakdown_at_hand_is_used() -> None:
    recording = make_recording({"clusters": CLUSTER, "workers": [WORKER], "tasks": [TASK]})

    assert answer(recording, breakdown(recording, Bins(T, 65 * S, 1))).reason == (
        "Threads computed 100 % of the time, moved data 0 % and stood idle 0 %."
    )


def test_the_time_of_the_one_window_it_was_made_for() -> None:
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
def test_any_recording_has_an_answer(blank: bool) -> None:
    recording = make_recording({name: [{}] for name in TABLES}) if blank else read_recording(GOLDEN)

    assert answer(recording).status in ("finished", "erred", "idle", "running", "lost")
