"""Every table, encoding and shape of key is decoded unchanged."""

from __future__ import annotations

import math
from array import array
from typing import Any

import pytest

from daskscope.model.columns import Column
from daskscope.model.tables import SCHEMA_VERSION, TABLES
from daskscope.testing import make_columns
from daskscope.wire.decode import Header, read_frame
from daskscope.wire.encode import (
    Coded,
    CodedIntegers,
    Const,
    Delta,
    Gap,
    Ragged,
    Runs,
    Via,
    encode_body,
    microseconds,
    seal,
)

LOW, HIGH = -(2**63), 2**63 - 1


def decode(table: str, columns: dict[str, Any]) -> dict[str, list[Any]]:
    body = encode_body(table, columns)
    frame = seal(body, cluster="c", epoch=1, sequence=0, kept=body.rows, dropped=0)
    return {name: values.tolist() for name, values in read_frame(frame).table().items()}


def tasks(rows: int, **columns: Any) -> dict[str, Any]:
    return {**make_columns("tasks", [{}] * rows), **columns}


def edges(**columns: Any) -> dict[str, Any]:
    return {**make_columns("edges", [{}] * 3), **columns}


def sample_values(column: Column) -> list[Any]:
    by_kind: dict[str, list[Any]] = {
        "time": [0, 1_700_000_000_000_000, 1_700_000_000_000_001, LOW, HIGH],
        "int": [0, -1, 2**40, LOW, HIGH],
        "float": [0.0, -0.5, 1e300, math.inf, -math.inf],
        "str": ["", "plain", "ünïcødé 🦆", 'quo"te\\n\n\x00', "\ud800 alone"],
        "time[]": [[], [1, 2], [LOW, HIGH], [], [0]],
        "int[]": [[], [1, 2], [LOW, HIGH], [], [0]],
        "str[]": [[], ["a", ""], ["\udfff", "🦆"], [], ["a"]],
    }
    return by_kind[column.kind]


@pytest.mark.parametrize("table", TABLES)
def test_every_table_survives_extreme_values(table: str) -> None:
    columns = {column.name: sample_values(column) for column in TABLES[table].columns}

    assert decode(table, columns) == columns


@pytest.mark.parametrize("table", TABLES)
def test_every_table_survives_a_single_empty_row(table: str) -> None:
    columns = make_columns(table, [{}])

    assert decode(table, columns) == columns


def test_nan_survives() -> None:
    values = decode("metrics", {**make_columns("metrics", [{}] * 2), "value": [math.nan, 1.0]})["value"]

    assert math.isnan(values[0])
    assert values[1] == 1.0


def test_a_header_describes_its_batch() -> None:
    body = encode_body("edges", edges(seen_us=[30, 10, 20]))
    frame = read_frame(seal(body, cluster="c-1", epoch=5, sequence=9, kept=103, dropped=7))

    assert frame.header == Header("edges", SCHEMA_VERSION, "c-1", 5, 9, 3, 10, 30, 103, 7, body.raw)


def test_constants_fill_every_row() -> None:
    columns = edges(task=Const(HIGH), dependency=Const(LOW))

    assert decode("edges", columns) == {"task": [HIGH] * 3, "dependency": [LOW] * 3, "seen_us": [0] * 3}


@pytest.mark.parametrize("value", [1.5, -0.0, 7, math.inf, math.nan])
def test_constant_floats_fill_every_row(value: float) -> None:
    values = decode("metrics", {**make_columns("metrics", [{}] * 2), "value": Const(value)})["value"]

    assert list(map(repr, values)) == [repr(float(value))] * 2


def test_constant_lists_fill_every_row() -> None:
    columns = {**make_columns("spans", [{}] * 2), "tags": Const(["a", "b"])}

    assert decode("spans", columns)["tags"] == [["a", "b"], ["a", "b"]]


def test_a_constant_time_gives_the_batch_its_range() -> None:
    body = encode_body("edges", edges(seen_us=Const(17)))

    assert (body.t0, body.t1) == (17, 17)


@pytest.mark.parametrize("typecode", ["B", "H", "I", "L", "q"])
def test_coded_strings_may_have_codes_of_any_width(typecode: str) -> None:
    columns = tasks(4, worker=Coded(array(typecode, [2, 0, 1, 2]), ["a", "b", "c"]))

    assert decode("tasks", columns)["worker"] == ["c", "a", "b", "c"]


def test_coded_strings_may_have_more_values_than_there_are_rows() -> None:
    columns = tasks(1, worker=Coded(array("H", [500]), [f"w{i}" for i in range(1_000)]))

    assert decode("tasks", columns)["worker"] == ["w500"]


