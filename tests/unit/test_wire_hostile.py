"""Hostile frames raise one error, quickly and with little memory."""

from __future__ import annotations

import json
import tracemalloc
import zlib
from array import array
from collections.abc import Callable
from typing import Any

import pytest
from tests.helpers.dissect import Dissected, body_of, dissect, frame_of, with_checksum

from daskscope.errors import NewerFormat, WireError
from daskscope.testing import make_columns
from daskscope.wire.decode import Incomplete, read_frame
from daskscope.wire.encode import Coded, Gap, Ragged, Runs, Via, encode_body, seal
from daskscope.wire.layout import MAGIC, MAX_ITEMS, MAX_RAW, MAX_ROWS, MAX_VALUES, PREFIX

MIB = 1024 * 1024
HASH = "0123456789abcdef" * 2
ROWS = 3


def tasks_frame() -> bytes:
    columns = {
        **make_columns("tasks", [{}] * ROWS),
        "key": [("a-1", 1), f"b-2-{HASH}", "text"],
        "group": Coded(array("H", [0, 1, 1]), ["a-1", "b-2"]),
        "prefix": Via("group", ["a", "b"]),
        "worker": ["u", "v", "u"],
        "computation": Runs([0, 2], ["x", "y"]),
        "stop_us": [10, 20, 30],
        "start_us": Gap("stop_us", -1, array("q", [1, 2, 3])),
        "interval_action": Ragged([0, 2], ["transfer", "disk-read"]),
        "interval_start_us": Ragged([0, 2], array("q", [1, 2])),
    }
    return seal(encode_body("tasks", columns), cluster="c", epoch=1, sequence=0, kept=ROWS, dropped=0)


def changed(**specs: Any) -> bytes:
    """Return the frame with the directory entries of some columns replaced."""
    parts = dissect(tasks_frame())
    parts.directory = [[name, *specs[name]] if name in specs else [name, *spec] for name, *spec in parts.directory]
    return parts.frame()


def with_header(**fields: Any) -> bytes:
    parts = dissect(tasks_frame())
    parts.header.update(fields)
    return parts.frame()


def decoding_error(frame: bytes) -> str:
    # A reader that skips the keys may accept the frame, but must raise no other error. A check raises the same.
    skipped = checked = ""
    try:
        read_frame(frame).without_keys()
    except WireError as error:
        skipped = str(error)
    try:
        read_frame(frame).check()
    except WireError as error:
        checked = str(error)
    assert checked == skipped
    with pytest.raises(WireError) as caught:
        read_frame(frame).table()
    return str(caught.value)


def peak_memory(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_untouched_frame_is_valid() -> None:
    assert read_frame(dissect(tasks_frame()).frame()).table().rows == ROWS


@pytest.mark.parametrize("size", range(16))
def test_a_prefix_that_is_cut_off(size: int) -> None:
    with pytest.raises(Incomplete, match=f"{size} bytes left, a frame's prefix has 16"):
        read_frame(tasks_frame()[:size])


def test_claimed_sizes_beyond_the_bounds() -> None:
    assert "more than allowed" in decoding_error(PREFIX.pack(MAGIC, 2**32 - 1, 2**32 - 1, 0))
    assert "more than allowed" in decoding_error(PREFIX.pack(MAGIC, 10, 2**32 - 1, 0))


def test_a_flipped_bit() -> None:
    frame = bytearray(tasks_frame())
    frame[-1] ^= 1

    assert decoding_error(bytes(frame)) == "a frame's checksum does not match: its bytes were damaged"


def test_bytes_that_are_not_a_frame() -> None:
    assert decoding_error(b"x" * 16) == "not a frame: it does not start with the frame marker"


def test_a_newer_wire_format() -> None:
    with pytest.raises(
        NewerFormat, match=r"wire format 2 is newer than this daskscope reads \(\d+\); upgrade daskscope"
    ):
        read_frame(b"DSB\x02" + tasks_frame()[4:])


def test_a_newer_schema() -> None:
    with pytest.raises(NewerFormat, match=r"schema 99 is newer than this daskscope reads \(\d+\); upgrade daskscope"):
        read_frame(with_header(schema=99))


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"table": "nonsense"}, "a frame is for a table 'nonsense' that does not exist"),
        ({"table": ["tasks"]}, "a frame's header has a list as table"),
        ({"cluster": "c" * 201}, f"a frame's header has {'c' * 40!r} as cluster"),
        ({"rows": 0}, "a frame claims 0 rows and"),
        ({"rows": MAX_ROWS + 1}, f"a frame claims {MAX_ROWS + 1} rows and"),
        ({"rows": True}, "a frame's header has a bool as rows"),
        ({"rows": 3.0}, "a frame's header has a float as rows"),
        ({"rows": 2**63}, "a frame's header has a int as rows"),
        ({"sequence": -1}, "a frame's header has impossible counters"),
        ({"kept": 2}, "a frame's header has impossible counters"),
        ({"dropped": -1}, "a frame's header has impossible counters"),
    ],
)
def test_headers_that_make_no_sense(fields: dict[str, Any], complaint: str) -> None:
    assert decoding_error(with_header(**fields)).startswith(complaint)


