"""Text for a terminal: escaped, measured, shortened, wrapped and aligned; timestamps in local time."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from daskscope.cli.terminal import Column, escape, escape_lines, local_minute, paragraph, shorten, table_cells, width


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("plain", "plain"),
        ("Zoë 🦆 日本", "Zoë 🦆 日本"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\u202eevil\u2066", "\\u202eevil\\u2066"),
        ("\x9b2J", "\\x9b2J"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("\u2028", "\\u2028"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_what_cannot_be_seen_is_written_as_an_escape(text: str, escaped: str) -> None:
    assert escape(text) == escaped


def test_lines_are_kept_apart_and_tabs_become_spaces() -> None:
    assert escape_lines("a\r\n\tb\x1b\nc") == ["a", "    b\\x1b", "c"]


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("ë", 1), ("", 0)])
def test_the_width_is_that_of_a_terminal(text: str, columns: int) -> None:
    assert width(text) == columns


@pytest.mark.parametrize(
    ("text", "size", "short"),
    [("abcdef", 6, "abcdef"), ("abcdefghij", 7, "abcd…ij"), ("日本語日本語", 7, "日本…語"), ("abc", 1, "…")],
)
def test_names_are_cut_in_the_middle(text: str, size: int, short: str) -> None:
    assert shorten(text, size) == short


def test_a_long_line_is_continued_a_little_further_in() -> None:
    assert paragraph("  one two three four", 12) == ["  one two", "    three", "    four"]
    assert paragraph("label   one two three", 16) == ["label   one two", "        three"]
    assert paragraph("", 12) == [""]


COLUMNS = [Column("name", right=False, name=True), Column("n"), Column("extra", optional=True)]


def lines(available: int | None) -> list[str]:
    rows = [("a" * 40, "1", "x"), ("b", "1,000", "yy")]
    return ["|".join(padded for padded, _ in cells) for cells in table_cells(COLUMNS, rows, available)]


def test_without_a_width_everything_is_shown() -> None:
    assert lines(None) == [
        f"{'name':40}|    n|extra",
        f"{'a' * 40}|    1|    x",
        f"{'b':40}|1,000|   yy",
    ]


def test_a_name_gives_way_before_an_optional_column() -> None:
    assert lines(44)[1] == f"{'a' * 20}…{'a' * 9}|    1|    x"


def test_an_optional_column_gives_way_to_the_first_letters_of_a_name() -> None:
    assert lines(40)[1] == f"{'a' * 22}…{'a' * 10}|    1"


def test_a_number_is_never_cut() -> None:
    assert lines(5)[2] == f"{'b':12}|1,000"


@pytest.fixture
def nine_hours_ahead(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "JST-9")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("nine_hours_ahead")
def test_a_moment_is_told_in_local_time() -> None:
    assert local_minute("2026-05-01T20:03:59Z") == "2026-05-02 05:03"
    assert local_minute("2026-05-01T20:03:59.123456+00:00") == "2026-05-02 05:03"


def test_what_never_was_is_said_so() -> None:
    assert (local_minute(None), local_minute("", "never")) == ("", "never")
