"""Write a report of a block of work as one HTML file.

The work is recorded to a temporary file as with ``record``, and the client makes the report from that file, so that the
scheduler is not burdened. A problem with the report never affects the user's own work and exceptions.
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
from daskscope.client.server import configured_url, describe_upload, find_server, in_account, upload_report
from daskscope.collector.privacy import Scrubber, bounded, without_arguments
from daskscope.collector.settings import Settings
from daskscope.errors import DaskscopeError
from daskscope.model.recording import Recording
from daskscope.report.document import report_page
from daskscope.report.html import title_of
from daskscope.wire.file import frames_of_rows, read_recording

logger = logging.getLogger("daskscope")

#: Characters of the calling code in a report.
CODE_LIMIT = 20_000
#: Characters of the traceback of an exception that ended the block.
FAILURE_LIMIT = 20_000
#: Epoch of the rows that the client adds: higher than any recorder's, so that these rows are the newest.
LAST_EPOCH = 1 << 62


class _ReportRecord(record):
    kind = "report"


class Report:
    """The object that ``performance_report`` yields; complete once its block has ended."""

    def __init__(self, filename: str) -> None:
        #: Path of the file; None until it is written.
        self.path: str | None = None
        #: URL at the server; None if no server is configured.
        self.url: str | None = None
        #: The recording; None until the block has ended.
        self.recording: Recording | None = None
        #: The error if the report could not be written or uploaded; else empty.
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

    Works as ``with`` and, with an asynchronous client, as ``async with``. ``filename`` may be any URL that fsspec can write,
    with ``storage_options`` for it. ``stacklevel`` selects the frame whose code is shown as the calling code: 1 is the block
    itself. If a server is configured, the report is uploaded as well, unless ``upload=False``. With ``private``, only members
    of the ``account`` can see it; otherwise anyone with the link can. What the report contains does not depend on that, but on
    the configuration, such as ``daskscope.analytics.private``. ``tags`` are stored with it.
    """

    def __init__(
        self,
        filename: str | Path = "dask-report.html",
        private: bool = False,  # noqa: FBT001, FBT002 (the order users know)
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
        self._failure = _format_failure(error, self._chosen)
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
        self._failure = _format_failure(error, self._chosen)
        # A report of a million tasks takes seconds to write, which must not block the client's event loop.
        await asyncio.get_running_loop().run_in_executor(None, self._write)

    def _describe(self, frame: FrameType | None) -> None:
        chosen = self._chosen = settings()
        scrubber = _scrubber()
        if chosen.names:
            self.tags = {scrubber.scrub(name): scrubber.scrub_value(name, str(tag)) for name, tag in self.tags.items()}
            self._record.name = scrubber.scrub(self._record.name)
        else:
            self.tags, self._record.name = {}, "report"
        self._record.labels = self.tags
        self._code = bounded(scrubber.scrub(self._find_code(frame)), CODE_LIMIT) if chosen.code else ""

    def _find_code(self, frame: FrameType | None, /) -> str:
        """Return the code to show as the calling code."""
        return calling_code(frame, self._stacklevel)

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
            page = report_page(
                recording, title=title_of(self._record.name, recording), code=self._code, failure=self._failure
            )
            with fsspec.open(self.filename, "wb", compression="infer", **self.storage_options) as file:
                file.write(page)
            report.path = self.filename
            self._upload(recording)
            if report.url is None:
                sys.stdout.write(f"daskscope wrote the report {self.filename}\n")
        except Exception as problem:  # noqa: BLE001 (the user's work is done; a failed report is only logged)
            report.problem = str(problem) or repr(problem)
            logger.warning(
                "daskscope: the report %s was not written (%s). Check that the path is writable.",
                self.filename,
                report.problem,
            )
        finally:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _upload(self, recording: Recording) -> None:
        """Send the recording to the server if one is configured; the file is already written."""
        if self.upload is False or (self.upload is None and not configured_url()):
            return
        report = self._report
        try:
            data = self._record.path.read_bytes() + b"".join(self._labels(recording))
            sent = upload_report(
                find_server(self.account),
                data,
                filename=self.filename if self._chosen.names else "report.html",
                private=True if self.private else None,
                title=title_of(self._record.name, recording),
                tags=[f"{name}:{value}" for name, value in self.tags.items()],
            )
        except DaskscopeError as problem:
            report.problem = str(problem)
            logger.warning(
                "daskscope: the report was not uploaded (%s) It is in %s. Upload it with: daskscope reports upload %s%s",
                problem,
                self.filename,
                self.filename,
                in_account(self.account),
            )
            return
        report.url = sent["url"]
        sys.stdout.write(describe_upload(sent))

    def _labels(self, recording: Recording) -> Iterator[bytes]:
        """Yield the window again, with the calling code and the exception, which only the client knows."""
        windows, clusters = recording["windows"], recording["clusters"]
        if not windows.rows or not clusters.rows:
            return
        row = {name: windows[name].tolist()[0] for name in windows}
        labels = {**self.tags, "daskscope.code": self._code, "daskscope.failure": self._failure}
        rows = {"windows": [{**row, "labels": json.dumps(labels)}]}
        yield from frames_of_rows(rows, cluster=str(clusters["cluster"][0]), epoch=LAST_EPOCH)


def only_window(recording: Recording, window: str) -> Recording:
    """Return the recording without other windows: a nested report covers only its own block."""
    windows = recording["windows"]
    return replace(recording, tables={**recording.tables, "windows": windows.take(windows["window"] == window)})


def calling_code(frame: FrameType | None, stacklevel: int) -> str:
    """Return the source of the function, cell or script that entered the block."""
    for _ in range(stacklevel):
        frame = frame.f_back if frame is not None else None
    if frame is None:
        return ""
    try:
        return inspect.getsource(frame)
    except (OSError, TypeError):
        return ""


def summary_html(summary: Summary, link: str) -> str:
    """Return a short summary for notebooks."""
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


def _format_failure(error: BaseException | None, chosen: Settings) -> str:
    """Return the traceback of an exception that ended the block; only its type, if no text of exceptions is recorded."""
    if error is None:
        return ""
    if not chosen.exception_text:
        return type(error).__name__
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return bounded(_scrubber().scrub(without_arguments(text)), FAILURE_LIMIT)


def _scrubber() -> Scrubber:
    return Scrubber.gather(os.environ, dask.config.config)
