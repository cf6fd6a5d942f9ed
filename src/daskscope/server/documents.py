"""Documents for the viewer: built from rows once and stored, so that opening a large computation again reads one file.

Any server can show every document: one builds it, and the others wait for its file. The document of a live run is a little behind,
because it takes longer to build than its next batch takes to arrive.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

from daskscope import __version__
from daskscope.report.schema import SCHEMA
from daskscope.server.building import BuildFailed, Built, build_document, renewed
from daskscope.server.errors import Refusal, not_found
from daskscope.server.rendering import Document, Subject, store_document
from daskscope.server.services import Services
from daskscope.server.shared import Shared
from daskscope.storage.blobs import MissingBlob
from daskscope.storage.builds import Build, begin_build, end_build, fail_build
from daskscope.storage.database import DatabaseError, StorageError
from daskscope.storage.documents import (
    INCOMPLETE,
    DocumentState,
    NewDocument,
    StoredDocument,
    document_state,
    keep_document,
)

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
        return load(services, account, f"{account}/renderings/{name}")
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
            made = build_document(services, subject, state.tasks)
    except BuildFailed as error:
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
    if made.document is not None:
        _cache.put(made.path, made.document)
    return Shown(made.document or load(services, subject.account, made.path), made.path, kept.created_us)
