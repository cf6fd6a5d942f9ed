"""Documents for the viewer: built from rows once and stored, so that opening a large computation again reads one file.

Any server can show every document: one builds it, here or in a process of its own, and the others wait for its file. The document
of a live run is a little behind, because it takes longer to build than its next batch takes to arrive.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from daskscope import __version__, units
from daskscope.report.schema import SCHEMA
from daskscope.server.build_document import Document, Subject, build_from_file, build_from_rows, store_document
from daskscope.server.caches import Shared
from daskscope.server.errors import Refusal, not_found
from daskscope.server.processes.build import BUILD, BuildRequest, Built
from daskscope.server.processes.job import JobFailed, raise_again
from daskscope.server.services import Services
from daskscope.storage.base.archive import Archive
from daskscope.storage.base.blobs import MissingBlob
from daskscope.storage.base.database import DatabaseError, StorageError, detail_of
from daskscope.storage.runs.documents import (
    INCOMPLETE,
    LEASE_US,
    Build,
    DocumentState,
    NewDocument,
    StoredDocument,
    begin_build,
    document_state,
    end_build,
    fail_build,
    keep_document,
    renew_build,
)
from daskscope.storage.runs.read import Amount, RunTooLarge

#: The last part of a document's path.
NAME = re.compile(r"[\w-]{1,100}", re.ASCII)
#: Maximum bytes of documents in memory: a page requests the report and then its blocks.
CACHE_NBYTES = 64 * 1024 * 1024
#: How old the document of a live run may be, per task. A build takes up to 10 µs per task, so that builds of one run take at most
#: a third of the time of a core: a run of 100,000 tasks is 2 s behind, one of five million 100 s.
MAX_AGE_US_PER_TASK = 20
#: How often to look whether another reader's build has ended: at first, and at last.
FIRST_LOOK_S, LAST_LOOK_S = 0.01, 0.5

_cache: Shared[Document] = Shared(CACHE_NBYTES)


@dataclass(frozen=True)
class Shown:
    """A document that a page shows."""

    document: Document
    path: str
    created_us: int

    @property
    def name(self) -> str:
        """Return the name that a page uses for the document it shows. It cannot be guessed."""
        return self.path.rpartition("/")[2]


def load(services: Services, account: int, path: str) -> Document:
    """Return a document from its blob."""

    def read() -> Document:
        data = services.archive.store.get(path)
        with services.archive.read() as tx:
            return Document.unpack(tx.open(account, data, path))

    return _cache.load(path, read)


def by_name(services: Services, account: int, name: str) -> Document:
    """Return a document that a page shows, whichever server made it. A live run has a newer one by now."""
    try:
        if not NAME.fullmatch(name):
            raise MissingBlob(name)
        return load(services, account, f"{account}/documents/{name}")
    except (MissingBlob, StorageError):
        raise Refusal(
            410, "replaced", "This document was replaced by a newer one. Reload the page to see it."
        ) from None


def store(services: Services, account: int, document: Document) -> str:
    """Store a document and return its path."""
    path = store_document(services.archive, account, document)
    _cache.put(path, document)
    return path


def version() -> str:
    """Return the version of the code; another version may compute other numbers."""
    return f"{__version__}/{SCHEMA}"


def is_readable(kept: StoredDocument) -> bool:
    """Return whether the viewer can show a document, also one of an earlier version."""
    return kept.version.rpartition("/")[2] == str(SCHEMA)


def showable(state: DocumentState) -> StoredDocument | None:
    """Return the stored document if readers get it as it is, or None if they wait for a newer one."""
    kept = state.kept
    if kept is None or not is_readable(kept):
        return None
    if kept.upto == state.newest_batch:
        return kept
    # Another reader of a live run builds the newer one.
    is_building = state.is_live and state.build is not None
    may_be_older = state.is_live or kept.upto == INCOMPLETE
    is_young = may_be_older and state.now_us - kept.created_us < state.tasks * MAX_AGE_US_PER_TASK
    return kept if is_building or is_young else None


def of_run(services: Services, account: int, run: int, title: str, computation: str = "") -> Shown:
    """Return the document of a run or computation. Build it if there is none that readers may get."""
    subject = Subject(account, run, title, computation)
    for pause_s in _pauses():
        state = look(services, subject)
        kept = showable(state)
        if kept is not None:
            try:
                shown = Shown(load(services, account, kept.path), kept.path, kept.created_us)
            except MissingBlob:
                pass
            else:
                if kept.version != version():
                    services.outdated.add(subject)
                return shown
        if state.build is not None and state.build.problem:
            raise build_failed(state.build.problem)
        built = None if state.build is not None else _build(services, subject, state)
        if built is not None:
            return built
        time.sleep(pause_s)
    raise AssertionError


def refresh(services: Services, subject: Subject) -> None:
    """Build a document anew if an earlier version made it."""
    state = look(services, subject)
    if state.build is None and (state.kept is None or state.kept.version != version()):
        _build(services, subject, state)


def look(services: Services, subject: Subject) -> DocumentState:
    """Return the state of a document."""
    with services.archive.snapshot() as tx:
        state = document_state(tx, subject.run, subject.computation)
    if state is None:
        raise not_found("such cluster")
    return state


def build_failed(problem: str) -> Refusal:
    return Refusal(503, "build_failed", problem, headers={"Retry-After": "60"})


def _pauses() -> Iterator[float]:
    pause_s = FIRST_LOOK_S
    while True:
        yield pause_s
        pause_s = min(2 * pause_s, LAST_LOOK_S)


def _build(services: Services, subject: Subject, state: DocumentState) -> Shown | None:
    """Build and store a document. Return None if another server builds it, or if its rows were deleted meanwhile."""
    with services.archive.write() as tx:
        build = begin_build(tx, subject.run, subject.computation)
    if build is None:
        return None
    try:
        with renewed(services.archive, build):
            made = build_run(services, subject, state.tasks)
    except JobFailed as error:
        with services.archive.write() as tx:
            fail_build(tx, build, str(error))
        raise build_failed(str(error)) from error
    except BaseException:
        # Without the database it ends by itself.
        with contextlib.suppress(DatabaseError), services.archive.write() as tx:
            end_build(tx, build)
        raise
    return _keep(services, subject, build, made, state.newest_batch)


def _keep(services: Services, subject: Subject, build: Build, made: Built, newest_batch: int) -> Shown | None:
    upto = newest_batch if made.is_complete else INCOMPLETE
    with services.archive.write() as tx:
        kept = keep_document(tx, build, NewDocument(made.path, made.nbytes, upto, version()))
    if kept is None:
        services.archive.store.delete(made.path)
        return None
    return Shown(load(services, subject.account, made.path), made.path, kept.created_us)


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
#: A build is renewed this often, so that it survives three failures of the database.
RENEW_S = LEASE_US / 4e6


def amount_here(services: Services, account: int) -> Amount:
    """Return how much the server's own process may read at once to build something for an account."""
    return HERE if services.pools.shares.is_alone(account) else HERE_BESIDE_OTHERS


