"""Record a block of work to one file.

The recorder in the scheduler buffers frames for this client. The client fetches them once a second and appends them to the
file, so the file of a client that is killed is valid up to the last second.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import traceback
import uuid
from collections.abc import Awaitable
from functools import partial
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any

import distributed

from daskscope.client.analyse import find_recording
from daskscope.client.config import settings
from daskscope.client.connection import call, calling_code, can_send, find_client, install
from daskscope.collector.privacy import without_arguments
from daskscope.collector.scheduler.events import METRIC_TOPIC
from daskscope.collector.settings import Settings
from daskscope.errors import ClusterError, RecordingError
from daskscope.model.recording import Recording
from daskscope.wire.file import read_recording
from daskscope.wire.layout import FILE_MAGIC

logger = logging.getLogger("daskscope")

POLL_S = 1.0
#: Time limit of calls at the end of the block. The scheduler waits 2.5 s for its workers and 5 s for its writer.
END_TIMEOUT = 15.0
ABANDON_TIMEOUT = 3.0


class record:
    """Record the cluster while the block runs.

    >>> with daskscope.record("run.daskscope"):          # doctest: +SKIP
    ...     df.groupby("name").value.mean().compute()
    >>> daskscope.open_recording("run.daskscope")        # doctest: +SKIP

    Works as ``with`` and, with an asynchronous client, as ``async with``. Nothing needs to be installed on the cluster, and
    the recorder leaves it afterwards unless the cluster is registered.
    """

    #: Kind of the window in the recording.
    kind = "record"

    def __init__(
        self, path: str | Path, client: distributed.Client | None = None, *, name: str = "", **switches: Any
    ) -> None:
        self.path = Path(path)
        self.name = name or self.path.stem
        self.client = client
        #: The error if recording failed and the file ends early; else empty.
        self.problem = ""
        self.labels: dict[str, str] = {}
        self._switches = switches
        #: ID of the window among all windows of the cluster.
        self.id = f"record-{uuid.uuid4().hex}"
        self._acknowledged = -1
        self._output: Output | None = None
        self._poll: asyncio.Task[None] | None = None
        self._code = False

    @property
    def recording(self) -> Recording:
        """Return the recording, read from the file."""
        return read_recording(self.path)

    def __enter__(self) -> record:
        client = find_client(self.client)
        if client.asynchronous:
            raise ClusterError("This client is asynchronous: use 'async with daskscope.record(...)'.")
        self._prepare(client)
        try:
            client.sync(self._begin)
        except BaseException:
            with contextlib.suppress(Exception):
                client.sync(self._abandon)
            self._close(began=False)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.client is not None
        try:
            self.client.sync(partial(self._end, error))
        except Exception as problem:  # noqa: BLE001 (a failed recording must not affect the user's work)
            self._warn(problem)
        finally:
            self._close()

    async def __aenter__(self) -> record:
        client = find_client(self.client)
        if not client.asynchronous:
            raise ClusterError("This client is not asynchronous: use 'with daskscope.record(...)'.")
        self._prepare(client)
        try:
            await self._begin()
        except BaseException:
            with contextlib.suppress(Exception):
                await self._abandon()
            self._close(began=False)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._end(error)
        except Exception as problem:  # noqa: BLE001 (as above)
            self._warn(problem)
        finally:
            self._close()

    def _prepare(self, client: distributed.Client) -> None:
        self.client = client
        self._settings: Settings = settings(name=self.name, **self._switches)
        self._output = Output(self.path)
        if self._settings.code and can_send(client):
            calling_code.acquire()
            self._code = True

    async def _begin(self) -> None:
        client, output = self.client, self._output
        assert client is not None and output is not None
        await install(client, self._settings, self.id)
        await call(client, "subscribe", reader=self.id)
        await call(client, "window", window=self.id, kind=self.kind, name=self.name, labels=self.labels)
        output.begin()
        self._ending = asyncio.Event()
        self._poll = asyncio.get_running_loop().create_task(self._fetch_until_end())

    async def _abandon(self) -> None:
        """Release the claim on the recorder after a failed start."""
        assert self.client is not None
        await asyncio.wait_for(call(self.client, "unsubscribe", reader=self.id), ABANDON_TIMEOUT)

    async def _end(self, error: BaseException | None) -> None:
        client = self.client
        assert client is not None
        text = "".join(traceback.format_exception_only(type(error), error)).strip() if error is not None else ""
        text = without_arguments(text)
        try:
            try:
                # First, because the window ends when the block ends, not when the last frames have been fetched.
                await call(client, "window", END_TIMEOUT, window=self.id, done=True, error=text)
            finally:
                await self._stop_fetching()
            await call(client, "flush", END_TIMEOUT, reader=self.id)
            while await self._fetch():
                pass
        finally:
            # Even if the file failed, do not leave a recorder without a reader in the scheduler.
            await call(client, "unsubscribe", END_TIMEOUT, reader=self.id)

    async def _stop_fetching(self) -> None:
        """End the task that fetches frames. It is not cancelled: its thread may be writing to the file."""
        if self._poll is not None:
            self._ending.set()
            await self._poll

    async def _fetch_until_end(self) -> None:
        client = self.client
        assert client is not None
        while not self._ending.is_set() and client.status not in ("closing", "closed"):
            try:
                await asyncio.wait_for(self._ending.wait(), POLL_S)
            except asyncio.TimeoutError:
                pass
            try:
                while await self._fetch():
                    pass
            except (OSError, ClusterError) as problem:
                # Try again: the scheduler keeps the frames.
                self.problem = str(problem)

    async def _fetch(self) -> bool:
        """Fetch the next frames and append them; return whether there may be more."""
        assert self.client is not None and self._output is not None
        answer = await call(self.client, "fetch", END_TIMEOUT, reader=self.id, acknowledged=self._acknowledged)
        if answer.get("gone"):
            raise ClusterError("the scheduler dropped this recording")
        frames = answer["frames"]
        if frames:
            await asyncio.get_running_loop().run_in_executor(None, self._output.append, frames)
            self._acknowledged = answer["last"]
        self.problem = ""
        return bool(frames)

    def _warn(self, problem: BaseException) -> None:
        self.problem = str(problem) or repr(problem)
        logger.warning(
            "daskscope: the recording %s ends early (%s). Show the data up to then with: daskscope show %s",
            self.path,
            self.problem,
            self.path,
        )

    def _close(self, *, began: bool = True) -> None:
        if self._output is not None:
            self._output.close(began=began)
            self._output = None
        if self._code:
            calling_code.release()
            self._code = False


class Output:
    """The file of a recording. An existing file is kept until the recording has started."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._is_new = not path.exists()
        self._size = 0
        try:
            # Unbuffered: data of a failed write must not be written later, between other frames.
            self._file = FileIO(path, "ab")
            if self._is_new:
                self._write(FILE_MAGIC)
        except OSError as error:
            raise RecordingError(f"{path} cannot be written: {error.strerror}. Choose another path.") from None

    def begin(self) -> None:
        """Discard the content of an existing file."""
        if self._is_new:
            return
        try:
            self._file.truncate(0)
            self._write(FILE_MAGIC)
        except OSError as error:
            raise RecordingError(f"{self.path} cannot be written: {error.strerror}. Choose another path.") from None

    def append(self, frames: list[bytes]) -> None:
        """Append whole frames; if the disk is full, the file ends at the last whole frame."""
        for frame in frames:
            try:
                self._write(frame)
            except OSError:
                self._file.truncate(self._size)
                raise

    def close(self, *, began: bool) -> None:
        """Close the file, and delete a new one if the recording never started."""
        self._file.close()
        if not began and self._is_new:
            self.path.unlink(missing_ok=True)

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
        self._size += len(data)


def open_recording(path: str | Path) -> Recording:
    """Open a recording file, a directory of segments or a report, and return the recording up to its last whole batch.

    The ID of a cluster, or the URL of its page, opens its recording on the server.
    """
    return find_recording(path)


def log_metric(
    name: str,
    value: float,
    unit: str = "",
    *,
    client: distributed.Client | None = None,
    span: str = "",
    window: str = "",
    **labels: Any,
) -> Awaitable[None] | None:
    """Record ``value`` under ``name``, from a client or from inside a task. Does nothing if the cluster is not recorded.

    With an asynchronous client, await the result.
    """
    message = {"name": name, "value": float(value), "unit": unit, "labels": labels, "span": span, "window": window}
    if client is None:
        try:
            worker = distributed.get_worker()
        except ValueError:
            pass
        else:
            worker.log_event(METRIC_TOPIC, message)
            return None
    return find_client(client).log_event(METRIC_TOPIC, message)  # type: ignore[no-any-return]
