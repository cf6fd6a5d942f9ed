"""Stacks are merged into one tree that counts every sample once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers.cubes import cube_rows

from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.profiles import HotLine, Profile, collapsed, hottest_line, owner, profile, sampled_seconds, tree
from daskscope.model.tables import TABLES
from daskscope.testing import make_recording
from daskscope.wire.file import read_recording

GOLDEN = Path(__file__).parent.parent / "data" / "recordings" / "v1.daskscope"
T = 1_700_000_000_000_000


def stack(frames: str, count: int, start: int = 0, **columns: Any) -> dict[str, Any]:
    row = {"kind": "compute", "worker": "w", "start_us": T + start, "count": count, "ticks": 5, "ticks_expected": 6}
    return {**row, "stack": [f"/{name}.py\t{name}\t{ord(name)}" for name in frames], **columns}


def small() -> Profile:
    recording = make_recording(
        {
            "profiles": [
                stack("ab", 3, prefix="add"),
                stack("abc", 5, prefix="mul", span="s"),
                stack("ab", 2, 10, prefix="add"),
                stack("cb", 4, 10, prefix="add", worker="v"),
                stack("", 9),
                stack("a", 7, kind="scheduler", worker="scheduler"),
                stack("ab", 1, 10, prefix="add", source="dask", worker="u", ticks=0),
            ],
            "tasks": [
                {"prefix": "add", "start_us": T, "stop_us": T + 9, "status": "ok"},
                {"prefix": "mul", "start_us": T + 14, "stop_us": T + 40, "status": "error"},
            ],
        }
    )
    return profile(recording, Bins(T, 10, 2))


def paths(found: Profile) -> list[str]:
    names: list[str] = []
    for node, parent in zip(found.nodes.tolist(), found.parents.tolist(), strict=True):
        names.append((names[parent] if parent >= 0 else "") + found.frames[node][1])
    return names


def test_stacks_share_a_tree() -> None:
    found = small()

    assert sorted(paths(found)) == ["a", "ab", "abc", "c", "cb"]
    assert (found.parents < np.arange(len(found.parents))).all()
    assert sorted(found.frames) == [("/a.py", "a", 97), ("/b.py", "b", 98), ("/c.py", "c", 99)]
    assert (found.got, found.expected) == (5 * 4, 6 * 4)
    # add ran 9 µs and has 10 samples; of mul, 6 µs are inside the bins, and it has 5 samples.
    weights = dict(zip(found.cube.keys["prefix"], found.seconds_per_sample.tolist(), strict=True))
    assert weights["add"] == pytest.approx(9e-6 / 10)
    assert weights["mul"] == pytest.approx(6e-6 / 5)
    cells = {
        (kind, prefix, worker, paths(found)[int(at)], bin_): n
        for kind, prefix, _, worker, at, bin_, n in cube_rows(found.cube)
    }
    assert cells == {
        ("compute", "add", "w", "ab", 0): 3,
        ("compute", "mul", "w", "abc", 0): 5,
        ("compute", "add", "w", "ab", 1): 2,
        ("compute", "add", "v", "cb", 1): 4,
        ("compute", "add", "u", "ab", 1): 1,
        ("scheduler", "", "scheduler", "a", 0): 7,
    }


def counted(found: Profile, **wanted: Any) -> dict[str, tuple[int, int]]:
    own, total = tree(found, **wanted)
    rows = zip(paths(found), zip(own.tolist(), total.tolist(), strict=True), strict=True)
    return {path: counts for path, counts in rows if counts[1]}


def test_a_tree_counts_samples_at_and_below_each_node() -> None:
    found = small()

    assert counted(found) == {"a": (0, 11), "ab": (6, 11), "abc": (5, 5), "c": (0, 4), "cb": (4, 4)}
    assert counted(found, kind="scheduler") == {"a": (7, 7)}
    assert counted(found, prefix="mul") == {"a": (0, 5), "ab": (0, 5), "abc": (5, 5)}
    assert counted(found, span="s") == counted(found, prefix="mul")
    assert counted(found, worker="v") == {"c": (0, 4), "cb": (4, 4)}
    assert counted(found, start_us=T + 10) == {"a": (0, 3), "ab": (3, 3), "c": (0, 4), "cb": (4, 4)}
    assert counted(found, stop_us=T + 10, prefix="add") == {"a": (0, 3), "ab": (3, 3)}
    assert counted(found, worker="unknown") == {}


def test_collapsed_stacks() -> None:
    found = small()
    own, _ = tree(found)

    assert sorted(collapsed(found, own)) == [
        "a (/a.py:97);b (/b.py:98) 6",
        "a (/a.py:97);b (/b.py:98);c (/c.py:99) 5",
        "c (/c.py:99);b (/b.py:98) 4",
    ]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.text("abc", max_size=5), st.integers(0, 9)), max_size=12))
def test_no_sample_is_lost(stacks: list[tuple[str, int]]) -> None:
    recording = make_recording({"profiles": [stack(frames, count) for frames, count in stacks]})
    found = profile(recording, Bins(T, 10, 1))
    own, total = tree(found)
    samples = sum(count for frames, count in stacks if frames)

    assert own.sum() == samples == total[found.parents < 0].sum()
    for node, path in enumerate(paths(found)):
        assert own[node] == sum(count for frames, count in stacks if frames == path)
        assert total[node] == sum(count for frames, count in stacks if frames.startswith(path))


@pytest.mark.parametrize(
    ("file", "whose"),
    [
        ("/home/me/analysis.py", "user"),
        ("/home/me/dask/analysis.py", "user"),
        ("/home/me/lib/tools.py", "user"),
        ("C:\\Users\\me\\work.py", "user"),
        ("/tmp/ipykernel_12/3456.py", "user"),
        ("<ipython-input-3-abc>", "user"),
        ("/env/lib/python3.11/site-packages/pandas/core/frame.py", "lib"),
        ("/usr/lib/python3/dist-packages/numpy/__init__.py", "lib"),
        ("/usr/lib/python3.12/json/decoder.py", "lib"),
        ("C:\\Python312\\Lib\\json\\decoder.py", "lib"),
        ("/env/lib/python3.11/site-packages/distributed/worker.py", "dask"),
        ("/env/lib/python3.11/site-packages/dask/array/core.py", "dask"),
        ("/src/distributed/distributed/worker.py", "dask"),
        ("/usr/lib/python3.12/threading.py", "dask"),
        ("/usr/lib/python3.12/concurrent/futures/thread.py", "dask"),
        ("C:\\Python312\\Lib\\threading.py", "dask"),
        ("<string>", "native"),
        ("<frozen importlib._bootstrap>", "native"),
        ("/usr/lib/libc.so.6", "native"),
        ("", "native"),
    ],
)
def test_the_owner_of_a_file(file: str, whose: str) -> None:
    assert owner(file) == whose


def test_the_hottest_line_is_the_innermost_one_of_the_user() -> None:
    frames = {"a": "/home/me/a.py\tmain\t1", "b": "/home/me/b.py\tload\t2", "x": "/x/site-packages/x.py\tread\t3"}
    stacks = ["abx", "ax", "xx", "ab", "", "abxa"]
    table = make_recording({"profiles": [{"stack": [frames[name] for name in text]} for text in stacks]})["profiles"]
    rows, weights = np.arange(6), np.array([5.0, 4.0, 3.0, 2.0, 8.0, 3.0])
    assert hottest_line(table, rows, weights) == HotLine("/home/me/b.py", "load", "2", 7 / 25)
    # A stack does not end in a line of the one before.
    assert hottest_line(table, rows[1:], weights[1:]) == HotLine("/home/me/a.py", "main", "1", 7 / 20)
    assert hottest_line(table, rows[2:3], weights[2:3]) is None
    assert str(hottest_line(table, rows, weights)) == "b.py, line 2"


def test_any_recording_has_a_profile() -> None:
    for recording in (read_recording(GOLDEN), make_recording({}), make_recording({name: [{}] for name in TABLES})):
        found = profile(recording, Bins(0, 1, 1))
        for kind in (None, "compute"):
            own, _ = tree(found, kind)
            assert len(collapsed(found, own)) <= 2


def test_seconds_are_of_the_tasks_of_a_prefix_however_many_samples_were_missed() -> None:
    """Half of the samples of hold were missed: its native code held the GIL."""
    ran = {"start_us": T, "stop_us": T + 1_000_000, "status": "ok"}
    recording = make_recording(
        {
            "profiles": [stack("s", 100, prefix="spin"), stack("h", 50, prefix="hold")],
            "tasks": [ran | {"prefix": "spin"}, ran | {"prefix": "hold"}],
        }
    )
    found = profile(recording, Bins(T, 1_000_000, 1))

    seconds = sampled_seconds(found)

    assert seconds is not None
    assert dict(zip(paths(found), seconds.tolist(), strict=True)) == {"s": pytest.approx(1.0), "h": pytest.approx(1.0)}


def test_killed_tasks_have_seconds_like_the_others() -> None:
    """They have no measured time. If no other task has one either, there are samples and no seconds."""
    killed = {"prefix": "hang", "start_us": T, "stop_us": T + 9, "status": "killed"}
    ran = {"prefix": "spin", "start_us": T, "stop_us": T + 1_000_000, "status": "ok"}
    samples = [stack("s", 100, prefix="spin"), stack("h", 50, prefix="hang")]
    found = profile(make_recording({"profiles": samples, "tasks": [ran, killed]}), Bins(T, 1_000_000, 1))
    seconds = sampled_seconds(found)
    assert seconds is not None
    assert dict(zip(paths(found), seconds.tolist(), strict=True)) == {"s": pytest.approx(1.0), "h": pytest.approx(0.5)}

    assert sampled_seconds(profile(make_recording({"profiles": samples[1:], "tasks": [killed]}), Bins(T, 9, 1))) is None


def test_calls_of_an_actor_have_their_own_seconds() -> None:
    call = {"worker": "w", "prefix": "Counter", "method": "add", "start_us": T + 9, "stop_us": T + 60, "status": "ok"}
    recording = make_recording(
        {
            "profiles": [stack("i", 1, prefix="Counter"), stack("a", 3, prefix="Counter.add")],
            "tasks": [{"worker": "w", "prefix": "Counter", "start_us": T, "stop_us": T + 9, "status": "ok"}],
            "actor_calls": [call],
        }
    )
    found = profile(recording, Bins(T, 60, 1))
    seconds = sampled_seconds(found)
    assert seconds is not None
    assert dict(zip(paths(found), seconds.tolist(), strict=True)) == {
        "i": pytest.approx(9e-6),
        "a": pytest.approx(51e-6),
    }


def test_a_profile_without_samples_of_tasks_has_no_seconds() -> None:
    assert sampled_seconds(profile(make_recording({}), Bins(T, 1, 1))) is None
