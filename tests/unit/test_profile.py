"""``daskscope.profile``: the call tree of a recording in the shape of ``Client.profile``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import daskscope
from daskscope.model.recording import Recording
from daskscope.report.read_page import find_page
from daskscope.testing import make_recording

T = 1_700_000_000_000_000
SECOND = 1_000_000


def row(stack: list[str], count: int, **more: Any) -> dict[str, Any]:
    defaults = {"kind": "compute", "prefix": "inc", "worker": "a", "start_us": T, "stop_us": T + SECOND}
    return {**defaults, "stack": stack, "count": count, **more}


@pytest.fixture
def recording() -> Recording:
    return make_recording(
        {
            "clusters": [{"cluster": "c", "recording_us": T, "end_us": T + 10 * SECOND}],
            "profiles": [
                row(["f.py\tmain\t1", "f.py\twork\t5"], 3),
                row(["f.py\tmain\t1"], 1, worker="b"),
                row(["g.py\tother\t2"], 5, prefix="sum", start_us=T + 8 * SECOND, stop_us=T + 9 * SECOND),
                row(["loop.py\trun\t9"], 7, kind="worker event loop"),
                row(["s.py\trun\t9"], 11, kind="scheduler", worker="scheduler"),
            ],
        }
    )


def names(tree: dict[str, Any]) -> dict[str, int]:
    return {child["description"]["name"]: child["count"] for child in tree["children"].values()}


def test_the_tree_has_dasks_shape(recording: Recording) -> None:
    tree = daskscope.profile(recording)
    assert tree["count"] == 9 and names(tree) == {"main": 4, "other": 5}
    (main,) = [child for child in tree["children"].values() if child["description"]["name"] == "main"]
    assert names(main) == {"work": 3}
    assert main["description"] == {"filename": "f.py", "name": "main", "line_number": 1, "line": ""}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"key": "sum"}, {"other": 5}),
        ({"workers": ["b"]}, {"main": 1}),
        ({"stop": (T + 4 * SECOND) / 1e6}, {"main": 4}),
        ({"start": (T + 4 * SECOND) / 1e6}, {"other": 5}),
        ({"server": True}, {"run": 7}),
        ({"scheduler": True}, {"run": 11}),
        ({"key": "nothing of that name"}, {}),
    ],
)
def test_a_selection(recording: Recording, arguments: dict[str, Any], expected: dict[str, int]) -> None:
    assert names(daskscope.profile(recording, **arguments)) == expected


def test_a_tree_per_worker(recording: Recording) -> None:
    trees = daskscope.profile(recording, merge_workers=False)
    assert {worker: tree["count"] for worker, tree in trees.items()} == {"a": 8, "b": 1, "scheduler": 0}


def test_a_standalone_page(recording: Recording, tmp_path: Path) -> None:
    daskscope.profile(recording, filename=tmp_path / "profile.html")
    assert find_page((tmp_path / "profile.html").read_bytes()).report["view"] == "profile"


def test_server_and_scheduler_exclude_each_other(recording: Recording) -> None:
    with pytest.raises(daskscope.DaskscopeError, match="not both"):
        daskscope.profile(recording, server=True, scheduler=True)


def test_the_notebook_view_of_a_recording(recording: Recording) -> None:
    shown = recording._repr_html_()
    assert "profiles" in shown and "daskscope open" in shown