def test_more_distinct_strings_than_two_bytes_can_count() -> None:
    messages = [f"m{i}" for i in range(70_000)]

    assert decode("logs", {**make_columns("logs", [{}] * 70_000), "message": messages})["message"] == messages


def test_coded_integers() -> None:
    columns = tasks(4, thread=CodedIntegers(array("H", [0, 1, 1, 0]), [140_735_340_871_680, LOW]))

    assert decode("tasks", columns)["thread"] == [140_735_340_871_680, LOW, LOW, 140_735_340_871_680]


def test_a_column_via_another() -> None:
    columns = tasks(3, group=Coded(array("H", [1, 0, 1]), ["a-1", "b-2"]), prefix=Via("group", ["a", "b"]))

    assert decode("tasks", columns)["prefix"] == ["b", "a", "b"]


def test_a_column_via_a_column_via_another() -> None:
    columns = tasks(
        3,
        span=Coded(array("H", [1, 0, 1]), ["s", "t"]),
        group=Via("span", ["a-1", "b-2"]),
        prefix=Via("group", ["a", "b"]),
    )

    assert decode("tasks", columns)["prefix"] == ["b", "a", "b"]


def test_a_column_via_one_with_a_single_value() -> None:
    columns = tasks(2, group=Coded(array("H", [0, 0]), ["a-1"]), prefix=Via("group", ["a"]))

    assert decode("tasks", columns)["prefix"] == ["a", "a"]


def test_runs() -> None:
    columns = tasks(5, computation=Runs([0, 2, 3], ["x", "", "y"]))

    assert decode("tasks", columns)["computation"] == ["x", "x", "", "y", "y"]


def test_gaps_upon_gaps() -> None:
    columns = tasks(
        2,
        stop_us=array("q", [1_000, 2_000]),
        start_us=Gap("stop_us", -1, array("q", [10, 20])),
        assigned_us=Gap("start_us", 1, array("q", [-1, 5])),
    )

    decoded = decode("tasks", columns)
    assert (decoded["start_us"], decoded["assigned_us"]) == ([990, 1_980], [989, 1_985])


def test_a_time_that_is_a_gap_gives_the_batch_its_range() -> None:
    columns = tasks(2, start_us=[100, 50], stop_us=Gap("start_us", 1, array("q", [1, 2])))
    body = encode_body("tasks", columns)

    assert (body.t0, body.t1) == (52, 101)


def test_a_gap_to_a_delta_gives_the_batch_its_range() -> None:
    columns = tasks(2, id=Delta(array("q", [7, 5])), stop_us=Gap("id", 1, array("q", [1, 1])))
    body = encode_body("tasks", columns)

    assert (body.t0, body.t1, decode("tasks", columns)["stop_us"]) == (6, 8, [8, 6])


def test_a_gap_to_a_constant_gives_the_batch_its_range() -> None:
    columns = tasks(2, start_us=Const(100), stop_us=Gap("start_us", -1, array("q", [1, 2])))
    body = encode_body("tasks", columns)

    assert (body.t0, body.t1, decode("tasks", columns)["stop_us"]) == (98, 99, [99, 98])


def test_deltas_of_integers() -> None:
    columns = edges(task=Delta(array("q", [5, 6, 4])), dependency=Delta(array("q", [LOW, HIGH, 0])))

    assert decode("edges", columns) == {"task": [5, 6, 4], "dependency": [LOW, HIGH, 0], "seen_us": [0, 0, 0]}


def test_ragged_lists_of_every_kind() -> None:
    rows = [0, 0, 2]
    columns = tasks(
        4,
        interval_action=Ragged(rows, ["transfer", "disk-read", "transfer"]),
        interval_start_us=Ragged(rows, array("q", [10, 20, 30])),
        interval_stop_us=Ragged(rows, Gap("interval_start_us", 1, array("q", [1, 2, 3]))),
        interval_source=Ragged(rows, Coded(array("H", [1, 0, 1]), ["", "w"])),
    )

    decoded = decode("tasks", columns)
    assert {name: decoded[name] for name in columns if name.startswith("interval")} == {
        "interval_action": [["transfer", "disk-read"], [], ["transfer"], []],
        "interval_start_us": [[10, 20], [], [30], []],
        "interval_stop_us": [[11, 22], [], [33], []],
        "interval_source": [["w", ""], [], ["w"], []],
    }


def test_ragged_lists_that_are_all_empty() -> None:
    columns = tasks(2, interval_stop_us=Ragged([], Gap("interval_start_us", 1, array("q"))))

    assert decode("tasks", columns)["interval_stop_us"] == [[], []]


@pytest.mark.parametrize("typecode", ["b", "i", "l", "q", "Q"])
def test_integer_arrays_of_any_width(typecode: str) -> None:
    assert decode("edges", edges(task=array(typecode, [1, 2, 3])))["task"] == [1, 2, 3]


