"""Lists of a server's items display as short tables."""

from __future__ import annotations

from daskscope.client.listing import MAX_LINES, Listing


def test_a_list_is_a_table_of_its_main_columns() -> None:
    items = [{"name": "etl", "n_tasks": 1200, "duration": 12.3456, "url": "http://s/1", "other": "x" * 500}]
    assert (
        repr(Listing(items, ("name", "n_tasks", "duration", "url"))) == "name  n tasks  duration\netl   1200     12.3"
    )


def test_long_lists_and_cells_are_cut() -> None:
    text = repr(Listing([{"name": "n" * 100}] * (MAX_LINES + 5), ("name",)))
    assert text.count("\n") == MAX_LINES + 1
    assert text.endswith("… 5 more")
    assert max(map(len, text.splitlines())) == 40


def test_an_empty_list_says_what_to_do() -> None:
    assert repr(Listing([], ("name",), "No clusters yet.")) == "No clusters yet."
