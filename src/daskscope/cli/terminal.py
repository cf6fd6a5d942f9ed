"""Lay out text for a terminal: escape, measure, shorten, wrap and align it.

Keys, messages and names come from other people's programs. ``escape`` writes control characters, escape sequences,
characters that change the writing direction and invisible characters the way Python does (``\x1b``, ``\u202e``).
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

#: Control, format (bidi, zero width), lone surrogate, private, unassigned; line and paragraph separator.
HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
GAP = "  "
#: Drop optional columns only once a name column would get narrower than this.
ROOMY_NAME = 30
#: Never make a name column narrower than this.
MIN_NAME = 12


@dataclass(frozen=True)
class Column:
    """A column of a table. Numbers are aligned to the right, words to the left."""

    title: str
    right: bool = True
    #: Dropped where there is no room.
    optional: bool = False
    #: Shortened where there is no room. Numbers never are: half a number is a wrong number.
    name: bool = False


T = TypeVar("T")
#: Columns of a table of items, each with the function that returns its cell.
Cells = Sequence[tuple[Column, Callable[[T], str]]]


def split_cells(cells: Cells[T], items: Iterable[T]) -> tuple[list[Column], list[list[str]]]:
    """Return the columns and the rows of a table of items."""
    return [column for column, _ in cells], [[cell(item) for _, cell in cells] for item in items]


def escape(text: str) -> str:
    """Return the text on one line, with every character that isn't plainly visible written as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_escape_character, text))


def escape_lines(text: str) -> list[str]:
    """Return the lines of a text, each escaped; tabs become spaces."""
    return [escape(line) for line in text.expandtabs(4).replace("\r\n", "\n").split("\n")]


def width(text: str) -> int:
    """Return the number of terminal columns an escaped text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_character_width, text))


def shorten(text: str, size: int) -> str:
    """Cut a text to ``size`` columns, in the middle: task names differ at both ends."""
    if width(text) <= size:
        return text
    tail = (size - 1) // 3
    return f"{_cut(text, size - 1 - tail)}…{_cut(text[::-1], tail)[::-1]}"


def paragraph(text: str, available: int) -> list[str]:
    """Wrap a line. Continuation lines are indented to the value of a ``label  value`` line, or by two columns."""
    label = re.match(r"\w+ {2,}", text)
    indent = label.end() if label else len(text) - len(text.lstrip()) + 2
    lines = textwrap.wrap(text, available, subsequent_indent=" " * indent, break_on_hyphens=False)
    return lines or [""]


def local_minute(text: str | None, never: str = "") -> str:
    """Format an ISO timestamp as ``2026-05-01 14:03`` in local time; return ``never`` for none."""
    if not text:
        return never
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone().strftime("%Y-%m-%d %H:%M")


def table_cells(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], available: int | None
) -> list[list[tuple[str, str]]]:
    """Return every line, the titles first, as cells of padded text and bare text (for styling)."""
    lines = [[column.title for column in columns], *map(list, rows)]
    widths = [max(width(line[i]) for line in lines) for i in range(len(columns))]
    shown = list(range(len(columns)))
    if available is not None:
        shown = _fitting(columns, widths, available)
        _shrink(columns, widths, shown, available)
    return [[(_pad(shorten(line[i], widths[i]), widths[i], columns[i]), line[i]) for i in shown] for line in lines]


def _fitting(columns: Sequence[Column], widths: list[int], available: int) -> list[int]:
    shown = list(range(len(columns)))
    for i in reversed(range(len(columns))):
        wanted = sum(min(widths[k], ROOMY_NAME) if columns[k].name else widths[k] for k in shown)
        if wanted + len(GAP) * (len(shown) - 1) <= available:
            break
        if columns[i].optional:
            shown.remove(i)
    return shown


def _shrink(columns: Sequence[Column], widths: list[int], shown: list[int], available: int) -> None:
    excess = sum(widths[i] for i in shown) + len(GAP) * (len(shown) - 1) - available
    for i in shown:
        if columns[i].name and excess > 0:
            cut = min(excess, max(0, widths[i] - MIN_NAME))
            widths[i], excess = widths[i] - cut, excess - cut


def _pad(text: str, size: int, column: Column) -> str:
    space = " " * (size - width(text))
    return space + text if column.right else text + space


def _cut(text: str, size: int) -> str:
    text = text[:size]
    while width(text) > size:
        text = text[:-1]
    return text


def _escape_character(character: str) -> str:
    if unicodedata.category(character) not in HIDDEN:
        return character
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def _character_width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


HELP = "recording file, directory of segments, report (.html, .html.gz), or a cluster on the server: its ID or the URL of its page"
