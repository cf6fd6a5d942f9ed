"""Packed texts read like a column of Python strings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskscope.model import packed_texts
from daskscope.model.packed_texts import PackedTexts
from daskscope.model.recording import Strings, Table, concatenate, object_array
from daskscope.model.tables import TABLES
from daskscope.storage.runs import parquet
from daskscope.storage.runs.parquet import from_parquet, to_parquet
from daskscope.testing import make_recording

TEXTS = ["('x-1', 0)", "", "ü-2", "('x-1', 0)", "", "last"]


def packed(texts: list[str]) -> PackedTexts:
    parts = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, parts)]).astype(np.int32)
    return PackedTexts(b"".join(parts), offsets)


def test_packed_texts_read_like_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_texts, "STEP", 4)
    mine, plain = Strings.from_texts(packed(TEXTS)), Strings.from_texts(object_array(TEXTS))
    assert mine.to_numpy().tolist() == TEXTS
    assert len(mine) == len(plain) == 6
    assert mine.is_empty.tolist() == plain.is_empty.tolist() == [False, True, False, False, True, False]
    rows, mask = np.array([5, 0]), np.array([True, False, True, False, False, False])
    assert mine.take(rows).to_numpy().tolist() == ["last", TEXTS[0]]
    assert mine.take(mask).to_numpy().tolist() == [TEXTS[0], "ü-2"]
    assert mine.rows_with(["last", "", "none"]).tolist() == plain.rows_with(["last", "", "none"]).tolist() == [1, 4, 5]
    assert mine.repeated[0].tolist() == plain.repeated[0].tolist() == [0, 1, 3, 4]
    assert [np.unique(texts.repeated[1], return_inverse=True)[1].tolist() for texts in (mine, plain)] == [
        [1, 0, 1, 0],
        [0, 1, 0, 1],
    ]
    assert mine.codes.tolist() == plain.codes.tolist()


def test_large_files_are_read_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "MAX_UNPACKED", 2)
    rows = [{"key": key, "start_us": n + 1, "stop_us": n + 2} for n, key in enumerate(TEXTS)]
    table = make_recording({"tasks": rows})["tasks"]
    found = from_parquet("tasks", to_parquet(table))
    assert isinstance(found.strings("key")._texts, PackedTexts)
    assert found["key"].tolist() == TEXTS


def test_packed_texts_are_joined_and_compared_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_texts, "STEP", 2)
    texts = packed(TEXTS)
    assert bytes(texts.joined(np.array([5, 1, 2]), ord("/"))) == "last//ü-2/".encode()
    assert texts.are_equal(np.array([0, 1, 3]), np.array([3, 4, 0]))
    assert not texts.are_equal(np.array([0, 1]), np.array([3, 5]))
    assert bytes(packed([]).joined(np.zeros(0, dtype=np.int64), 0)) == b""


@given(st.lists(st.text(alphabet="ab\0\x01", max_size=4), max_size=30))
def test_equal_texts_and_only_they_have_equal_hashes(texts: list[str]) -> None:
    found = packed(texts).hashes().tolist()
    assert [found.index(value) for value in found] == [texts.index(text) for text in texts]


def test_different_texts_with_the_same_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = packed(["a", "b", "a", "c"])
    monkeypatch.setattr(PackedTexts, "hashes", lambda self: np.zeros(len(self), dtype=np.uint64))
    rows, numbers = Strings.from_texts(texts).repeated
    assert (rows.tolist(), numbers.tolist()) == ([0, 1, 2, 3], [0, 1, 0, 2])
    assert Strings.from_texts(texts).rows_with(["b", "x"]).tolist() == [1]


def test_packed_texts_are_joined_without_unpacking_them() -> None:
    first, second = PackedTexts.of(["a", "", "ü"]), PackedTexts.of(["bc"])
    joined = PackedTexts.concatenated([first, PackedTexts(first.data, first.offsets[1:]), second])
    assert joined.to_numpy().tolist() == ["a", "", "ü", "", "ü", "bc"]


def test_columns_of_several_files_stay_packed() -> None:
    parts = [
        Table(TABLES["tasks"], {**Table.empty("tasks").columns, "key": column})
        for column in (Strings.from_texts(PackedTexts.of(["k1", "k2"])), Strings.of(["k3"]))
    ]
    key = concatenate(TABLES["tasks"], parts).strings("key")
    assert key.is_packed
    assert key.to_numpy().tolist() == ["k1", "k2", "k3"]
