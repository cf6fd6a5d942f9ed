"""Any rows are decoded unchanged, and any bytes are either read or refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.helpers.dissect import dissect, with_checksum

from daskscope.errors import RecordingError
from daskscope.model.tables import TABLES
from daskscope.testing import make_columns, make_frames
from daskscope.wire.decode import read_frame
from daskscope.wire.encode import encode_body, seal

# A busy machine must not fail the test.
settings.register_profile("wire", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("wire")

INT64 = st.integers(-(2**63), 2**63 - 1)
# Any code point, including lone surrogates, which Hypothesis leaves out by default.
TEXT = st.text(st.characters(codec=None, exclude_categories=()) | st.sampled_from("\ud800\udfff\x00\x1b\\\"'"))
HASH = st.binary(min_size=16, max_size=16).map(bytes.hex)
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "time": INT64,
    "int": INT64,
    "float": st.floats(allow_nan=False),
    "str": TEXT,
    "time[]": st.lists(INT64, max_size=3),
    "int[]": st.lists(INT64, max_size=3),
    "str[]": st.lists(TEXT, max_size=3),
}
SCALARS = INT64 | TEXT | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False)


@st.composite
def keys(draw: st.DrawFn) -> tuple[Any, str]:
    group = draw(TEXT)
    key = draw(
        TEXT
        | HASH.map(lambda digits: f"{group}-{digits}")
        | st.lists(INT64, max_size=9).map(lambda items: (group, *items))
        | st.lists(SCALARS, max_size=3).map(tuple)
    )
    return key, group


@st.composite
def batches(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    table = draw(st.sampled_from(list(TABLES)))
    rows = draw(st.integers(1, 5))
    # A few columns at a time, because all twenty would make every example large.
    columns = draw(st.lists(st.sampled_from(TABLES[table].columns), max_size=4, unique=True))
    filled = {c.name: draw(st.lists(KINDS[c.kind], min_size=rows, max_size=rows)) for c in columns}
    return table, {**make_columns(table, [{}] * rows), **filled}


def send(table: str, columns: dict[str, Any]) -> dict[str, list[Any]]:
    body = encode_body(table, columns)
    frame = seal(body, cluster="c", epoch=0, sequence=0, kept=body.rows, dropped=0)
    return {name: values.tolist() for name, values in read_frame(frame).table().items()}


def joined(value: Any) -> Any:
    """Return a text as JSON decodes it: a pair of surrogates becomes the character it stands for."""
    return json.loads(json.dumps(value)) if isinstance(value, (str, list)) else value


@given(batches())
def test_any_rows_come_back_unchanged(batch: tuple[str, dict[str, Any]]) -> None:
    table, columns = batch

    assert send(table, columns) == {name: list(map(joined, values)) for name, values in columns.items()}


@given(st.lists(keys(), min_size=1, max_size=6))
def test_any_keys_come_back_as_python_writes_them(pairs: list[tuple[Any, str]]) -> None:
    columns = make_columns("tasks", [{"key": key, "group": group} for key, group in pairs])

    decoded = send("tasks", columns)["key"]
    # A tuple is written with the decoded name of its group.
    expected = [
        str((joined(k[0]), *k[1:])) if type(k) is tuple and k and k[0] == g else joined(str(k)) for k, g in pairs
    ]
    assert list(map(joined, decoded)) == list(map(joined, expected))


#: Two columns of each table.
FEW = {name: table.names[1::5][:2] for name, table in TABLES.items()}


def complaint(read: Callable[[], object]) -> str:
    try:
        read()
    except RecordingError as error:
        return str(error)
    return ""


def read_or_refuse(data: bytes) -> None:
    # A check finds what a reader finds that skips the keys, with the same words, and so does a reader of a few columns.
    without_keys = complaint(lambda: read_frame(data).without_keys())
    assert complaint(lambda: read_frame(data).check()) == without_keys
    assert bool(complaint(lambda: read_frame(data).only(FEW[read_frame(data).header.table]))) == bool(without_keys)
    try:
        table = read_frame(data).table()
        for name in table:
            assert len(table[name]) == table.rows
    except RecordingError:
        pass


@given(st.binary(max_size=200))
@example(b"")
@example(b"DSB\x01" + bytes(12))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    read_or_refuse(data)


def frames() -> list[bytes]:
    rows = [
        {"key": ("g", 1, 2), "group": "g", "worker": "a", "stop_us": 10, "interval_action": ["transfer"]},
        {"key": "g-" + "0f" * 16, "group": "g", "worker": "b", "stop_us": 12, "interval_start_us": [3, 4]},
        {"key": "free text", "group": "h", "worker": "a", "stop_us": 19, "labels": "{}"},
    ]
    return make_frames({"tasks": rows, "metrics": [{"value": 1.5}, {"name": "x"}], "spans": [{"tags": ["a", "b"]}, {}]})


FRAMES = frames()
FRAME = st.sampled_from(FRAMES)


@given(FRAME, st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=4))
def test_changed_bytes_are_read_or_refused_behind_the_checksum(frame: bytes, changes: list[tuple[int, int]]) -> None:
    data = bytearray(frame)
    for position, value in changes:
        data[4 + position % (len(data) - 4)] = value

    read_or_refuse(with_checksum(bytes(data)))


@given(FRAME, st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=4), st.integers(-3, 3))
def test_changed_columns_are_read_or_refused_behind_the_compression(
    frame: bytes, changes: list[tuple[int, int]], longer: int
) -> None:
    parts = dissect(frame)
    packed = bytearray(parts.packed)
    for position, value in changes:
        packed[position % len(packed)] = value
    parts.packed = bytes(packed) + bytes(longer) if longer >= 0 else bytes(packed[:longer])

    read_or_refuse(parts.frame())


JSON = st.recursive(
    st.none()
    | st.booleans()
    | INT64
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from(["group", "id"]),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=2), children, max_size=2),
    max_leaves=6,
)
ENCODINGS = st.sampled_from(["const", "int", "delta", "gap", "codes", "float", "dict", "via", "runs", "keys", "list"])


@settings(max_examples=300)
@given(FRAME, st.integers(0), ENCODINGS, st.lists(JSON, max_size=4))
def test_any_column_spec_is_read_or_refused(frame: bytes, which: int, encoding: str, rest: list[Any]) -> None:
    parts = dissect(frame)
    entry = parts.directory[which % len(parts.directory)]
    entry[1:] = [encoding, *rest]

    read_or_refuse(parts.frame())


@given(FRAME, st.sampled_from(["table", "schema", "cluster", "epoch", "sequence", "rows", "kept", "dropped"]), JSON)
def test_any_header_is_read_or_refused(frame: bytes, field: str, value: Any) -> None:
    parts = dissect(frame)
    parts.header[field] = value

    read_or_refuse(parts.frame())


@given(JSON)
def test_any_directory_is_read_or_refused(directory: Any) -> None:
    parts = dissect(FRAMES[0])
    parts.directory = directory

    read_or_refuse(parts.frame())
