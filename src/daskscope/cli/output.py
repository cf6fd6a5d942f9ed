"""The only writer to standard output: rich on a terminal that has it, plain aligned text everywhere else.

Both show the same things. In a pipe the text is complete: every column, names in full, no escape codes. On a terminal,
optional columns are left out where there is no room for them and names are shortened to fit.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import Protocol

from daskscope.cli.escape import escape, width
from daskscope.cli.layout import GAP, Column, paragraph, table_cells


class Output(Protocol):
    """What a command writes to. Texts are escaped by the caller."""

    def heading(self, text: str) -> None: ...
    def line(self, text: str = "", *, style: str = "") -> None: ...
    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None: ...


def write(text: str) -> None:
    """Write text as it is; characters the terminal's encoding does not have are escaped rather than fatal."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def complain(text: str) -> None:
    """One line to standard error."""
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(f"daskscope: {escape(text)}\n".encode(encoding, "backslashreplace").decode(encoding))


def on_terminal() -> bool:
    return sys.stdout.isatty()


def terminal_width() -> int:
    return max(40, shutil.get_terminal_size().columns)


def open_output() -> Output:
    """The form that fits where standard output goes."""
    if not on_terminal():
        return PlainOutput(None)
    try:
        from daskscope.cli.rich_output import RichOutput
    except ImportError:
        return PlainOutput(terminal_width())
    return PlainOutput(terminal_width()) if os.environ.get("TERM") == "dumb" else RichOutput(terminal_width())


class PlainOutput:
    """Aligned text, nothing else; without a width nothing is broken or shortened."""

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
