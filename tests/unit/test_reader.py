"""A report is read back into a recording, which reports the rows that are missing."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskscope.analysis.summary import is_complete, statement, summarise
from daskscope.analysis.time.critical_path import critical_path
from daskscope.cli.main import main
from daskscope.client.record import open_recording
from daskscope.errors import NewerFormat, RecordingError
from daskscope.model.recording import Completeness, Recording
from daskscope.report import read_report as reader_module
from daskscope.report import stream as stream_module
from daskscope.report.document import report_page
from daskscope.report.html import END_TAG, REPORT_TAG
from daskscope.report.read_page import BLOCK, MAX_JSON, find_page
from daskscope.report.read_report import read_report
from daskscope.testing import make_recording

GOLDEN = Path(__file__).parents[1] / "data" / "recordings" / "v1.daskscope"
T = 1_700_000_000_000_000
WORKERS = ["tcp://a:1", "tcp://b:1"]


def task(number: int, **more: Any) -> dict[str, Any]:
    start = T + 10_000 + 7_001 * number
    return {
        "id": 100 + number,
        "key": f"('sum-1f3a', {number}, {number % 3})",
        "group": "sum-1f3a",
        "prefix": "sum",
        "computation": "c1",
        "span": "s1",
        "worker": WORKERS[number % 2],
        "thread": 4 + number % 4 // 2,
        "queued_us": start - 3_000,
        "assigned_us": start - 1_000,
        "start_us": start,
        "stop_us": start + 1_234_567 * (number + 1),
        "nbytes": 1_000_003 * number,
        "type": "float",
        "status": "ok",
        **more,
    }


def tables() -> dict[str, list[dict[str, Any]]]:
    moved = {
        "interval_action": ["transfer", "disk-read"],
        "interval_start_us": [T + 1_000, T + 5_000],
        "interval_stop_us": [T + 4_000, T + 5_100],
        "interval_source": [WORKERS[1], ""],
    }
    stack = ["a.py\tf, g\t1", "b.py\th\t22"]
    profile = {"start_us": T + 1, "stop_us": T + 2, "worker": WORKERS[0], "prefix": "sum", "span": "s1", "count": 3}
    return {
        "clusters": [{"cluster": "c", "name": "mine", "recording_us": T, "end_us": T + 20_000_000, "seen_us": T}],
        "workers": [
            {"worker": w, "server_id": w, "nthreads": 2, "start_us": T, "processing": ["('x', 1)", "('y', 2, 3)"]}
            for w in WORKERS
        ],
        "computations": [{"computation": "c1", "start_us": T, "stop_us": T + 9, "state": "done", "tasks": 9}],
        "groups": [
            {"group": "sum-1f3a", "computation": "c1", "span": "s1", "prefix": "sum", "dependencies": ["a", "b"]}
        ],
        "spans": [{"span": "s1", "tags": ["outer", "inner"]}],
        "tasks": [
            *(task(number) for number in range(9)),
            task(9, key="inc-5", prefix="inc", group="inc", span="", **moved),
            task(10, status="error", prefix="inc", key="inc-5", group="inc", computation="", span="", assigned_us=0),
        ],
        "edges": [{"task": 102, "dependency": 100}, {"task": 109, "dependency": 102}, {"task": 109, "dependency": 5}],
        "samples": [{"time_us": T + 5, "worker": WORKERS[0], "memory": 10**9, "cpu_percent": float("nan")}],
        "profiles": [
            {**profile, "kind": "compute", "stack": stack},
            {**profile, "kind": "compute", "stack": stack[:1], "count": 2},
            {**profile, "kind": "scheduler", "stack": ["c.py\tloop\t9"]},
        ],
        "exceptions": [{"time_us": T + 9, "key": "inc-5", "type": "ValueError", "message": "no", "count": 1}],
    }


def page(recording: Recording, path: Path) -> Path:
    path.write_bytes(report_page(recording, title="test"))
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return page(make_recording(tables()), tmp_path / "report.html")


def column(recording: Recording, table: str, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(recording[table][name].tolist() for name in names), strict=True))


def test_every_execution_is_read(path: Path) -> None:
    before, after = make_recording(tables()), read_report(path)
    exact = ("key", "prefix", "group", "span", "computation", "worker", "thread", "type", "status", "interval_action")
    assert sorted(column(after, "tasks", *exact), key=str) == sorted(column(before, "tasks", *exact), key=str)
    # Numbered in the order in which they stopped.
    assert after["tasks"]["id"].tolist() == list(range(11))
    assert (np.diff(after["tasks"]["stop_us"]) >= 0).all()


def test_times_and_sizes_have_three_digits(path: Path) -> None:
    before, after = make_recording(tables())["tasks"], read_report(path)["tasks"]
    tick = 5
    assert [abs(a - b) <= tick for a, b in zip(after["start_us"], before["start_us"], strict=True)] == [True] * 11
    for name, length in (("stop_us", "start_us"), ("nbytes", "id")):
        exact = before[name] - (before[length] if name == "stop_us" else 0)
        found = after[name] - (after[length] if name == "stop_us" else 0)
        assert (np.abs(found - exact) <= exact / 511).all()
    waits = after["start_us"][:10] - after["assigned_us"][:10], after["assigned_us"][:10] - after["queued_us"][:10]
    assert [bool((np.abs(found - us) <= tick).all()) for found, us in zip(waits, (1_000, 2_000), strict=True)] == [
        True
    ] * 2
    assert (after["assigned_us"][10], after["queued_us"][10]) == (0, 0)
    ((start, stop), *others) = zip(after["interval_start_us"][9], after["interval_stop_us"][9], strict=True)
    assert (abs(start - T - 1_000) <= tick, abs(stop - start - 3_000) <= 6, len(others)) == (True, True, 1)


def test_dependencies_use_the_new_ids(path: Path) -> None:
    after = read_report(path)
    assert column(after, "edges", "task", "dependency") == [(2, 0), (9, 2)]
    assert [step.key for step in critical_path(after).steps][-1] == "inc-5"
    # One of three refers to a task outside the recording.
    assert after.completeness["edges"] == Completeness(2, missing=1)


def test_all_stacks_are_read_with_any_function_name(path: Path) -> None:
    assert sorted(column(read_report(path), "profiles", "kind", "worker", "prefix", "span", "stack", "count")) == [
        ("compute", WORKERS[0], "sum", "s1", ["a.py\tf, g\t1"], 2),
        ("compute", WORKERS[0], "sum", "s1", ["a.py\tf, g\t1", "b.py\th\t22"], 3),
        ("scheduler", WORKERS[0], "sum", "s1", ["c.py\tloop\t9"], 3),
    ]


def test_other_tables_are_read_unchanged(path: Path) -> None:
    before, after = make_recording(tables()), read_report(path)
    for name in ("clusters", "workers", "computations", "groups", "spans", "exceptions"):
        assert {c: after[name][c].tolist() for c in after[name]} == {c: before[name][c].tolist() for c in before[name]}
    assert np.isnan(after["samples"]["cpu_percent"]).tolist() == [True]


def test_sums_agree(path: Path) -> None:
    before, after = summarise(make_recording(tables())), summarise(read_report(path))
    assert [(p.prefix, p.count, p.errors) for p in after.prefixes] == [
        (p.prefix, p.count, p.errors) for p in before.prefixes
    ]
    assert all(
        abs(a.total_us - b.total_us) <= b.total_us / 511 for a, b in zip(after.prefixes, before.prefixes, strict=True)
    )
    assert [(w.worker, w.tasks) for w in after.workers] == [(w.worker, w.tasks) for w in before.workers]
    assert (after.start_us, after.end_us, after.errors) == (before.start_us, before.end_us, before.errors)


@pytest.mark.parametrize("to", ["perfetto", "speedscope", "collapsed", "csv", "json"])
def test_a_read_report_can_be_exported(to: str, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(path), "--to", to, "--output", str(tmp_path / "out")]) == 0
    written = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert all(one.stat().st_size for one in written)
    if to == "perfetto":
        events = json.loads(written[0].read_text())["traceEvents"]
        assert sum(event.get("cat") == "compute" for event in events) == 11
    if to == "speedscope":
        profiles = json.loads(written[0].read_text())["profiles"]
        assert [profile["name"] for profile in profiles] == ["compute", "scheduler"]
    if to == "collapsed":
        assert written[0].read_text().splitlines() == ["f, g (a.py:1) 2", "f, g (a.py:1);h (b.py:22) 3"]


def test_a_read_report_can_be_exported_to_parquet(path: Path, tmp_path: Path) -> None:
    assert main(["export", str(path), "--to", "parquet", "--output", str(tmp_path / "out")]) == 0
    tasks = pd.read_parquet(tmp_path / "out" / "tasks.parquet")
    assert (len(tasks), sorted(set(tasks["worker"]))) == (11, WORKERS)


def test_a_report_is_not_exported_to_html(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = path.read_bytes()
    assert main(["export", str(path), "--to", "html", "--output", str(path)]) == 1
    assert "is a report already: copy it." in capsys.readouterr().err
    assert path.read_bytes() == before


def test_show_says_that_it_was_read_from_a_report(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.endswith(
        "Incomplete, 24 rows read: read from a report, which rounds durations to three digits; "
        "1 of 3 rows of edges not in the file.\n"
    )


def test_rows_missing_from_the_page_are_counted(tmp_path: Path) -> None:
    many = {**tables(), "samples": [{"time_us": T + n, "worker": WORKERS[0]} for n in range(2_345)], "edges": []}
    after = open_recording(page(make_recording(many), tmp_path / "report.html"))
    assert (after["samples"].rows, after.completeness["samples"]) == (2_000, Completeness(2_000, missing=345))
    assert "345 of 2,345 rows of samples not in the file" in statement(after)


def test_tasks_missing_from_the_stream_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "MAX_TASKS", 6)
    after = read_report(page(make_recording(tables()), tmp_path / "report.html"))
    assert after.completeness["tasks"] == Completeness(6, missing=5)
    assert not is_complete(after)


def test_gaps_of_the_recording_are_kept(tmp_path: Path) -> None:
    lossy = make_recording(tables(), completeness={"samples": Completeness(1, 41, 0), "logs": Completeness(0, 7, 0)})
    after = read_report(page(lossy, tmp_path / "report.html"))
    assert after.completeness["samples"] == Completeness(1, missing=41)
    assert "the report says: Incomplete, 25 rows read: 41 of 42 rows of samples dropped inside" in statement(after)
    assert "7 of 7 rows of logs dropped inside the cluster" in statement(after)


def test_every_table_can_be_read_from_a_report(tmp_path: Path) -> None:
    before = open_recording(GOLDEN)
    after = read_report(page(before, tmp_path / "golden.html"))
    assert after["tasks"].rows + after.completeness["tasks"].missing >= before["tasks"].rows
    summarise(after)


def test_an_empty_report_is_an_empty_recording(tmp_path: Path) -> None:
    after = read_report(page(make_recording({}), tmp_path / "empty.html"))
    assert (dict(after.tables), dict(after.completeness)) == ({}, {})


KEYS = st.text(alphabet="ab-019 (),'%\"\\\n\0é", max_size=9)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(KEYS, st.integers(0, 3), st.integers(0, 10**9), st.integers(0, 10**8)), max_size=12))
def test_any_tasks_are_read(tmp_path_factory: pytest.TempPathFactory, tasks: list[tuple[str, int, int, int]]) -> None:
    rows = [
        {
            **task(0),
            "id": n,
            "key": key,
            "prefix": f"p{lane}",
            "thread": lane,
            "start_us": T + at,
            "stop_us": T + at + lasts,
        }
        for n, (key, lane, at, lasts) in enumerate(tasks)
    ]
    recording = make_recording({**tables(), "tasks": rows, "edges": []})
    stop = max((row["stop_us"] for row in rows), default=T)
    whole = {
        **recording.tables,
        "clusters": make_recording({"clusters": [{"recording_us": T, "end_us": stop}]})["clusters"],
    }
    path = tmp_path_factory.mktemp("page") / "report.html"
    after = read_report(page(replace(recording, tables=whole), path))
    names = ("key", "prefix", "thread")
    assert sorted(column(after, "tasks", *names)) == sorted((key, f"p{lane}", lane) for key, lane, _, _ in tasks)


# -- damaged and hostile pages -----------------------------------------------------------------------


def refused(path: Path, data: bytes) -> str:
    """Return the error message for a page; empty if it can be read."""
    path.write_bytes(data)
    try:
        summarise(open_recording(path))
    except RecordingError as error:
        assert str(path) in str(error) and str(error).endswith("."), error
        return str(error)
    return ""


def test_a_truncated_page_is_refused(path: Path) -> None:
    data = path.read_bytes()
    first, last = data.index(REPORT_TAG.encode()), data.rindex(END_TAG.encode())
    cuts = {*range(0, first, first // 20), *range(first, last, (last - first) // 150), first + 1, last - 1, last}
    told = {cut: refused(path, data[:cut]) for cut in cuts}
    assert all(told.values())
    assert refused(path, data[: last + len(END_TAG)]) == ""


def test_a_page_with_a_flipped_byte_is_read_or_refused(path: Path) -> None:
    data = path.read_bytes()
    first = data.index(REPORT_TAG.encode())
    rng = np.random.default_rng(5)
    outcomes = set()
    for at in rng.integers(first, len(data), 400).tolist():
        flipped = data[:at] + bytes([data[at] ^ 1 << int(rng.integers(0, 8))]) + data[at + 1 :]
        outcomes.add(bool(refused(path, flipped)))
    assert outcomes == {True, False}


def changed(data: bytes, change: Callable[[Any], Any]) -> bytes:
    """Return the page with another report."""
    start = data.index(REPORT_TAG.encode()) + len(REPORT_TAG)
    stop = data.index(END_TAG.encode(), start)
    report = find_page(data).report
    result = change(report)
    return data[:start] + packed(json.dumps(report if result is None else result).encode()) + data[stop:]


def packed(text: bytes) -> bytes:
    return b64encode(zlib.compress(text))


def test_a_newer_report_says_to_upgrade(path: Path) -> None:
    path.write_bytes(changed(path.read_bytes(), lambda report: report.update(schema=99)))
    with pytest.raises(NewerFormat, match=r"report format 99, this one reads 2.*pip install --upgrade daskscope"):
        read_report(path)


@pytest.mark.parametrize("schema", [None, "1", -1, True, 1.5, 10**30, []])
def test_an_invalid_version_is_refused(path: Path, schema: Any) -> None:
    assert refused(path, changed(path.read_bytes(), lambda report: report.update(schema=schema)))


NONSENSE: list[Any] = [None, True, -1, 2**80, 1.5, "x", [], {}, [[]], ["x"], {"block": "stream.gap"}, "\0" * 9]


def test_any_value_may_be_invalid(path: Path) -> None:
    data = path.read_bytes()
    report = find_page(data).report
    used = ("stream", "edges", "flame", "tables", "bins", "workers", "prefixes", "computations", "start_us", "complete")
    places = [(name, *rest) for name in used for rest in _places(report[name])]
    rng = np.random.default_rng(6)
    for at in rng.permutation(len(places))[:250].tolist():
        nonsense = NONSENSE[int(rng.integers(0, len(NONSENSE)))]

        def change(report: Any, place: Any = places[at], nonsense: Any = nonsense) -> None:
            for step in place[:-1]:
                report = report[step]
            report[place[-1]] = nonsense

        refused(path, changed(data, change))


def _places(value: Any) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(), *((key, *rest) for key, inner in items for rest in _places(inner))]


@pytest.mark.parametrize(
    "text",
    [b"", b"null", b"[]", b"{}", b"{" * 100_000, b"[" * 5_000_000, b'{"schema":1}', b"\xff\xfe", b"NaN", b"1" * 10_000],
    ids=["nothing", "null", "list", "empty", "nested", "wide", "only a version", "no text", "NaN", "long"],
)
def test_hostile_json_is_refused(path: Path, text: bytes) -> None:
    for data in (packed(text), text):
        assert refused(path, b"<!doctype html>" + REPORT_TAG.encode() + data + END_TAG.encode())


def test_a_zip_bomb_is_refused(path: Path) -> None:
    bomb = packed(b" " * (MAX_JSON + 1))
    assert len(bomb) < 100_000
    assert "too large" in refused(path, b"<!doctype html>" + REPORT_TAG.encode() + bomb + END_TAG.encode())


@cache
def bomb() -> bytes:
    """Return a small block that inflates to 50 MB; compressing it takes 0.1 s."""
    return b64encode(zlib.compress(b"\n" * 50_000_000))


@pytest.mark.parametrize("name", ["stream.gap", "stream.number0", "flame.nodes", "table.workers", "edges.tasks"])
@pytest.mark.parametrize("how", ["bomb", "empty", "no base64", "cut", "twice"])
def test_a_block_that_does_not_match_its_description_is_refused(path: Path, name: str, how: str) -> None:
    data = path.read_bytes()
    found = next(found for found in BLOCK.finditer(data) if found.group(1).decode() == name)
    stop = data.index(END_TAG.encode(), found.end())
    was = data[found.end() : stop]
    block = {
        "bomb": bomb(),
        "empty": b"",
        "no base64": b"*" * 100,
        "cut": b64encode(b64decode(was)[:-3]),
        "twice": b64encode(zlib.compress(zlib.decompress(b64decode(was)) * 2)),
    }[how]
    assert refused(path, data[: found.end()] + block + data[stop:])


def test_sizes_beyond_the_limits_are_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = path.read_bytes()
    monkeypatch.setattr(reader_module, "MAX_TASKS", 10)
    assert refused(path, data)
    monkeypatch.undo()
    monkeypatch.setattr(reader_module, "MAX_FRAMES", 3)
    assert "too large" in refused(path, data)
