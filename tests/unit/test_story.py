"""The story of a run, in sentences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daskscope.analysis.summary import extent
from daskscope.cli.main import main
from daskscope.insights.facts import Facts
from daskscope.insights.story import Story, tell
from daskscope.testing import make_recording
from daskscope.wire.file import Row, frames_of_rows
from daskscope.wire.layout import FILE_MAGIC

S = 1_000_000
BEGIN = 1_700_000_000 * S


def task(number: int, start: float, stop: float, **values: Any) -> Row:
    return {
        "id": number,
        "key": f"work-{number}",
        "prefix": "work",
        "computation": "c",
        "worker": "tcp://w",
        "thread": 1,
        "status": "ok",
        "queued_us": BEGIN,
        "assigned_us": BEGIN + round(start * S),
        "start_us": BEGIN + round(start * S),
        "stop_us": BEGIN + round(stop * S),
        **values,
    }


TABLES: dict[str, list[Row]] = {
    "clusters": [
        {
            "cluster": "c1",
            "start_us": BEGIN,
            "recording_us": BEGIN,
            "end_us": BEGIN + 10 * S,
            "end_reason": "closed",
            "prices": json.dumps({"core_hour": 360.0, "gib_hour": 0.0}),
        }
    ],
    "workers": [
        {
            "worker": "tcp://w",
            "server_id": "s",
            "name": "0",
            "nthreads": 1,
            "start_us": BEGIN,
            "end_us": BEGIN + 10 * S,
            "verdict": "closed",
        }
    ],
    "computations": [{"computation": "c", "state": "done", "start_us": BEGIN, "stop_us": BEGIN + 10 * S, "tasks": 2}],
    "tasks": [task(0, 0, 6), task(1, 6, 9, prefix="sum", key="sum-1")],
    "edges": [{"task": 1, "dependency": 0, "seen_us": BEGIN + 9 * S}],
}


def story(**tables: list[Row]) -> Story:
    recording = make_recording({**TABLES, **tables})
    return tell(Facts.of(recording, *extent(recording)))


def sentences(told: Story) -> dict[str, tuple[str, ...]]:
    return {part.heading: part.sentences for part in told.paragraphs}


def test_a_run_that_finished() -> None:
    told = story()
    found = sentences(told)
    assert told.state == "finished"
    assert found["Outcome"][0] == "Finished in 10.0 s."
    assert found["Outcome"][2:] == (
        "2 executions of 1 computation ran on 1 worker with 1 thread in total.",
        "It cost about $1.00, 10 % of it while threads did not compute.",
    )
    assert found["Time"][0] == "Compute time by task prefix: work 67 %, sum 33 % of 9.00 s."
    assert found["Time"][1] == (
        "The critical path of the longest computation is 2 tasks and 9.00 s: 100 % of it computing."
    )
    assert "Failures" not in found
    assert found["Completeness"] == ("Complete: 6 rows, none dropped or missing.",)


def test_a_run_that_failed() -> None:
    failure: Row = {
        "time_us": BEGIN + 9 * S,
        "fingerprint": "f",
        "type": "ValueError",
        "message": "no",
        "cause_type": "ValueError",
        "cause_message": "no",
        "prefix": "sum",
        "key": "sum-1",
        "count": 1,
    }
    computations: list[Row] = [{**TABLES["computations"][0], "state": "erred"}]
    found = sentences(story(exceptions=[failure], computations=computations))
    assert found["Outcome"][0] == "Failed after 10.0 s: ValueError: no."
    assert found["Failures"] == ("ValueError: no in sum: 1 time, 1 task failed.",)


@pytest.mark.parametrize(
    ("last", "ended"),
    [
        ({"status": "ok"}, "all retries succeeded"),
        ({"status": "error"}, "0 of 1 retried task succeeded"),
        ({"status": "ok", "key": "other"}, "0 of 1 retried task succeeded"),
        ({"status": "ok", "key": ""}, "all retried"),
    ],
)
def test_what_became_of_retries(last: dict[str, Any], ended: str) -> None:
    failure: Row = {"fingerprint": "f", "type": "OSError", "prefix": "work", "key": "work-0", "will_retry": 1}
    first = {"status": "retried", "key": last.get("key", "work-0") and "work-0"}
    tasks = [task(0, 0, 2, **first), task(1, 3, 5, **{"key": "work-0", **last}), task(2, 5, 9, prefix="sum")]
    assert sentences(story(tasks=tasks, exceptions=[failure]))["Failures"] == (f"OSError in work: 1 time, {ended}.",)


def test_a_suggestion_has_a_price_if_the_recording_has_prices() -> None:
    tasks = [task(n, n / 10, n / 10 + 0.1) for n in range(20)] + [task(20, 2, 10, key="long")]
    workers: list[Row] = [{**TABLES["workers"][0], "nthreads": 2}]
    (suggestion, *_) = sentences(story(tasks=tasks, edges=[], workers=workers))["Suggestions"]
    assert suggestion == (
        "One work task took 8.00 s. The median of 21 tasks is 100 ms. This one took 80 % of the run. "
        "Split its input, or partition the data more evenly. "
        "At most 4.00 s (40 % of the run) could be saved. As wall time, that is up to 4.00 s, or about $0.80."
    )


def test_a_recording_without_tasks() -> None:
    recording = make_recording({"clusters": TABLES["clusters"]})
    told = tell(Facts.of(recording, *extent(recording)))
    assert told.state == "finished"
    assert [part.heading for part in told.paragraphs] == ["Outcome", "Completeness"]


def test_the_command_prints_it_as_text_and_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.daskscope"
    path.write_bytes(FILE_MAGIC + b"".join(frames_of_rows(TABLES, cluster="c1", epoch=1)))
    assert main(["explain", str(path)]) == 0
    assert "\nOutcome\n-------\nFinished in 10.0 s.\n" in capsys.readouterr().out
    assert main(["explain", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["story"]
    assert (told["state"], told["paragraphs"][0]["heading"]) == ("finished", "Outcome")
