"""Words of an error's text, as the index and a query see them."""

from __future__ import annotations

import pytest

from daskscope.storage.catalog.error_search import words_of, words_of_query


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("KeyError: 'Day 7'", ["keyerror", "key", "error", "day"]),
        ("in load_part", ["in", "load_part", "load", "part"]),
        ("HTTPServerError x", ["httpservererror", "http", "server", "error"]),
        ("s3://bucket/part-0001.parquet", ["s3", "bucket", "part", "0001", "parquet"]),
        ("größe überschritten", ["grösse", "überschritten"]),
        ("", []),
    ],
)
def test_words_and_their_parts_are_indexed(text: str, words: list[str]) -> None:
    assert set(words) <= set(words_of(text))


def test_every_word_of_a_query_is_indexed_if_the_text_has_it() -> None:
    text = (
        "distributed.scheduler.KilledWorker: Attempted to run task 'read_parquet-0001' on 4 workers, limit of 3.5 GiB"
    )
    assert set(words_of_query(text)) <= set(words_of(text))
    assert set(words_of_query("killedworker READ_PARQUET attempted")) <= set(words_of(text))
