"""Tables and paragraphs as aligned lines, for any width or for none."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from daskscope.cli.escape import width

GAP = "  "
#: A name keeps this much before a column that is only nice to have is left out for it, and never gets less than the second.
ROOMY_NAME = 30
LEAST_NAME = 12


@dataclass(frozen=True)
class Column:
    """One column of a table: numbers to the right, words to the left."""

    title: str
    right: bool = True
    #: Left out where there is no room.
    optional: bool = False
    #: Shortened where there is no room. Numbers never are: half a number is a wrong number.
    name: bool = False


def table_cells(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], available: int | None
) -> list[list[tuple[str, str]]]:
    """Every line as cells: the padding before or after a text is part of it, the bare text comes along for styling."""
    lines = [[column.title for column in columns], *map(list, rows)]
    widths = [max(width(line[i]) for line in lines) for i in range(len(columns))]
    shown = list(range(len(columns)))
    if available is not None:
        shown = _fitting(columns, widths, available)
        _shrink(columns, widths, shown, available)
    return [[(_pad(shorten(line[i], widths[i]), widths[i], columns[i]), line[i]) for i in shown] for line in lines]


def shorten(text: str, size: int) -> str:
    """Cut in the middle: names of tasks differ at both ends."""
    if width(text) <= size:
        return text
    tail = (size - 1) // 3
    return f"{_cut(text, size - 1 - tail)}…{_cut(text[::-1], tail)[::-1]}"


def paragraph(text: str, available: int) -> list[str]:
    """A line broken to fit; its continuation stands below the value of a ``label  value``, else a little further in."""
    label = re.match(r"\w+ {2,}", text)
    indent = label.end() if label else len(text) - len(text.lstrip()) + 2
    lines = textwrap.wrap(text, available, subsequent_indent=" " * indent, break_on_hyphens=False)
    return lines or [""]


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
            cut = min(excess, max(0, widths[i] - LEAST_NAME))
            widths[i], excess = widths[i] - cut, excess - cut


def _pad(text: str, size: int, column: Column) -> str:
    space = " " * (size - width(text))
    return space + text if column.right else text + space


def _cut(text: str, size: int) -> str:
    text = text[:size]
    while width(text) > size:
        text = text[:-1]
    return text
