"""The only writer to standard output: rich on a terminal where it is installed, plain aligned text everywhere else.

Both print the same content. In a pipe the text is complete: every column, names in full, no escape codes. On a terminal,
optional columns are dropped and names are shortened to fit.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from typing import Any, Protocol

from daskscope.cli.terminal import GAP, Column, escape, paragraph, table_cells, width

#: Words that RichOutput colours; everything else keeps the terminal's colour.
GREEN = frozenset(("finished", "ok", "running"))
RED = frozenset(("failed", "unfinished", "lost", "error", "memory kill", "vanished", "lost connection", "killed"))


class Output(Protocol):
    """Headings, lines and tables. The caller escapes the texts."""

    def heading(self, text: str) -> None: ...
    def line(self, text: str = "", *, style: str = "") -> None: ...
    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None: ...


def write(text: str) -> None:
    """Write to standard output; escape characters that its encoding lacks instead of failing."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def write_json(data: Any) -> None:
    """Write indented JSON to standard output."""
    write(json.dumps(data, indent=2) + "\n")


def write_message(text: str, prog: str = "daskscope") -> None:
    """Write one line to standard error, after the name of the program."""
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(f"{prog}: {escape(text)}\n".encode(encoding, "backslashreplace").decode(encoding))
    sys.stderr.flush()


def is_terminal() -> bool:
    return sys.stdout.isatty()


def terminal_width() -> int:
    return max(40, shutil.get_terminal_size().columns)


def open_output() -> Output:
    """Return the output that suits standard output: a pipe, a plain terminal, or a terminal with rich."""
    if not is_terminal():
        return PlainOutput(None)
    try:
        import rich.console  # noqa: F401 (only whether it is installed)
    except ImportError:
        return PlainOutput(terminal_width())
    return PlainOutput(terminal_width()) if os.environ.get("TERM") == "dumb" else RichOutput(terminal_width())


class PlainOutput:
    """Aligned text without colours. With no width, nothing is wrapped or shortened."""

    def __init__(self, available: int | None) -> None:
        self.available = available

    def heading(self, text: str) -> None:
        write(f"\n{text}\n{'-' * width(text)}\n")

    def line(self, text: str = "", *, style: str = "") -> None:  # noqa: ARG002 (plain text has no styles)
        lines = [text] if self.available is None else paragraph(text, self.available)
        write("\n".join(lines) + "\n")

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        for cells in table_cells(columns, rows, self.available):
            write(GAP.join(padded for padded, _ in cells).rstrip() + "\n")


class RichOutput:
    """Dim titles, tables without boxes, and colour only for the words in GREEN and RED.

    Texts become ``Text`` objects, never markup: a key may contain ``[red]``. The layout is our own because rich shortens
    every column of a table that is too wide, numbers included.
    """

    def __init__(self, available: int) -> None:
        from rich.console import Console
        from rich.text import Text

        self.available = available
        self.console = Console(file=sys.stdout, markup=False, highlight=False, emoji=False)
        self.text = Text

    def heading(self, text: str) -> None:
        self.console.print()
        self._print(self.text(text, style="bold"))

    def line(self, text: str = "", *, style: str = "") -> None:
        for part in paragraph(text, self.available):
            self._print(self.text(part, style=style))

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        titles, *lines = table_cells(columns, rows, self.available)
        self._print(self.text(GAP.join(padded for padded, _ in titles).rstrip(), style="dim"))
        for cells in lines:
            self._print(self.text(GAP).join(self.text(padded, style=_style(text)) for padded, text in cells))

    def _print(self, text: Any) -> None:
        text.rstrip()
        self.console.print(text, no_wrap=True, overflow="ignore", crop=False, soft_wrap=True)


def _style(text: str) -> str:
    return "red" if text in RED else "green" if text in GREEN else ""