def build_run(services: Services, subject: Subject, tasks: int) -> Built:
    """Build the document of a run or computation with the given number of tasks, and store it."""
    here = amount_here(services, subject.account)
    if tasks <= min(MAX_TASKS_HERE, here.rows):
        try:
            with services.build_memory.reserve(HERE_NBYTES, subject.account):
                document, is_complete = build_from_rows(services.archive, subject, here)
            return _stored(services, subject.account, document, is_complete=is_complete)
        except RunTooLarge:
            pass
    request = BuildRequest(subject.account, subject.title, subject.run, subject.computation)
    return _build_apart(services, request, tasks)


def build_upload(services: Services, account: int, path: Path, title: str, unpacked: Amount) -> Built:
    """Build the document of a recording file with the given rows and bytes, and store it."""
    here = amount_here(services, account)
    if unpacked.rows > min(MAX_TASKS_HERE, here.rows) or unpacked.nbytes > here.nbytes:
        return _build_apart(services, BuildRequest(account, title, recording=str(path)), unpacked.rows)
    with services.build_memory.reserve(HERE_NBYTES, account):
        document, cluster = build_from_file(path, title)
    return _stored(services, account, document, cluster=cluster)


def _stored(
    services: Services, account: int, document: Document, *, is_complete: bool = True, cluster: str = ""
) -> Built:
    services.counters.add("documents")
    return Built(store(services, account, document), document.nbytes, is_complete, cluster)


def _build_apart(services: Services, request: BuildRequest, tasks: int) -> Built:
    """Build a document in a process of its own: first with the memory it should need, then with all there is."""
    runner = services.runner
    limits = runner.memory_attempts(PROCESS_NBYTES + tasks * TASK_NBYTES)
    reply = runner.run_job(BUILD, request, limits, request.account)
    if reply.result is not None:
        services.counters.add("documents")
        return reply.result
    if reply.error == "memory":
        raise JobFailed(
            f"Building this document needs more than {units.nbytes(runner.memory.nbytes)} of memory. The server's operator can "
            "raise --build-memory. A single computation may be small enough."
        )
    if reply.error != "stopped":
        raise_again(reply, "this document cannot be built")
    raise JobFailed(
        "The process that built this document was ended, for example because the machine has too little memory. "
        "Try again in a minute, or ask the server's operator, whose log says more."
    )


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