@pytest.mark.parametrize("header", [b"[]", b"{}", b"null", b'{"table":"tasks"}'])
def test_headers_without_fields(header: bytes) -> None:
    assert decoding_error(frame_of(header, b"")) == "a frame's header lacks fields"


@pytest.mark.parametrize("header", [b"", b"{", b"\xff\xfe{}", b"[" * 60_000, b'{"rows":' + b"9" * 5_000 + b"}", b"NaN"])
def test_headers_that_are_not_json(header: bytes) -> None:
    assert decoding_error(frame_of(header, b"")).startswith("malformed JSON in a frame")


@pytest.mark.parametrize("depth", [100, 400, 900, 30_000])
def test_json_nested_deeply_in_every_place(depth: int) -> None:
    nested = b"[" * depth + b"]" * depth
    header = json.dumps(dissect(tasks_frame()).header).encode()

    decoding_error(frame_of(header.replace(b'"tasks"', nested), b""))
    for directory in (
        nested,
        b'[["key",' + nested + b"]]",
        b'[["nbytes","int",' + nested + b"]]",
        b"[[" + nested + b"]]",
    ):
        parts = dissect(tasks_frame())
        parts.directory = directory
        decoding_error(parts.frame())


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"", "a frame's body is too short"),
        (b"\xff\xff\xff\xff", "a frame's compressed part is longer than its body"),
        (b"\x02\x00\x00\x00xx", "a frame's body cannot be decompressed"),
        (body_of(b"") + b"x" * 5_000, "a frame holds more bytes than its header claims"),
        (body_of(b"x"), "a frame's body does not have the"),
    ],
)
def test_bodies_that_are_not_what_the_header_claims(body: bytes, complaint: str) -> None:
    assert decoding_error(frame_of(dissect(tasks_frame()).header, body)).startswith(complaint)


def test_compressed_data_after_the_end_of_the_stream() -> None:
    raw = b"x" * 100
    packed = zlib.compress(raw) + b"more"
    header = {**dissect(tasks_frame()).header, "raw": len(raw)}

    assert "does not have the 100 bytes" in decoding_error(frame_of(header, len(packed).to_bytes(4, "little") + packed))


def test_a_zip_bomb_is_inflated_only_to_the_claimed_size() -> None:
    packed = zlib.compress(bytes(300 * MIB), 9)
    header = {**dissect(tasks_frame()).header, "raw": 1_000}
    frame = frame_of(header, len(packed).to_bytes(4, "little") + packed)

    assert peak_memory(lambda: decoding_error(frame)) < 4 * MIB


def test_a_zip_bomb_that_claims_its_size_is_refused_unopened() -> None:
    assert decoding_error(frame_of({**dissect(tasks_frame()).header, "raw": MAX_RAW + 1}, b"")).startswith(
        "a frame claims 3"
    )


