"""Build one document in a process of its own, with a limit on its memory.

A run of five million tasks takes gigabytes. In the server's own process, whatever exceeds the memory of the machine would end the
server, and with it the ingest of every other cluster.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from daskscope.server.processes.job import Job, Kind, Reply, do_job
from daskscope.storage.base.archive import Archive


class BuildRequest(msgspec.Struct, frozen=True):
    """A document to build: of a run, or of the recording file that a user uploads."""

    account: int
    title: str
    run: int = 0
    computation: str = ""
    recording: str = ""


class Built(msgspec.Struct, frozen=True):
    """A document in the store that has no name yet."""

    path: str
    nbytes: int
    #: Whether all rows of the run could be read.
    is_complete: bool = True
    #: The cluster of an uploaded recording.
    cluster: str = ""


#: Five million tasks take 10 to 20 s.
BUILD = Kind("daskscope.server.processes.build", Job[BuildRequest], Reply[Built], 900.0)


def build(archive: Archive, request: BuildRequest) -> Built:
    """Build and store a document."""
    from daskscope.server.build_document import Subject, build_from_file, build_from_rows, store_document

    is_complete, cluster = True, ""
    if request.recording:
        document, cluster = build_from_file(Path(request.recording), request.title)
    else:
        subject = Subject(request.account, request.run, request.title, request.computation)
        document, is_complete = build_from_rows(archive, subject)
    path = store_document(archive, request.account, document)
    return Built(path, document.nbytes, is_complete, cluster)


def _prepare() -> None:
    # pyarrow imports pandas if there is one, which takes 100 MB, and does not need it here.
    sys.modules["pandas"] = None  # type: ignore[assignment]
    import pyarrow as pa

    from daskscope.report.blocks import usable_cores

    # Decode several columns at a time; ``OMP_NUM_THREADS`` would limit it to one.
    pa.set_cpu_count(usable_cores())


if __name__ == "__main__":
    do_job(BUILD, build, _prepare)
