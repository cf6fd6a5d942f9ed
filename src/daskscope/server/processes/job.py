"""Jobs that read or write the archive in a process of their own, with limits on its memory and time.

``run_job`` is called by the server, ``do_job`` by the process. An error of the process is described in its reply, and raised again
in the server.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import msgspec

from daskscope.errors import DaskscopeError
from daskscope.server.processes.child import ENVIRONMENT, NICE, ChildProcesses, MemoryBudget, limit_memory
from daskscope.server.settings import Storage
from daskscope.storage.base.archive import Archive
from daskscope.storage.base.blobs import StoreAway, open_store
from daskscope.storage.base.database import Database, DatabaseError, InvalidInput, StorageError, detail_of
from daskscope.storage.base.vault import Vault
from daskscope.storage.catalog.computations import NoSuchComputation

Request = TypeVar("Request")
Result = TypeVar("Result")
#: ``lost`` if the process ended without a reply, ``stopped`` if the server stops. The others are errors of the process.
JobError = Literal[
    "memory", "no computation", "too large", "unreadable", "refused", "away", "storage", "failed", "lost", "stopped"
]
#: Threads and libraries that cannot start say only in words that there is no memory.
NO_MEMORY = ("can't start new thread", "Cannot allocate memory")

logger = logging.getLogger("daskscope.server")


class TooLarge(DaskscopeError):
    """The job needs too much memory or time, or has too many executions."""


class Unreadable(DaskscopeError):
    """Nothing of a run can be read."""


class JobFailed(DaskscopeError):
    """The job was not done. The message can be shown to anyone."""


class Job(msgspec.Struct, Generic[Request], frozen=True):
    """A request, how to reach the archive, and the limit on the memory."""

    request: Request
    storage: Storage
    memory_nbytes: int


class Reply(msgspec.Struct, Generic[Result], frozen=True):
    """The result of a job, or the error."""

    result: Result | None = None
    error: JobError | None = None
    detail: str = ""


@dataclass(frozen=True)
class Kind(Generic[Request, Result]):
    """A kind of job: the module that does it, its types, and how long it may take."""

    module: str
    job: type[Job[Request]]
    reply: type[Reply[Result]]
    timeout_s: float


@dataclass(frozen=True)
class Runner:
    """Runs jobs for a server."""

    processes: ChildProcesses
    memory: MemoryBudget
    storage: Storage

    def run_job(
        self,
        kind: Kind[Request, Result],
        request: Request,
        limits: Sequence[int],
        account: int | None = None,
        nice: int = NICE,
    ) -> Reply[Result]:
        """Do a job in a process of its own, with each limit on its memory until one suffices.

        The memory is reserved for the account, if there is one.
        """
        reply: Reply[Result] = Reply(error="memory")
        for nbytes in limits:
            job = Job(request, self.storage, nbytes)
            with nullcontext() if account is None else self.memory.reserve(nbytes, account):
                ended = self.processes.run(kind.module, job, kind.timeout_s, {**os.environ, **ENVIRONMENT}, nice=nice)
            reply = Reply(error="stopped", detail="the server stops") if ended is None else _read(kind, *ended)
            if reply.error != "memory":
                break
        return reply

    def memory_attempts(self, wanted: int) -> list[int]:
        """Return the memory to try a job with. Rows besides tasks, such as events and samples, are not in the estimate."""
        return [wanted, self.memory.nbytes] if wanted < self.memory.nbytes else [self.memory.nbytes]


def _read(kind: Kind[Request, Result], text: bytes, status: int) -> Reply[Result]:
    try:
        return msgspec.json.decode(text, type=kind.reply)
    except msgspec.DecodeError:
        # Killed by the system or by the time limit.
        why = signal.Signals(-status).name if status < 0 else f"status {status}"
        return Reply(error="lost", detail=f"the process ended with {why}")


def raise_again(reply: Reply[Result], problem: str) -> None:
    """Raise the error of a job; return for those that callers explain: too much memory, or an end for no known reason."""
    error, detail = reply.error, reply.detail
    if error == "no computation":
        raise NoSuchComputation
    if error == "unreadable":
        raise Unreadable(detail)
    if error == "too large":
        raise TooLarge(detail)
    if error == "refused":
        raise InvalidInput(detail)
    if error in ("away", "storage"):
        raise StoreAway(detail)
    if error == "stopped":
        raise JobFailed("The server is shutting down. Try again in a minute.")
    if error == "lost":
        logger.warning("%s: %s", problem, detail)
    if error == "failed":
        logger.error("%s: %s", problem, detail)
        raise JobFailed(f"{problem[0].upper()}{problem[1:]}. The server's log says why.")


def describe_error(error: Exception) -> tuple[JobError, str]:
    """Return the kind and the message of an error that ended a job."""
    if isinstance(error, MemoryError):
        return "memory", "it takes too much memory"
    if isinstance(error, NoSuchComputation):
        return "no computation", ""
    if isinstance(error, TooLarge):
        return "too large", str(error)
    if isinstance(error, Unreadable):
        return "unreadable", str(error)
    if isinstance(error, InvalidInput):
        return "refused", str(error)
    if isinstance(error, DatabaseError | StorageError | OSError):
        return "away" if isinstance(error, StoreAway) else "storage", detail_of(error)
    if isinstance(error, DaskscopeError):
        return "refused", str(error)
    return "memory" if any(part in str(error) for part in NO_MEMORY) else "failed", repr(error)


def do_job(
    kind: Kind[Request, Result],
    do: Callable[[Archive, Request], Result | None],
    prepare: Callable[[], None] | None = None,
) -> None:
    """Read a job, do it with a limit on the memory, write the reply, and end the process."""
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=kind.job)
    threading.Thread(target=_end_with_server, daemon=True).start()
    limit_memory(job.memory_nbytes)
    if prepare is not None:
        prepare()
    sys.stdout.buffer.write(msgspec.json.encode(_reply(job, do)))
    sys.stdout.buffer.flush()
    # The thread that reads standard input would keep the interpreter from ending.
    os._exit(0)


def _reply(job: Job[Request], do: Callable[[Archive, Request], Result | None]) -> Reply[Result]:
    try:
        with closing(_open_archive(job.storage)) as archive:
            return Reply(do(archive, job.request))
    except Exception as error:  # noqa: BLE001 (the server raises or logs it)
        kind, detail = describe_error(error)
        if kind == "failed":
            # A defect of daskscope: the operator sees it, because standard error belongs to the server.
            traceback.print_exc()
        return Reply(error=kind, detail=detail)


def _open_archive(storage: Storage) -> Archive:
    """Return the archive of the server. A job needs neither a clock nor lost clusters."""
    database = Database(storage.database, connections=2, statement_s=storage.database_timeout)
    store = open_store(storage.store, endpoint=storage.store_endpoint)
    return Archive(database, Vault(storage.masters), store, lambda: time.time_ns() // 1000, 0)


def _end_with_server() -> None:
    sys.stdin.buffer.read()
    os._exit(1)
