"""The cell magic ``%%daskscope``: record a cell, and show a summary and the report below it. ``%load_ext daskscope`` adds it."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from daskscope.client.performance_report import performance_report
from daskscope.errors import DaskscopeError

USAGE = "%%daskscope [FILE.html]"
#: Methods of a shell that print an exception.
SHOWING = ("showtraceback", "showsyntaxerror", "showindentationerror")


def load(shell: Any) -> None:
    """Add the magic to an IPython shell."""

    def daskscope(line: str, cell: str) -> None:
        record_cell(shell, line, cell)

    shell.register_magic_function(daskscope, magic_kind="cell", magic_name="daskscope")


class _CellReport(performance_report):
    """The report of a notebook cell. Its code is given, because no frame runs it yet when the recording begins."""

    cell = ""

    def _find_code(self, _: FrameType | None, /) -> str:
        return self.cell


def record_cell(shell: Any, line: str, cell: str) -> None:
    """Run a cell inside of ``performance_report`` and show its summary, also if the cell raises."""
    words = shlex.split(line)
    if len(words) > 1:
        raise DaskscopeError(f"Give one file name at most: {USAGE}")
    context = _CellReport(words[0] if words else "dask-report.html")
    context.cell = cell
    report = None
    try:
        with context as report, _without_tracebacks(shell):
            # Raising an exception marks the report as failed and stops the notebook. The shell shows it then.
            shell.run_cell(cell, store_history=False).raise_error()
    finally:
        if report is not None:
            # Untyped, and only there in a notebook.
            importlib.import_module("IPython.display").display(report)


@contextmanager
def _without_tracebacks(shell: Any) -> Iterator[None]:
    """Let a shell print no exceptions."""
    before = {name: getattr(shell, name) for name in SHOWING}
    for name in SHOWING:
        setattr(shell, name, lambda *_, **__: None)
    try:
        yield
    finally:
        for name, method in before.items():
            setattr(shell, name, method)
