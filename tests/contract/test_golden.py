"""A file written by any released version reads the same today.

``tests/data/recordings/v1.daskscope`` was written once and is never written again; ``v1.json`` beside it has its content.
A new wire or schema version adds a pair of files. To write the pair of the version in development (never of a released one)::

    python -c "import runpy; runpy.run_path('tests/contract/test_golden.py')['regenerate']()"
"""

from __future__ import annotations

import json
from array import array
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.samples import write_frames

from daskscope.model.columns import Column
from daskscope.model.recording import Recording
from daskscope.model.tables import SCHEMA_VERSION, TABLES
from daskscope.testing import make_columns
from daskscope.wire.encode import Coded, CodedIntegers, Const, Gap, Ragged, Runs, Via, encode_body, seal
from daskscope.wire.file import read_recording

RECORDINGS = Path(__file__).parent.parent / "data" / "recordings"
T = 1_763_244_000_000_000


@pytest.mark.parametrize("path", sorted(RECORDINGS.glob("v*.daskscope")), ids=lambda path: path.stem)
def test_a_golden_file_reads_as_before(path: Path) -> None:
    expected = json.loads(path.with_suffix(".json").read_text())
    found = plain(read_recording(path))
    for name, columns in found["tables"].items():
        known = expected["tables"].get(name, {})
        # Columns that were added later are empty.
        assert not any(any(columns.pop(column)) for column in columns.keys() - known.keys())
    added = found["tables"].keys() - expected["tables"].keys()
    found["tables"] = {name: columns for name, columns in found["tables"].items() if name not in added}
    found["completeness"] = {name: part for name, part in found["completeness"].items() if name not in added}
    assert found == expected


def plain(recording: Recording) -> dict[str, Any]:
    """Return the content of a recording as JSON values."""
    tables = {name: {column: table[column].tolist() for column in table} for name, table in recording.tables.items()}
    completeness = {name: asdict(part) for name, part in recording.completeness.items()}
    return {"tables": tables, "completeness": completeness, "damage": recording.damage}


def regenerate(version: int = SCHEMA_VERSION) -> None:
    """Write the golden files of a version that is not released yet."""
    path = RECORDINGS / f"v{version}.daskscope"
    write_frames(path, _frames())
    path.with_suffix(".json").write_text(json.dumps(plain(read_recording(path)), indent=1) + "\n")


def _frames() -> list[bytes]:
    batches = [(name, {c.name: _values(c) for c in TABLES[name].columns}, 3) for name in TABLES if name != "tasks"]
    frames = []
    for sequence, (table, columns, kept) in enumerate([*batches, ("tasks", _tasks(), 8), ("tasks", _mixed_keys(), 11)]):
        body = encode_body(table, columns)
        dropped = 2 if table == "samples" else 0
        frames.append(seal(body, cluster="Scheduler-golden", epoch=T, sequence=sequence, kept=kept, dropped=dropped))
    return frames


def _values(column: Column) -> list[Any]:
    values: dict[str, list[Any]] = {
        "time": [T, T + 17, T + 12],
        "int": [0, -1, 2**63 - 1],
        "float": [0.0, -1.5, 0.1],
        "str": ["", f"{column.name} 🦆", 'a "quoted"\nlone \ud800'],
        "time[]": [[T], [], [T + 1, T + 2]],
        "int[]": [[1], [], [-(2**63), 2**63 - 1]],
        "str[]": [["a"], [], ["b", "ü"]],
    }
    return values[column.kind]


def _tasks() -> dict[str, Any]:
    """Return a frame with three of its eight kept rows, in every compact encoding."""
    return {
        **make_columns("tasks", [{}] * 3),
        "id": range(5, 8),
        "key": [("sum-1", 0, -4), ("sum-1", 0, 2**40), ("mean-2", 1, 1)],
        "group": Coded(array("H", [0, 0, 1]), ["sum-1", "mean-2", "not used"]),
        "prefix": Via("group", ["sum", "mean", ""]),
        "span": Const("span-1"),
        "computation": Runs([0, 2], ["first", "second"]),
        "worker": ["tcp://a:1", "tcp://b:1", "tcp://a:1"],
        "thread": CodedIntegers(array("H", [1, 0, 1]), [140_735_340_871_680, 0]),
        "stop_us": array("q", [T + 1_000_000, T + 1_000_500, T + 999_000]),
        "start_us": Gap("stop_us", -1, array("q", [250_000, 3, 0])),
        "assigned_us": Gap("start_us", -1, array("q", [10, 20, 30])),
        "queued_us": Gap("assigned_us", -1, array("q", [0, 0, 5])),
        "nbytes": [28, 10**12, 28],
        "status": ["ok", "ok", "retried"],
        "interval_action": Ragged([0, 2, 2], Coded(array("H", [0, 1, 0]), ["transfer", "disk-read"])),
        "interval_start_us": Ragged([0, 2, 2], array("q", [T, T + 1, T + 2])),
        "interval_stop_us": Ragged([0, 2, 2], Gap("interval_start_us", 1, array("q", [5, 6, 7]))),
        "interval_source": Ragged([0, 2, 2], ["tcp://b:1", "", "tcp://b:1"]),
    }


def _mixed_keys() -> dict[str, Any]:
    keys: list[Any] = ["inc-0123456789abcdef0123456789abcdef", ("sum-1", "part", 3), ("it's", 7)]
    return {**make_columns("tasks", [{"stop_us": T}] * 3), "key": keys, "group": ["inc", "sum-1", "it's"]}
