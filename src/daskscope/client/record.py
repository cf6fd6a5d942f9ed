"""Record a stretch of work into one file.

The recorder inside the scheduler keeps frames for this client; the client fetches them once a second and appends them to the
file, so a client killed in the middle leaves a file that is good up to the last second.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
import uuid
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import dask.config
import distributed

from daskscope.client.config import settings
from daskscope.client.connection import call, find_client, install
from daskscope.collector.settings import Settings
from daskscope.errors import ClusterError, RecordingError
from daskscope.model.recording import Recording
from daskscope.wire.file import read_recording
from daskscope.wire.layout import FILE_MAGIC

logger = logging.getLogger("daskscope")

POLL_S = 1.0
NFRAMES = "distributed.diagnostics.computations.nframes"


class record:
    """Record everything the cluster does while the block runs.

    >>> with daskscope.record("run.daskscope"):          # doctest: +SKIP
    ...     df.groupby("name").value.mean().compute()
    >>> daskscope.open_recording("run.daskscope")        # doctest: +SKIP

    Works as ``with`` and, with an asynchronous client, as ``async with``. Nothing has to be installed on the cluster, and
    nothing stays there afterwards unless the cluster is registered.
    """

    def __init__(
        self, path: str | Path, client: distributed.Client | None = None, *, name: str = "", **switches: Any
    ) -> None:
        self.path = Path(path)
        self.name = name or self.path.stem
        self.client = client
        #: What went wrong while recording, empty when nothing did; the file then ends early.
        self.problem = ""
        self._switches = switches
        self._id = f"record-{uuid.uuid4().hex}"
        self._acknowledged = -1
        self._file: BinaryIO | None = None
        self._poll: asyncio.Task[None] | None = None
        self._config: dask.config.set | None = None

    @property
    def recording(self) -> Recording:
        """What has been recorded, read back from the file."""
        return read_recording(self.path)

    def __enter__(self) -> record:
        client = self._prepare()
        if client.asynchronous:
            raise ClusterError("This client is asynchronous: use 'async with daskscope.record(...)'.")
        try:
            client.sync(self._begin)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.client is not None
        try:
            self.client.sync(partial(self._end, error))
        except (OSError, ClusterError, asyncio.TimeoutError, RuntimeError) as problem:
            self._note(problem)
        finally:
            self._close()

    async def __aenter__(self) -> record:
        self._prepare()
        try:
            await self._begin()
        except BaseException:
            self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._end(error)
        except (OSError, ClusterError, asyncio.TimeoutError, RuntimeError) as problem:
            self._note(problem)
        finally:
            self._close()

    def _prepare(self) -> distributed.Client:
        self.client = client = find_client(self.client)
        self._settings: Settings = settings(name=self.name, **self._switches)
        try:
            self._file = self.path.open("wb")
            self._file.write(FILE_MAGIC)
            self._file.flush()
        except OSError as error:
            raise RecordingError(f"{self.path} cannot be written: {error.strerror}. Choose another path.") from None
        if self._settings.code and not dask.config.get(NFRAMES, 0):
            self._config = dask.config.set({NFRAMES: 1})
        return client

    async def _begin(self) -> None:
        client = self.client
        assert client is not None
        await install(client, self._settings, self._id)
        await call(client, "subscribe", reader=self._id, client=client.id)
        await call(client, "window", window=self._id, kind="record", name=self.name)
        self._poll = asyncio.get_running_loop().create_task(self._fetch_for_ever())

    async def _end(self, error: BaseException | None) -> None:
        client = self.client
        assert client is not None
        if self._poll is not None:
            self._poll.cancel()
            await asyncio.gather(self._poll, return_exceptions=True)
        text = "".join(traceback.format_exception_only(type(error), error)).strip() if error is not None else ""
        await call(client, "window", window=self._id, done=True, error=text)
        await call(client, "flush", reader=self._id)
        while await self._fetch():
            pass
        await call(client, "unsubscribe", reader=self._id)

    async def _fetch_for_ever(self) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            try:
                while await self._fetch():
                    pass
            except (OSError, ClusterError) as problem:
                # One outage of the scheduler's connection is no reason to give up: the frames are kept there.
                self.problem = str(problem)

    async def _fetch(self) -> bool:
        """Fetch the next frames and append them; True if there may be more."""
        assert self.client is not None and self._file is not None
        answer = await call(self.client, "take", reader=self._id, acknowledged=self._acknowledged)
        if answer.get("gone"):
            raise ClusterError("the scheduler forgot this recording")
        frames = answer["frames"]
        if frames:
            await asyncio.get_running_loop().run_in_executor(None, self._append, frames)
            self._acknowledged = answer["last"]
            self.problem = ""
        return bool(frames)

    def _append(self, frames: list[bytes]) -> None:
        assert self._file is not None
        for frame in frames:
            self._file.write(frame)
        self._file.flush()

    def _note(self, problem: BaseException) -> None:
        self.problem = str(problem)
        logger.warning(
            "daskscope: the recording %s ends early (%s). What arrived before is there: daskscope show %s",
            self.path,
            problem,
            self.path,
        )

    def _close(self) -> None:
        if self._poll is not None:
            self._poll.cancel() if not self._poll.done() else None
            self._poll = None
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._config is not None:
            self._config.__exit__(None, None, None)
            self._config = None


def open_recording(path: str | Path) -> Recording:
    """Open a recording file, or a directory of them, up to its last whole batch."""
    return read_recording(path)
