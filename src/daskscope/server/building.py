"""Build documents: the work between a request for a document and its file in the store."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from daskscope import units
from daskscope.errors import DaskscopeError
from daskscope.server.build_job import Job, Result, run_build
from daskscope.server.child_errors import raise_again
from daskscope.server.child_processes import memory_attempts
from daskscope.server.rendering import (
    Document,
    Subject,
    render_subject,
    render_upload,
    store_document,
)
from daskscope.server.services import Services
from daskscope.storage.archive import Archive
from daskscope.storage.builds import LEASE_US, Build, renew_build
from daskscope.storage.database import DatabaseError, detail_of
from daskscope.storage.runs import Amount, RunTooLarge

logger = logging.getLogger("daskscope.server")

#: Memory to build a document: per task, and of a process without any. Up to 1.5 million tasks, a report has all of them.
TASK_NBYTES, PROCESS_NBYTES = 700, 300 * 1024 * 1024
#: What the server's own process reads to build something: a process with a limit on its memory takes a second to start. Rows of all
#: tables count, and unpacked bytes: a recorder may send six million samples of one task in 6 MB, which take 3.7 GB.
HERE = Amount(nbytes=32 * 1024 * 1024, rows=200_000)
#: The same while other accounts are active. Threads share the interpreter lock: building the document of 20,000 task prefixes here
#: made 99 % of the acknowledgements of others take 200 instead of 12 ms.
HERE_BESIDE_OTHERS = Amount(nbytes=2 * 1024 * 1024, rows=5_000)
#: Memory that this takes.
HERE_NBYTES = 160 * 1024 * 1024
#: What it reads of a table to list rows: some of the columns, and nothing is computed.
LISTED = Amount(nbytes=256 * 1024 * 1024, rows=2_000_000)
#: Documents with more tasks are built in a process of their own.
MAX_TASKS_HERE = 100_000
#: How long a build may take. Five million tasks take 10 to 20 s.
BUILD_S = 900.0
#: A build is renewed this often, so that it survives three failures of the database.
RENEW_S = LEASE_US / 4e6


class BuildFailed(DaskscopeError):
    """A document cannot be built. The message can be shown to anyone."""


@dataclass(frozen=True)
class Built:
    """A document in the store that has no name yet."""

    path: str
    nbytes: int
    #: Whether all rows of the run could be read.
    is_complete: bool = True
    #: The cluster of an uploaded recording.
    cluster: str = ""
    #: The document, if it is in memory.
    document: Document | None = None


def amount_here(services: Services, account: int) -> Amount:
    """Return how much the server's own process may read at once to build something for an account."""
    return HERE if services.pools.shares.is_alone(account) else HERE_BESIDE_OTHERS


def build_document(services: Services, subject: Subject, tasks: int) -> Built:
    """Build the document of a run or computation with some tasks, and store it."""
    here = amount_here(services, subject.account)
    if tasks <= min(MAX_TASKS_HERE, here.rows):
        try:
            with services.build_memory.reserve(HERE_NBYTES, subject.account):
                document, is_complete = render_subject(services.archive, subject, here)
            return _stored(services, subject.account, document, is_complete=is_complete)
        except RunTooLarge:
            pass
    job = _job(services, subject.account, subject.title, run=subject.run, computation=subject.computation)
    return _build_apart(services, job, tasks)


def build_upload(services: Services, account: int, path: Path, title: str, unpacked: Amount) -> Built:
    """Build the document of a recording file with some rows and bytes, and store it."""
    here = amount_here(services, account)
    if unpacked.rows > min(MAX_TASKS_HERE, here.rows) or unpacked.nbytes > here.nbytes:
        return _build_apart(services, _job(services, account, title, recording=str(path)), unpacked.rows)
    with services.build_memory.reserve(HERE_NBYTES, account):
        document, cluster = render_upload(path, title)
    return _stored(services, account, document, cluster=cluster)


def _stored(
    services: Services, account: int, document: Document, *, is_complete: bool = True, cluster: str = ""
) -> Built:
    services.counters.add("documents")
    path = store_document(services.archive, account, document)
    return Built(path, document.nbytes, is_complete, cluster, document)


def _job(
    services: Services, account: int, title: str, *, run: int = 0, computation: str = "", recording: str = ""
) -> Job:
    memory = services.settings.build_memory
    return Job(services.storage, memory, account, title, run, computation, recording)


def _build_apart(services: Services, job: Job, tasks: int) -> Built:
    """Build a document in a process of its own: first with the memory it should need, then with all there is."""
    result = Result("memory")
    for nbytes in memory_attempts(PROCESS_NBYTES + tasks * TASK_NBYTES, services.build_memory.nbytes):
        with services.build_memory.reserve(nbytes, job.account):
            result = run_build(services.child_processes, _with_memory(job, nbytes), BUILD_S)
        if result.outcome != "memory":
            break
    _check(result, services.build_memory.nbytes)
    services.counters.add("documents")
    return Built(result.path, result.nbytes, result.is_complete, result.cluster)


def _with_memory(job: Job, nbytes: int) -> Job:
    return Job(job.storage, nbytes, job.account, job.title, job.run, job.computation, job.recording)


def _check(result: Result, memory: int) -> None:
    """Raise the error of a build that failed."""
    if result.outcome == "built":
        return
    raise_again(result.outcome, result.detail)
    if result.outcome == "memory":
        raise BuildFailed(
            f"Building this document needs more than {units.nbytes(memory)} of memory. The server's operator can raise "
            "--build-memory. A single computation may be small enough."
        )
    logger.error("a document cannot be built: %s", result.detail)
    if result.outcome == "lost":
        raise BuildFailed(
            "The process that built this document was ended, for example because the machine has too little memory. "
            "Try again in a minute, or ask the server's operator, whose log says more."
        )
    raise BuildFailed("This document cannot be built. The server's log says why.")


@contextmanager
def renewed(archive: Archive, build: Build) -> Iterator[None]:
    """Keep a build valid during a block."""
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(RENEW_S):
            try:
                with archive.write() as tx:
                    renew_build(tx, build)
            except DatabaseError as error:
                logger.warning("the build of a document cannot be renewed: %s", detail_of(error))

    thread = threading.Thread(target=renew, name="daskscope-renew", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
