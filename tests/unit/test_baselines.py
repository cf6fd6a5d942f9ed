"""Stored baselines may contain anything; only measurements are compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.compared_runs import measured_run

from daskscope.analysis.compare.measurements import is_baseline_name, measured_of
from daskscope.client.baselines import LocalBaselines, ServerBaselines
from daskscope.client.server import Server
from daskscope.errors import DaskscopeError, ServerError

RUNS = [measured_run(seed) for seed in range(2)]
GOOD: dict[str, Any] = json.loads(json.dumps(RUNS[0].to_dict()))
TIMES = GOOD["prefixes"]["load"]


@pytest.mark.parametrize(
    "changed",
    [
        {"wall_us": "1"},
        {"wall_us": 1.5},
        {"wall_us": True},
        {"wall_us": 10**30},
        {"peak_memory": None},
        {"memory": [1, "2"]},
        {"memory": 5},
        {"other_cores": float("nan")},
        {"other_cores": "0"},
        {"thread_us": {"cpu": "1"}},
        {"thread_us": [1]},
        {"spans_us": {"train": None}},
        {"prefixes": {"load": {**TIMES, "total_us": []}}},
        {"prefixes": {"load": {**TIMES, "unknown": 1}}},
        {"prefixes": {"load": {}}},
        {"versions": {"dask": 1}},
        {"config": "x"},
        {"code": [1]},
        {"source": None},
    ],
)
def test_a_run_with_an_invalid_value_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a measured run"):
        measured_of({**GOOD, **changed})


def test_names_of_baselines_are_parts_of_paths() -> None:
    good = ("main", "v1.2_x-3", "A" * 100)
    bad = ("", "../x", ".x", "-x", "a/b", "a b", "é", "A" * 101, "x\n")
    assert [name for name in (*good, *bad) if is_baseline_name(name)] == list(good)


def test_local_baselines_are_read_as_they_were_written(tmp_path: Path) -> None:
    local = LocalBaselines(tmp_path)
    assert local.read("main", "test-a") is None
    local.write("main", "test-a", RUNS)
    assert local.read("main", "test-a") == RUNS
    assert [path.name for path in (tmp_path / "main").iterdir()] == ["test-a.json"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"runs": []}', '{"runs": [3]}', '{"runs": [{"format": 99}]}', "\0"])
def test_a_damaged_file_is_named_with_the_next_step(tmp_path: Path, text: str) -> None:
    path = tmp_path / "main" / "test-a.json"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(
        DaskscopeError, match=r"test-a\.json cannot be read .*Keep a new one with --daskscope-save main"
    ):
        LocalBaselines(tmp_path).read("main", "test-a")


def answering(monkeypatch: pytest.MonkeyPatch, *answers: Any) -> ServerBaselines:
    """Return the baselines of a server that gives these answers."""
    left = list(answers)

    def call(*_: Any, **__: Any) -> Any:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(Server, "call", call)
    return ServerBaselines(Server("http://server"))


def test_a_server_that_answers_something_else_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = answering(monkeypatch, {"runs": [{"format": 99}]})
    with pytest.raises(DaskscopeError, match="The baseline main on http://server cannot be read"):
        found.read("main", "test-a")


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ([{"scopes": ["read"]}], "This needs the scope write; yours allows read. For CI, create a token with "),
        ([{"scopes": []}], "This needs the scope read; yours allows nothing. For CI, create a token with "),
        ([ServerError("Sign in first.", 401)], "Sign in first. For CI, create a token with "),
        ([ServerError("The server cannot be reached.")], "The server cannot be reached."),
    ],
)
def test_a_server_that_cannot_be_used_is_known_before_the_benchmarks_run(
    monkeypatch: pytest.MonkeyPatch, answers: list[Any], problem: str
) -> None:
    with pytest.raises(DaskscopeError) as found:
        answering(monkeypatch, *answers).check(saves=True)
    assert problem in str(found.value)


def test_a_usable_server_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, {"scopes": ["read"]}, {"items": []}).check(saves=False)


def test_a_body_that_is_too_large_has_a_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    found = answering(monkeypatch, ServerError("This body has 2 bytes, and the limit is 1.", 413, "too_large"))
    with pytest.raises(DaskscopeError, match=r"the limit is 1\. Record fewer repeats\."):
        found.write("main", "test-a", RUNS)
