"""The title of a report: its name, and the line of code that took longest."""

from __future__ import annotations

from daskscope.model.recording import Recording

MAX_LINE = 80


def title_of(name: str, recording: Recording) -> str:
    """Return the name with the line that submitted the longest computation; the name alone if code is not recorded."""
    rows = recording["computations"].records("code", "code_line", "start_us", "stop_us")
    longest = max(rows, key=lambda row: row[3] - row[2], default=None)
    line = _line(str(longest[0]), int(longest[1])) if longest is not None else ""
    return f"{name}: {line}" if line and name else line or name


def _line(code: str, number: int) -> str:
    lines = code.splitlines()
    line = lines[number].strip() if 0 <= number < len(lines) else ""
    return line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 1]}…"
