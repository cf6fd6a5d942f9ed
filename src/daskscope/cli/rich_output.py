"""Output for terminals, with rich. Imported only where there is a terminal and rich is installed.

Texts are handed over as ``Text`` objects, never as markup: a key may contain ``[red]``. The layout is our own, because rich
shortens every column of a table that is too wide, numbers included.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from daskscope.cli.layout import GAP, Column, paragraph, table_cells

#: Words that are coloured. Everything else stays as it is.
GOOD = frozenset(("done", "ok", "running"))
BAD = frozenset(("erred", "lost", "error", "memory kill", "vanished", "lost connection", "killed"))


class RichOutput:
    """Tables without boxes, dim titles, colour only for words that say how something ended."""

    def __init__(self, available: int) -> None:
        self.available = available
        self.console = Console(file=sys.stdout, markup=False, highlight=False, emoji=False)

    def heading(self, text: str) -> None:
        self.console.print()
        self._print(Text(text, style="bold"))

    def line(self, text: str = "", *, style: str = "") -> None:
        for part in paragraph(text, self.available):
            self._print(Text(part, style=style))

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        titles, *lines = table_cells(columns, rows, self.available)
        self._print(Text(GAP.join(padded for padded, _ in titles).rstrip(), style="dim"))
        for cells in lines:
            self._print(Text(GAP).join(Text(padded, style=_style(text)) for padded, text in cells))

    def _print(self, text: Text) -> None:
        text.rstrip()
        self.console.print(text, no_wrap=True, overflow="ignore", crop=False, soft_wrap=True)


def _style(text: str) -> str:
    return "red" if text in BAD else "green" if text in GOOD else ""
