"""Read a recording from a file, a directory of segments or a report, also if it is compressed with gzip.

The content of a file decides what it is, not its name.
"""

from __future__ import annotations

import gzip
import mmap
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

from daskscope import units
from daskscope.errors import DaskscopeError, NotARecording, RecordingError
from daskscope.model.recording import Recording
from daskscope.report.read_page import has_report
from daskscope.report.read_report import read_report
from daskscope.wire.file import read_recording
from daskscope.wire.layout import FILE_MAGIC

#: A daskscope report, a report by Dask, another page, or anything else, which ``wire.file`` judges.
ContentKind = Literal["report", "dask report", "page", "recording"]

#: Bytes that may precede the first tag of a page.
BLANK = b"\xef\xbb\xbf \t\r\n"
BOKEH_TAG = b'<script type="application/json"'
GZIP_MAGIC = b"\x1f\x8b"
#: Limit of unpacked files: a report of a million tasks has 13 MB, but a small file can unpack to any size.
MAX_NBYTES = 1 << 30
STEP = 1 << 20


def read_source(path: str | Path) -> Recording:
    """Return the recording at a path."""
    path = Path(path)
    with unpacked(path) as file:
        if content_kind(file) == "recording":
            recording = read_recording(file)
        else:
            check_report(file)
            recording = read_report(file)
    return replace(recording, source=str(path)) if file != path else recording


def content_kind(path: Path) -> ContentKind:
    """Return the kind of a file or directory, judged by its content."""
    try:
        if not path.is_file():
            return "recording"
        with path.open("rb") as file:
            start = file.read(1024)
            if start.startswith(FILE_MAGIC) or not start.lstrip(BLANK).startswith(b"<"):
                return "recording"
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                if has_report(data):
                    return "report"
                at = data.find(BOKEH_TAG)
                return "dask report" if at >= 0 and data.find(b"roots", at) >= 0 else "page"
    except OSError:
        # ``read_recording`` gets the same error and reports it.
        return "recording"


def check_report(path: Path) -> None:
    """Raise an error that says what to do if a page is not a daskscope report."""
    found = content_kind(path)
    if found == "dask report":
        raise RecordingError(
            f"{path} is a report written by Dask. Convert it to a recording with: daskscope import {path}"
        )
    if found == "page":
        raise NotARecording(
            f"{path} is a page without report data: it is not a report, or it is cut off. Give a recording, or a report written by "
            "daskscope.performance_report() or daskscope export --to html."
        )


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Yield the file itself, or a temporary unpacked copy if it is compressed; errors name the original path."""
    if not _is_gzip(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="daskscope-") as directory:
        file = Path(directory) / (path.stem if path.suffix == ".gz" else path.name)
        _unpack(path, file)
        try:
            yield file
        except DaskscopeError as error:
            raise type(error)(str(error).replace(str(file), str(path))) from None


def _is_gzip(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    except OSError:
        # The reader gets the same error and reports it.
        return False


def _unpack(path: Path, target: Path) -> None:
    nbytes = 0
    try:
        with gzip.open(path) as packed, target.open("wb") as file:
            while part := packed.read(STEP):
                nbytes += len(part)
                if nbytes > MAX_NBYTES:
                    raise RecordingError(
                        f"{path} unpacks to more than {units.nbytes(MAX_NBYTES)}, the limit for a report. Unpack it with: gunzip"
                    )
                file.write(part)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise RecordingError(f"{path} cannot be unpacked ({error}). Copy it again from where it was written.") from None
    except OSError as error:
        raise RecordingError(f"{path} cannot be unpacked: {error.strerror}. Unpack it with: gunzip") from None
