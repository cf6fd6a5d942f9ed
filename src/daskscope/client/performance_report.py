"""A report of a stretch of work, as one HTML file.

The work is recorded into a temporary file like ``record`` does, and the report is made here, in the client, from that file: the
scheduler only hands over what it has. Whatever goes wrong with the report, the user's own work and exceptions pass untouched.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import inspect
import json
import logging
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import dask.config
import distributed
import fsspec

from daskscope import units
from daskscope.analysis.summary import Summary, summarise
from daskscope.client.config import settings
from daskscope.client.record import record
from daskscope.client.reports import upload_report
from daskscope.client.server import configured_url, find_server
from daskscope.collector.privacy import Scrubber, bounded
from daskscope.errors import DaskscopeError
from daskscope.model.recording import Recording
from daskscope.report.document import report_page
from daskscope.wire.file import read_recording
from daskscope.wire.rows import frames_of_rows

logger = logging.getLogger("daskscope")

#: A script of any length can stand in a report; what is beyond this nobody reads there.
CODE_LIMIT = 20_000
#: The epoch of what the client adds to a recording: after any recorder's, so that its rows are the newest.
LAST_EPOCH = 1 << 62


class _ReportRecord(record):
    kind = "report"


class Report:
    """What ``performance_report`` yields; complete once its block has ended."""

    def __init__(self, filename: str) -> None:
        #: Where the file is, None until it is written.
        self.path: str | None = None
        #: The address at a server, None where none is configured.
        self.url: str | None = None
        #: Everything that was recorded, None until the block has ended.
        self.recording: Recording | None = None
        #: What went wrong with the report itself; empty when nothing did.
        self.problem = ""
        self._filename = filename

    def __getitem__(self, name: str) -> Any:
        if name in ("path", "url", "recording", "problem"):
            return getattr(self, name)
        raise KeyError(name)

    def __repr__(self) -> str:
        state = f"at {self.path}" if self.path else self.problem or "not written yet"
        return f"<daskscope report {self._filename}: {state}>"

    def _repr_html_(self) -> str:
        if self.recording is None:
            return f"<p>{html.escape(repr(self))}</p>"
        return summary_html(summarise(self.recording), self.url or self.path or "")


class performance_report:
    """Record a block of work and write a report of it.

    >>> with daskscope.performance_report("dask-report.html"):      # doctest: +SKIP
    ...     df.groupby("name").value.mean().compute()

    Works as ``with`` and, with an asynchronous client, as ``async with``. ``filename`` may be any address that fsspec can
    write, with ``storage_options`` for it. ``stacklevel`` says whose code is shown as the calling code: 1 is the block itself.
    Where a server is configured the report is uploaded as well, unless ``upload=False``: ``private`` shows it to members of
    the ``account`` only, else whoever has the link sees it. ``tags`` are kept with it.
    """

    def __init__(
        self,
        filename: str | Path = "dask-report.html",
        private: bool = False,  # noqa: FBT001, FBT002 (the order that users know)
        account: str | None = None,
        *,
        client: distributed.Client | None = None,
        upload: bool | None = None,
        tags: dict[str, str] | None = None,
        storage_options: dict[str, Any] | None = None,
        stacklevel: int = 1,
    ) -> None:
        self.filename = str(filename)
        self.private, self.account, self.upload = private, account, upload
        self.tags = dict(tags or {})
        self.storage_options = dict(storage_options or {})
        self._stacklevel = max(1, stacklevel)
        self._directory = Path(tempfile.mkdtemp(prefix="daskscope-report-"))
        name = Path(self.filename).name.partition(".")[0] or "report"
        self._record = _ReportRecord(self._directory / "report.daskscope", client, name=name)
        self._report = Report(self.filename)
        self._code = self._failure = ""

    def __enter__(self) -> Report:
        self._describe(inspect.currentframe())
        with self._cleaning_up():
            self._record.__enter__()
        return self._report

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._record.__exit__(kind, error, trace)
        self._failure = _text(error)
        self._write()

    async def __aenter__(self) -> Report:
        self._describe(inspect.currentframe())
        with self._cleaning_up():
            await self._record.__aenter__()
        return self._report

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._record.__aexit__(kind, error, trace)
        self._failure = _text(error)
        # A million tasks take seconds to write; the client's event loop has other things to do.
        await asyncio.get_running_loop().run_in_executor(None, self._write)

    def _describe(self, frame: FrameType | None) -> None:
        self._record.labels = self.tags
        self._code = calling_code(frame, self._stacklevel) if settings().code else ""

    @contextlib.contextmanager
    def _cleaning_up(self) -> Any:
        try:
            yield
        except BaseException:
            shutil.rmtree(self._directory, ignore_errors=True)
            raise

    def _write(self) -> None:
        report = self._report
        try:
            report.recording = recording = only_window(read_recording(self._record.path), self._record.id)
            page = report_page(recording, title=self._record.name, code=self._code, failure=self._failure)
            with fsspec.open(self.filename, "wb", compression="infer", **self.storage_options) as file:
                file.write(page)
            report.path = self.filename
            self._upload(recording)
        except Exception as problem:  # noqa: BLE001 (the user's work is done; a report that failed is one line)
            report.problem = str(problem) or repr(problem)
            logger.warning(
                "daskscope: the report %s was not written (%s). Check that this path can be written.",
                self.filename,
                report.problem,
            )
        finally:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _upload(self, recording: Recording) -> None:
        """Send what was recorded to the server, where one is configured; the file is written whatever becomes of it."""
        if self.upload is False or (self.upload is None and not configured_url()):
            return
        report = self._report
        try:
            data = self._record.path.read_bytes() + b"".join(self._texts(recording))
            sent = upload_report(
                find_server(self.account),
                data,
                filename=self.filename,
                private=True if self.private else None,
                title=self._record.name,
                tags=[f"{name}:{value}" for name, value in self.tags.items()],
            )
        except DaskscopeError as problem:
            report.problem = str(problem)
            logger.warning(
                "daskscope: the report was not uploaded (%s) It is in %s; repeat with: daskscope reports upload %s",
                problem,
                self.filename,
                self.filename,
            )
            return
        report.url = sent["url"]
        sys.stdout.write(f"Performance Report Available at: {report.url}\n")

    def _texts(self, recording: Recording) -> Iterator[bytes]:
        """The window once more, with what only this side knows: the calling code and the exception."""
        windows, clusters = recording["windows"], recording["clusters"]
        if not windows.rows or not clusters.rows:
            return
        row = {name: windows[name].tolist()[0] for name in windows}
        labels = {**self.tags, "daskscope.code": self._code, "daskscope.failure": self._failure}
        rows = {"windows": [{**row, "labels": json.dumps(labels)}]}
        yield from frames_of_rows(rows, cluster=str(clusters["cluster"][0]), epoch=LAST_EPOCH)


def only_window(recording: Recording, window: str) -> Recording:
    """The recording without the windows of others: a report inside of another is about its own block."""
    windows = recording["windows"]
    return replace(recording, tables={**recording.tables, "windows": windows.take(windows["window"] == window)})


def calling_code(frame: FrameType | None, stacklevel: int) -> str:
    """The source of the function, cell or script that entered the block."""
    for _ in range(stacklevel):
        frame = frame.f_back if frame is not None else None
    if frame is None:
        return ""
    try:
        code = inspect.getsource(frame)
    except (OSError, TypeError):
        return ""
    return bounded(Scrubber.gather(os.environ, dask.config.config).scrub(code), CODE_LIMIT)


def summary_html(summary: Summary, link: str) -> str:
    """The numbers that matter in a few lines, for a notebook."""
    tasks = sum(prefix.count for prefix in summary.prefixes)
    failed = sum(error.count - error.retried for error in summary.errors)
    rows = [
        ("duration", units.duration(summary.duration_us)),
        ("tasks", units.count(tasks)),
        ("errors", units.count(failed)),
        ("workers", units.count(len(summary.workers))),
        *((f"{p.prefix} × {units.count(p.count)}", units.duration(p.total_us)) for p in summary.prefixes[:5]),
    ]
    cells = "".join(f"<tr><td>{html.escape(k)}</td><td>{html.escape(v)}</td></tr>" for k, v in rows)
    safe = html.escape(link, quote=True)
    anchor = f'<p><a href="{safe}" target="_blank">{safe}</a></p>' if link else ""
    return f"<table>{cells}</table>{anchor}"


def _text(error: BaseException | None) -> str:
    return "" if error is None else "".join(traceback.format_exception(type(error), error, error.__traceback__))
