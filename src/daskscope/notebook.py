"""The cell magic ``%%daskscope``: record a cell, and show a summary and the report below it. ``%load_ext daskscope`` adds it."""

from __future__ import annotations

import importlib
import shlex
from typing import Any

from daskscope.client.performance_report import performance_report
from daskscope.errors import DaskscopeError

USAGE = "%%daskscope [FILE.html]"


def load(shell: Any) -> None:
    """Add the magic to an IPython shell."""

    def daskscope(line: str, cell: str) -> None:
        record_cell(shell, line, cell)

    shell.register_magic_function(daskscope, magic_kind="cell", magic_name="daskscope")


def record_cell(shell: Any, line: str, cell: str) -> None:
    """Run a cell inside of ``performance_report`` and show its summary, also if the cell raises."""
    words = shlex.split(line)
    if len(words) > 1:
        raise DaskscopeError(f"Give one file name at most: {USAGE}")
    context = performance_report(words[0] if words else "dask-report.html")
    try:
        with context as report:
            # It shows an exception itself; raising it again marks the report as failed and stops the notebook.
            shell.run_cell(cell, store_history=False).raise_error()
    finally:
        # Untyped, and only there in a notebook.
        importlib.import_module("IPython.display").display(report)