def test_ranges_are_integers() -> None:
    assert decode("edges", edges(task=range(5, 8)))["task"] == [5, 6, 7]


HASH = "0123456789abcdef" * 2

KEYS: list[tuple[Any, str]] = [
    ("plain", "g"),
    ("", ""),
    (f"g-{HASH}", "g"),
    (f"g-{HASH.upper()}", "g"),
    (f"other-{HASH}", "g"),
    (f"g-{HASH[:-1]} ", "g"),
    (HASH, ""),
    (f"-{HASH}", ""),
    (("g", 0), "g"),
    (("g", -5, 2**62), "g"),
    (("g", LOW, HIGH), "g"),
    (("g", 2**63), "g"),
    (("g", 10**30), "g"),
    (("g", 1, 2, 3, 4, 5, 6, 7, 8), "g"),
    (("g", 1, 2, 3, 4, 5, 6, 7, 8, 9), "g"),
    (("g", True), "g"),
    (("g", 1.5), "g"),
    (("g", "part", 1), "g"),
    (("g", ("nested", 1), None), "g"),
    (("other", 1), "g"),
    (("g",), "g"),
    ((), "g"),
    (("it's", 1), "it's"),
    (('it\'s "both"', 1), 'it\'s "both"'),
    (("naïve-🦆\n\u202e", 1), "naïve-🦆\n\u202e"),
    ("lone-\ud800", "lone"),
    (("\udfff", 3), "\udfff"),
    (7, "7"),
    (b"bytes", "b"),
]


@pytest.mark.parametrize(("key", "group"), KEYS)
def test_a_key_of_any_shape_is_read_as_python_writes_it(key: Any, group: str) -> None:
    assert decode("tasks", tasks(2, key=[key, key], group=[group, group]))["key"] == [str(key)] * 2


def test_keys_of_all_shapes_in_one_batch() -> None:
    columns = tasks(len(KEYS), key=[key for key, _ in KEYS], group=[group for _, group in KEYS])

    assert decode("tasks", columns)["key"] == [str(key) for key, _ in KEYS]


@pytest.mark.parametrize(
    "group",
    [
        Const("g"),
        ["g", "g", "g"],
        Coded(array("H", [0, 0, 0]), ["g"]),
        Coded(array("H", [1, 1, 1]), ["f", "g"]),
        Runs([0, 1], ["g", "g"]),
        Via("worker", ["g", "g"]),
    ],
)
def test_keys_are_rebuilt_from_groups_of_any_encoding(group: Any) -> None:
    columns = tasks(
        3, worker=Coded(array("H", [0, 1, 0]), ["a", "b"]), group=group, key=[("g", 1), f"g-{HASH}", ("g", 2)]
    )

    assert decode("tasks", columns)["key"] == ["('g', 1)", f"g-{HASH}", "('g', 2)"]


def test_keys_from_a_group_via_runs() -> None:
    columns = tasks(
        3, worker=Runs([0, 2], ["a", "b"]), group=Via("worker", ["f", "g"]), key=[("f", 1), ("f", 2), ("g", 3)]
    )

    assert decode("tasks", columns)["key"] == ["('f', 1)", "('f', 2)", "('g', 3)"]


def test_keys_may_be_constant_or_coded() -> None:
    coded = Coded(array("H", [1, 0]), ["x", "y"])

    assert decode("tasks", tasks(2, key=Const("k")))["key"] == ["k", "k"]
    assert decode("tasks", tasks(2, key=coded))["key"] == ["y", "x"]


def test_keys_of_a_group_with_an_enormous_name_are_written_in_full() -> None:
    name = "x" * 100_000
    columns = tasks(2, group=[name, name], key=[(name, 1), (name, 2)])

    assert decode("tasks", columns)["key"] == [f"('{name}', 1)", f"('{name}', 2)"]


def test_columns_an_older_writer_lacks_are_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    body = encode_body("edges", edges(task=[1, 2, 3]))
    newer = (*TABLES["edges"].columns, Column("why", "str", "new"), Column("all", "int[]", "new"))
    monkeypatch.setitem(TABLES, "edges", type(TABLES["edges"])("edges", "row", newer, "seen_us"))

    table = read_frame(seal(body, cluster="c", epoch=1, sequence=0, kept=3, dropped=0)).table()
    assert (table["why"].tolist(), table["all"].tolist()) == (["", "", ""], [[], [], []])


def test_seconds_are_rounded_to_whole_microseconds() -> None:
    assert microseconds([0.0, 1.5, 1_700_000_000.123456, -0.0000004]) == array(
        "q", [0, 1_500_000, 1_700_000_000_123_456, 0]
    )
