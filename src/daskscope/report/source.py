"""A recording from whatever holds one: a file, a directory of segments, or a report. What it is, its content says, not its name."""

from __future__ import annotations

import mmap
from dataclasses import replace
from pathlib import Path
from typing import Literal

from daskscope.errors import NotARecording, RecordingError
from daskscope.model.recording import Recording
from daskscope.report.compressed import unpacked
from daskscope.report.page import TAG
from daskscope.report.reader import read_report
from daskscope.wire.file import read_recording
from daskscope.wire.layout import FILE_MAGIC

#: What a path holds: a page of ours, of Dask, of somebody else; all else is for the reader of recordings to judge.
Holding = Literal["report", "dask report", "page", "recording"]

#: What may come before the first tag of a page.
BLANK = b"\xef\xbb\xbf \t\r\n"
BOKEH_TAG = b'<script type="application/json"'


def read_source(path: str | Path) -> Recording:
    """The recording at a path."""
    path = Path(path)
    with unpacked(path) as file:
        if holding(file) == "recording":
            recording = read_recording(file)
        else:
            check_report(file)
            recording = read_report(file)
    return replace(recording, source=str(path)) if file != path else recording


def holding(path: Path) -> Holding:
    """What a path holds, by its content."""
    try:
        if not path.is_file():
            return "recording"
        with path.open("rb") as file:
            start = file.read(1024)
            if start.startswith(FILE_MAGIC) or not start.lstrip(BLANK).startswith(b"<"):
                return "recording"
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                if data.find(TAG) >= 0:
                    return "report"
                at = data.find(BOKEH_TAG)
                return "dask report" if at >= 0 and data.find(b"roots", at) >= 0 else "page"
    except OSError:
        # The reader of recordings meets the same error, and says it.
        return "recording"


def check_report(path: Path) -> None:
    """Raise what a user can do about a page that is no report of ours."""
    found = holding(path)
    if found == "dask report":
        raise RecordingError(
            f"{path} is a report that Dask wrote. Make a recording of it with: daskscope import {path}"
        )
    if found == "page":
        raise NotARecording(
            f"{path} is a page without the data of a report: it is something else, or cut off. Give a recording, or a report that "
            "daskscope.performance_report() or daskscope export --to html wrote."
        )
