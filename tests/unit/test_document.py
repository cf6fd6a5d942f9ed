"""Parts of a report's document that no other test looks at."""

from __future__ import annotations

from typing import Any

import pytest

from daskscope.analysis.summary import extent, summarise
from daskscope.insights.facts import Facts
from daskscope.insights.story import outcome
from daskscope.report import document
from daskscope.report.document import build
from daskscope.report.html import title_of
from daskscope.testing import make_recording

T, S = 1_700_000_000_000_000, 1_000_000


def tables(**more: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return two computations of two tasks each, of which the second takes longer."""
    tasks = [
        {
            "id": number, "key": f"k{number}", "prefix": "add", "worker": "a", "thread": 1, "status": "ok",
            "computation": "short" if number < 2 else "long",
            "start_us": T + start * S, "stop_us": T + stop * S,
        }
        for number, (start, stop) in enumerate([(0, 1), (1, 2), (3, 5), (5, 9)])
    ]  # fmt: skip
    computations = [
        {"computation": "short", "start_us": T, "stop_us": T + 2 * S, "state": "done", "graph_us": 5_000},
        {"computation": "long", "start_us": T + 3 * S, "stop_us": T + 9 * S, "state": "done"},
    ]
    edges = [{"task": 1, "dependency": 0}, {"task": 3, "dependency": 2}]
    clusters = [{"cluster": "c", "recording_us": T, "end_us": T + 10 * S}]
    return {"tasks": tasks, "computations": computations, "edges": edges, "clusters": clusters, **more}


def made(**more: list[dict[str, Any]]) -> Any:
    return build(make_recording(tables(**more)), T, T + 10 * S)[0]


def test_every_computation_has_its_critical_path(monkeypatch: pytest.MonkeyPatch) -> None:
    report = made()
    assert report["critical_path"]["computation"] == "long"
    assert [(path["computation"], path["length_us"]) for path in report["other_paths"]] == [("short", 2 * S)]
    monkeypatch.setattr(document, "MAX_PATH_TASKS", 3)
    assert made()["other_paths"] == []


def test_the_time_to_unpack_a_graph_is_shown() -> None:
    assert [computation["graph_us"] for computation in made()["computations"]] == [5_000, 0]


def test_a_computation_counts_the_tasks_that_failed_themselves() -> None:
    computations = [
        {"computation": name, "start_us": T, "stop_us": T + S, "state": "erred", "erred": 16}
        for name in ("long", "old")
    ]
    failure = {"computation": "long", "group": "add", "time_us": T, "count": 2, "key": "k2"}
    exceptions = [failure, {**failure, "will_retry": 1}, {**failure, "group": "sum", "blamed_key": "k2", "count": 14}]
    groups = [
        {"computation": "long", "group": name, "states": '{"erred": 14}', "start_us": T + i}
        for i, name in enumerate(("add", "sum"))
    ]

    report = made(computations=computations, exceptions=exceptions, groups=groups)
    # Without exceptions, only Dask's counter is known.
    assert [(c["computation"], c["errors"]) for c in report["computations"]] == [("long", 2), ("old", 16)]
    assert [group["errors"] for group in report["groups"]] == [2, 0]


def test_an_error_begins_with_its_cause_like_the_headline() -> None:
    failure = {"time_us": T, "key": "k", "prefix": "add", "type": "RuntimeError", "message": "no amount", "count": 1}
    report = made(exceptions=[{**failure, "cause_type": "ValueError", "cause_message": "bad text"}])
    assert [(error["type"], error["message"]) for error in report["errors"]] == [("ValueError", "bad text")]
    assert made(exceptions=[failure])["errors"][0]["type"] == "RuntimeError"


@pytest.mark.parametrize(("contention", "is_absent"), [(-1.0, True), (0.0, False)])
def test_it_says_when_gilknocker_is_absent(contention: float, is_absent: bool) -> None:
    samples = [
        {"worker": "a", "time_us": T, "gil_contention": contention},
        {"worker": "scheduler", "time_us": T, "gil_contention": -1.0},
    ]
    labels = [fact["label"] for fact in made(samples=samples)["facts"]]
    assert ("GIL contention" in labels) is is_absent
    assert "GIL contention" not in [fact["label"] for fact in made()["facts"]]


@pytest.mark.parametrize(
    ("code", "line", "title"),
    [
        ("import dask\n  x.sum().compute()\n", 1, "etl: x.sum().compute()"),
        ("", 0, "etl"),
        ("x\ny", 9, "etl: x"),
        ("y" * 200, 0, f"etl: {'y' * 79}…"),
    ],
)
def test_a_title_has_the_line_that_took_longest(code: str, line: int, title: str) -> None:
    computations = [
        {"computation": "a", "start_us": T, "stop_us": T + 9, "code": code, "code_line": line},
        {"computation": "b", "start_us": T, "stop_us": T + 5, "code": "other", "code_line": 0},
    ]
    assert title_of("etl", make_recording({"computations": computations})) == title
    assert title_of("etl", make_recording({})) == "etl"


def test_only_computations_inside_the_block_count() -> None:
    computations = [
        {"computation": "a", "start_us": T, "stop_us": T + 9 * S, "code": "earlier()", "state": "erred"},
        {"computation": "b", "start_us": T, "stop_us": T + 15 * S, "code": "begun_before()", "state": "done"},
        {"computation": "c", "start_us": T + 11 * S, "stop_us": T + 12 * S, "code": "inside()", "state": "done"},
    ]
    window = {"window": "w", "kind": "report", "start_us": T + 10 * S, "stop_us": T + 20 * S}
    exceptions = [{"fingerprint": "x", "type": "ValueError", "count": 1, "time_us": T + 5 * S}]
    recording = make_recording({"computations": computations, "windows": [window], "exceptions": exceptions})
    found = summarise(recording)

    assert title_of("etl", recording) == "etl: inside()"
    assert (found.duration_us, found.errors) == (10 * S, ())
    assert [one.code for one in found.computations] == ["begun_before()", "inside()"]
    assert outcome(Facts.of(recording, *extent(recording))).state == "finished"
