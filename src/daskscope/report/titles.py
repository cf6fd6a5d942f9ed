"""The title of a report: its name, and the line of code that took longest."""

from __future__ import annotations

from daskscope.analysis.summary import call_line, extent, inside_block
from daskscope.model.recording import Recording

MAX_LINE = 80


def title_of(name: str, recording: Recording) -> str:
    """Return the name with the line that submitted the longest computation; the name alone if code is not recorded."""
    start, stop = extent(recording)
    rows = inside_block(recording)["computations"].records("code", "code_line", "start_us", "stop_us")
    # Work of an earlier call may still run when a block begins.
    own = [row for row in rows if row[2] >= start] or list(rows)
    longest = max(own, key=lambda row: (row[3] or stop) - row[2], default=None)
    line = call_line(str(longest[0]), int(longest[1])) if longest is not None else ""
    line = line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 1]}…"
    return f"{name}: {line}" if line and name else line or name
