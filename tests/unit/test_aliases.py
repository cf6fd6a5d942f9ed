"""Keys that a person chose get an alias, and names of functions stay."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from dask.base import tokenize
from dask.delayed import delayed
from dask.utils import key_split

from daskscope.collector.aliases import Aliases, is_named_by_dask

TOKEN = "8f14e45fceea167a5a36dedd4bea2543"
HIDDEN = Aliases(keys=False, names=False)


@pytest.mark.parametrize(
    "key",
    [
        f"inc-{tokenize(1)}",
        f"inc-{uuid.uuid4()}",
        f"inc-{uuid.uuid4()}-17",
        (f"read_parquet-fused-{TOKEN}", 0),
        f"('sum-aggregate-{TOKEN}', 0, 1)",
        delayed(max, pure=True)(1, 2).key,
        delayed(max, pure=False)(1, 2).key,
    ],
    ids=["submit", "impure submit", "impure map", "tuple", "tuple as text", "delayed", "impure delayed"],
)
def test_keys_with_a_token_are_named_by_dask(key: Any) -> None:
    assert is_named_by_dask(key)
    assert HIDDEN.key(key) == HIDDEN.key_prefix(key) == key_split(key)


@pytest.mark.parametrize(
    "key", ["customer-42", "x", ("customer", 1), "('customer', 1)", f"{TOKEN}-customer", b"customer", 5, ""]
)
def test_other_keys_get_an_alias(key: Any) -> None:
    assert not is_named_by_dask(key)
    assert HIDDEN.key(key).startswith("key-")
    assert "customer" not in HIDDEN.key(key) + HIDDEN.key_prefix(key) + HIDDEN.group(key)


def test_an_alias_is_the_same_in_all_recordings_of_an_account_only() -> None:
    one, again = (Aliases(keys=False, account="physics") for _ in range(2))
    assert one.key("customer-42") == again.key("customer-42") != Aliases(keys=False, account="maths").key("customer-42")
    assert one.key("customer-42") != one.key("customer-43")


def test_a_prefix_is_a_functions_name_once_dask_named_a_key_after_it() -> None:
    aliases = Aliases(keys=False)
    assert aliases.group("inc").startswith("key-")
    aliases.note("inc-1")
    assert aliases.group("inc").startswith("key-")
    aliases.note(f"inc-{TOKEN}")
    assert aliases.group("inc") == "inc"
    assert aliases.group(f"sum-{TOKEN}") == f"sum-{TOKEN}"


def test_with_keys_and_names_everything_stays() -> None:
    aliases = Aliases()
    assert aliases.key(("customer", 1)) == "('customer', 1)"
    assert aliases.group("customer") == aliases.name("customer") == "customer"
    assert aliases.hide("of customer-1", "customer-1") == aliases.hide_quoted("of customer-1") == "of customer-1"


def test_a_key_in_a_text_is_replaced_as_a_whole_word() -> None:
    assert HIDDEN.hide("x of extra-x, x.", "x") == f"{HIDDEN.key('x')} of extra-x, {HIDDEN.key('x')}."
    text = HIDDEN.hide("a-b needs a", "a", "a-b")
    assert text == f"{HIDDEN.key('a-b')} needs {HIDDEN.key('a')}"


def test_an_alias_in_a_text_is_not_read_as_a_pattern() -> None:
    assert HIDDEN.hide(r"bad \1 key", r"\1") == f"bad {HIDDEN.key(chr(92) + '1')} key"


@pytest.mark.parametrize("value", ["tcp://10.0.0.1:8786", "1.25 GiB", "3.5s", "80%", "memory", "closing_gracefully"])
def test_values_that_cannot_be_keys_stay_in_dasks_lines(value: str) -> None:
    assert HIDDEN.value(value) == value
    assert HIDDEN.hide_quoted(f"was '{value}'") == f"was {value}"


def test_a_name_gets_an_alias_and_no_name_stays_empty() -> None:
    assert HIDDEN.name("") == ""
    assert HIDDEN.name("Ann's cluster").startswith("name-")
