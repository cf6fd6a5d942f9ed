"""Packed texts read like a column of Python strings."""

from __future__ import annotations

import numpy as np
import pytest

from daskscope.model import packed_texts
from daskscope.model.packed_texts import PackedTexts
from daskscope.model.table import Strings, object_array
from daskscope.storage import parquet
from daskscope.storage.parquet import from_parquet, to_parquet
from daskscope.testing.factories import make_recording

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
    assert [part.tolist() for part in mine.repeated] == [part.tolist() for part in plain.repeated]
    assert mine.codes.tolist() == plain.codes.tolist()


def test_large_files_are_read_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "MAX_UNPACKED", 2)
    rows = [{"key": key, "start_us": n + 1, "stop_us": n + 2} for n, key in enumerate(TEXTS)]
    table = make_recording({"tasks": rows})["tasks"]
    found = from_parquet("tasks", to_parquet(table))
    assert isinstance(found.strings("key")._texts, PackedTexts)
    assert found["key"].tolist() == TEXTS
