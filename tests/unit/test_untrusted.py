"""JSON that a recorder or a client sent is refused if it is nested deeply, before Python's parser follows it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskscope.model.untrusted import MAX_DEPTH, parse_json, parse_object

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('[]{}"\\aé\n'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('[]{}"\\'), inner),
)


@given(VALUES)
def test_any_value_is_parsed(value: object) -> None:
    assert parse_json(json.dumps(value)) == value


def test_brackets_in_texts_are_not_levels() -> None:
    value = {'"[\\': "[" * 1_000, "]": '\\"{' * 1_000}

    assert parse_object(json.dumps(value)) == value


@pytest.mark.parametrize("deepest", ["[" * MAX_DEPTH + "]" * MAX_DEPTH, '{"a":' * MAX_DEPTH + "1" + "}" * MAX_DEPTH])
def test_a_hundred_levels_are_parsed_and_one_more_is_refused(deepest: str) -> None:
    assert parse_json(deepest) == json.loads(deepest)
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json(f"[{deepest}]")


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' * 100_000, '"]"' + "[" * 100_000, '["\\"]]]]", ' + "[" * 100_000, '["' + "[" * 100_000],
)
def test_a_text_that_opens_too_many_levels_is_not_followed(text: str) -> None:
    assert parse_object(text) == {}
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json(text)