@pytest.mark.parametrize(
    ("specs", "complaint"),
    [
        ({"nbytes": ["const", 2**63]}, "a constant integer is out of range"),
        ({"nbytes": ["const", "x"]}, "a constant integer is out of range"),
        ({"nbytes": ["const", True]}, "a constant integer is out of range"),
        ({"nbytes": ["const"]}, "the column directory of a tasks batch is malformed (IndexError)"),
        ({"nbytes": []}, "the column directory of a tasks batch is malformed (IndexError)"),
        ({"nbytes": ["wat"]}, "a column is encoded as 'wat', which does not fit it"),
        ({"nbytes": ["float", 1]}, "a column is encoded as 'float', which does not fit it"),
        ({"nbytes": [["list"]]}, "a column is encoded as a list, which does not fit it"),
        ({"nbytes": ["int", 256]}, "byte-plane mask 256 is out of range"),
        ({"nbytes": ["int", -1]}, "byte-plane mask -1 is out of range"),
        ({"nbytes": ["int", True]}, "byte-plane mask a bool is out of range"),
        ({"nbytes": ["delta", 1.5, 0, 0]}, "a delta-coded column does not begin with an integer"),
        ({"nbytes": ["delta", "7", 0, 0]}, "a delta-coded column does not begin with an integer"),
        ({"nbytes": ["gap", "nbytes", 1, 0]}, "the column directory of a tasks batch is malformed (KeyError)"),
        ({"nbytes": ["gap", "nothing", 1, 0]}, "the column directory of a tasks batch is malformed (KeyError)"),
        ({"nbytes": ["gap", [], 1, 0]}, "the column directory of a tasks batch is malformed (TypeError)"),
        ({"nbytes": ["gap", "id", 1.0, 0]}, "a gap-coded column has a float as its sign"),
        ({"nbytes": ["gap", "id", 2, 0]}, "a gap-coded column has 2 as its sign"),
        ({"nbytes": ["gap", "group", 1, 0]}, "a gap-coded column refers to a column it cannot be based on"),
        ({"nbytes": ["codes", 0, 0, 0]}, "a column of coded integers is malformed"),
        ({"nbytes": ["codes", MAX_VALUES + 1, 0, 0]}, "a column of coded integers is malformed"),
        ({"type": ["const", 5]}, "a constant string is not a string"),
        ({"type": ["dict", -1, 0]}, "a frame's columns are longer than its body"),
        ({"type": ["dict", 10**9, 0]}, "a frame's columns are longer than its body"),
        ({"type": ["dict", 2.0, 0]}, "a frame's columns are longer than its body"),
        ({"type": ["via", "id", 0]}, "malformed JSON in a frame"),
        ({"type": ["int", 0]}, "a column is encoded as 'int', which does not fit it"),
        ({"interval_source": ["const", []]}, "the column directory of a tasks batch is malformed (ValueError)"),
        ({"interval_source": ["list", ["const", 0], -1, []]}, "a list column is malformed"),
        ({"interval_source": ["list", ["const", 0], MAX_VALUES + 1, []]}, "a list column is malformed"),
        ({"interval_source": ["list", ["const", -1], 0, []]}, "a list column has impossible lengths"),
        ({"interval_source": ["list", ["const", 2**62], 5, []]}, "a list column has impossible lengths"),
        ({"interval_source": ["list", ["const", 2], 5, []]}, "a list column's lengths do not add up"),
        (
            {"interval_source": ["list", ["gap", "id", 1, 0], 0, []]},
            "the column directory of a tasks batch is malformed",
        ),
        ({"key": ["keys", 0, []]}, "a key column has no parts"),
        ({"key": ["keys", 2, [[0, 1], [1, 1]]]}, "a key column's shapes do not match its rows"),
        ({"key": ["keys", 0, [[1, 16]]]}, "a key column's hashes do not match its rows"),
        ({"key": ["keys", 0, [[16]]]}, "a key column has an unknown shape"),
        ({"key": ["keys", 0, [[25, 0, 0, 0, 0, 0, 0, 0, 0, 0]]]}, "a key column has an unknown shape"),
        ({"key": ["keys", 0, [[18, 0]]]}, "a key column has an unknown shape"),
        ({"key": ["keys", 0, [["0", 0]]]}, "a key column has an unknown shape"),
    ],
)
def test_column_directories_that_make_no_sense(specs: dict[str, list[Any]], complaint: str) -> None:
    assert decoding_error(changed(**specs)).startswith(complaint)


def one_column(
    name: str, spec: list[Any], packed: bytes, plain: bytes = b"", rows: int = ROWS, group: str = "g"
) -> bytes:
    header = {**dissect(tasks_frame()).header, "rows": rows, "kept": rows}
    return Dissected(header, [["group", "const", group], [name, *spec]], packed, plain).frame()


