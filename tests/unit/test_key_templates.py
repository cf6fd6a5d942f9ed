"""Keys of a report are decoded exactly as they were encoded."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskscope.model.packed_texts import PackedTexts
from daskscope.report.blocks import Blocks, decode
from daskscope.report.key_templates import encode_key_templates


def restored(texts: list[str], prefixes: list[int] | None = None) -> list[str]:
    """Decode keys as the page does."""
    blocks = Blocks()
    codes = np.array(prefixes or [0] * len(texts), dtype=np.int64)
    templates, blocks_of = encode_key_templates(PackedTexts.of(texts), np.arange(len(texts)), codes, blocks)
    columns = {name: decode(block, blocks.data[block["block"]]) for name, block in blocks_of.items()}
    if not templates:
        return [json.loads(line) if "\\" in line and line.startswith('"') else line for line in columns["key"]]
    found = []
    for task in range(len(texts)):
        text = templates[int(columns["template"][task]) if "template" in columns else int(codes[task])]
        for i in range(text.count("\0")):
            text = text.replace("\0", str(int(columns[f"number{i}"][task])), 1)
        found.append(text)
    return found


@pytest.mark.parametrize(
    "texts",
    [
        ["('sum-1f3a', 12, 0)", "('sum-1f3a', 3, 4)"],
        ["('a', 007)", "('a', 0)", "('a', 1234567890)", "('a', 123456789)"],
        ["inc-0123456789abcdef", "inc-fedcba9876543210"],
        ["a\nb", "c"],
        ["nul\0 1", "x 2"],
        ["1.5", "-3", "x-7", "7"],
        ["no numbers at all"],
        ["('é', 5)", "('é', 61)", "5é 7", "é5 7", "\u0663 3", "5\u00b2 8"],
        ["('\ud800', 1)", "('\ud800', 22)"],
        ["", "5", "", "55 55 55"],
        ["1 2 3 4 5", "1"],
    ],
)
def test_keys_round_trip(texts: list[str]) -> None:
    assert restored(texts) == texts


@given(st.lists(st.text(alphabet="ab-01 9(),'.\u00b2", max_size=12), max_size=20))
def test_any_text_round_trips(texts: list[str]) -> None:
    assert restored(texts) == texts


def test_keys_of_chunks_become_templates() -> None:
    texts = [f"('sum-{name}', {i}, {j})" for name in ("a1", "b2") for i in (0, 7, 123_456_789) for j in range(40)]
    blocks = Blocks()
    templates, columns = encode_key_templates(
        PackedTexts.of(texts), np.arange(len(texts)), np.repeat([0, 1], 120), blocks
    )
    assert templates == ["('sum-a1', \0, \0)", "('sum-b2', \0, \0)"]
    assert set(columns) == {"number0", "number1"}
    assert restored(texts, [0] * 120 + [1] * 120) == texts


def test_templates_determined_by_the_prefix_need_no_column() -> None:
    blocks = Blocks()
    texts = PackedTexts.of(["('a', 1)", "('b', 2)", "('a', 3)"])
    templates, columns = encode_key_templates(texts, np.arange(3), np.array([2, 0, 2]), blocks)
    assert set(columns) == {"number0"} and templates == ["('b', \0)", "", "('a', \0)"]
