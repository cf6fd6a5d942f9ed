"""Build documents: the work between a request for a document and its file in the store."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from daskscope.errors import DaskscopeError
from daskscope.server.rendering import Document, Subject, render_subject, store_document
from daskscope.server.services import Services
from daskscope.storage.archive import Archive
from daskscope.storage.builds import LEASE_US, Build, renew_build
from daskscope.storage.database import DatabaseError, detail_of

logger = logging.getLogger("daskscope.server")

#: Memory needed per task to build a document.
TASK_NBYTES = 1_000
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
    is_complete: bool
    #: The document, if it is in memory.
    document: Document | None = None


def build_document(services: Services, subject: Subject, tasks: int) -> Built:
    """Build the document of a run or computation with some tasks, and store it."""
    with services.build_memory.reserve(tasks * TASK_NBYTES):
        document, is_complete = render_subject(services.archive, subject)
    services.counters.add("documents")
    path = store_document(services.archive, subject.account, document)
    return Built(path, document.nbytes, is_complete, document)


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