@pytest.mark.parametrize(
    ("spec", "packed", "complaint"),
    [
        (["dict", 6, 1], b'["a",1\x00\x00\x00', "malformed JSON in a frame"),
        (["dict", 5, 1], b'{"a":1}'[:5] + bytes(3), "malformed JSON in a frame"),
        (["dict", 3, 1], b"[1]" + bytes(3), "a string dictionary is malformed"),
        (["dict", 5, 1], b'["a"]' + b"\x00\x01\x00", "a string column has codes without a value"),
        (["dict", 5, 128], b'["a"]' + b"\x00\xff\x00", "a string column has codes without a value"),
        (["via", "group", 9], b'["a","b"]', "a column refers to a column it cannot be derived from"),
        (["runs", [0], 9], b'["a","b"]', "a column's runs are malformed"),
        (["runs", [], 2], b"[]", "a column's runs are malformed"),
        (["runs", [1], 5], b'["a"]', "a column's runs are malformed"),
        (["runs", [0, 0], 9], b'["a","b"]', "a column's runs are out of order"),
        (["runs", [0, 3], 9], b'["a","b"]', "a column's runs are out of order"),
        (["runs", [0, 1.5], 9], b'["a","b"]', "a column's runs are out of order"),
        (["keys", 0, [[0, 5]]], b'["a"]', "a key column lacks keys"),
        (["keys", 3, [[0, 9], [0, 5]]], bytes(3) + b'["a","b"]["c"]', "a key column has rows without a shape"),
        (["keys", 3, [[0, 9], [1, 16]]], bytes(3) + b'["a","b"]', "a key column has rows without a shape"),
        (["keys", 3, [["0", 9], [1, 16]]], bytes(3) + b'["a","b"]', "a key column has rows without a shape"),
        (["const", "x"], b"left over", "a frame's body has bytes that belong to no column"),
    ],
)
def test_string_columns_that_make_no_sense(spec: list[Any], packed: bytes, complaint: str) -> None:
    assert decoding_error(one_column("type", spec, packed)).startswith(complaint)


def test_missing_key_hashes() -> None:
    frame = one_column("key", ["keys", 0, [[1, 48]]], b"", plain=bytes(47))

    assert decoding_error(frame) == "a frame's plain columns are longer than its body"


def test_a_constant_that_is_not_a_number() -> None:
    parts = dissect(tasks_frame())
    parts.header["table"] = "metrics"
    parts.directory = [["value", "const", "x"]]

    assert decoding_error(parts.frame()) == "a constant float is not a number"


def test_a_directory_that_is_too_large() -> None:
    parts = dissect(tasks_frame())
    parts.directory = b" " * (1024 * 1024 + 1)

    assert decoding_error(parts.frame()) == "a column directory of 1048577 bytes is more than allowed"


def test_keys_without_their_groups() -> None:
    parts = dissect(tasks_frame())
    parts.directory = [["key", "keys", 0, [[17, 0]]]]

    assert decoding_error(parts.frame()).startswith("the column directory of a tasks batch is malformed (KeyError)")


def test_a_repeated_column_is_decoded_once() -> None:
    parts = dissect(tasks_frame())
    parts.directory = [["id", "const", 1]] * 10_000

    assert decoding_error(parts.frame()) == "a frame holds column 'id' twice"


def test_a_dictionary_of_many_small_objects_is_refused_before_it_is_parsed() -> None:
    bomb = b"[" + b"[]," * MAX_ITEMS + b"[]]"
    frame = one_column("type", ["dict", len(bomb), 0], bomb)

    assert decoding_error(frame) == "a frame's string dictionaries hold more values than allowed"
    assert peak_memory(lambda: decoding_error(frame)) < 4 * len(bomb)


def test_a_long_name_times_many_rows_is_refused_before_it_is_expanded() -> None:
    frame = one_column("key", ["keys", 0, [[17, 0]]], b"", rows=MAX_ROWS, group="x" * 60_000)

    assert peak_memory(lambda: decoding_error(frame)) < 64 * MIB


def test_a_name_that_is_too_long_is_refused() -> None:
    frame = one_column("key", ["keys", 0, [[17, 0]]], b"", group="x" * 70_000)

    assert decoding_error(frame) == "a key column is put together from a name longer than allowed"


def test_the_memory_that_constants_can_claim_is_limited() -> None:
    parts = dissect(tasks_frame())
    parts.header.update(rows=MAX_ROWS, kept=MAX_ROWS)
    each = MAX_VALUES // MAX_ROWS
    lists = ["list", ["const", each], MAX_VALUES]
    parts.directory = [
        ["interval_start_us", *lists, ["const", 1]],
        ["interval_stop_us", *lists, ["const", 1]],
        ["interval_action", *lists, ["const", "a"]],
        ["interval_source", *lists, ["const", "b"]],
    ]
    parts.packed = parts.plain = b""

    assert peak_memory(lambda: read_frame(parts.frame()).table()) < 300 * MIB


def test_a_cut_frame_with_a_corrected_checksum() -> None:
    frame = tasks_frame()
    for size in range(PREFIX.size, len(frame), 7):
        header_size = PREFIX.unpack_from(frame)[1]
        body_size = max(0, size - PREFIX.size - header_size)
        cut = PREFIX.pack(MAGIC, min(header_size, size - PREFIX.size), body_size, 0) + frame[PREFIX.size : size]
        decoding_error(with_checksum(cut))
