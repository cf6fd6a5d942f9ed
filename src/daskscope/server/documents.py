"""Documents for the viewer: made from rows once and stored, so that opening a large computation again reads one file.

A document is the viewer's report as JSON followed by its blocks, in one encrypted blob, because it contains code.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from daskscope import __version__
from daskscope.analysis.limits import parse_object
from daskscope.analysis.selection import Selection, select
from daskscope.analysis.summary import lifetime
from daskscope.model.recording import Recording
from daskscope.report.document import build
from daskscope.report.html import report_json
from daskscope.report.schema import SCHEMA, Report
from daskscope.server.http.errors import Refusal, not_found
from daskscope.server.http.routing import Call
from daskscope.server.services import Services
from daskscope.server.shared import OneAtATime, Shared
from daskscope.storage.blobs import MissingBlob, new_path
from daskscope.storage.clusters import Cluster
from daskscope.storage.computations import span_of
from daskscope.storage.database import StorageError
from daskscope.storage.documents import StoredDocument, basis_of, count_tasks, find_document, keep_document
from daskscope.storage.runs import Part, read_snapshot

_LENGTH = struct.Struct("<I")
#: The last part of a document's path.
NAME = re.compile(r"[\w-]{1,100}", re.ASCII)
#: Memory needed per task to build a document.
TASK_NBYTES = 1_000
#: Maximum bytes of documents in memory: a page requests the report and then its blocks.
CACHE_NBYTES = 64 * 1024 * 1024


#: Margin around a computation's window when choosing row groups: rows are ordered by their stop time.
MARGIN_US = 60_000_000


@dataclass(frozen=True)
class Document:
    """A finished document: JSON text, and its blocks by name."""

    report: bytes
    blocks: Mapping[str, bytes]

    @property
    def nbytes(self) -> int:
        return len(self.report) + sum(map(len, self.blocks.values()))

    def pack(self) -> bytes:
        index = json.dumps([[name, len(data)] for name, data in self.blocks.items()]).encode()
        return b"".join(
            (_LENGTH.pack(len(index)), index, _LENGTH.pack(len(self.report)), self.report, *self.blocks.values())
        )

    @classmethod
    def unpack(cls, data: bytes) -> Document:
        (size,) = _LENGTH.unpack_from(data)
        index = json.loads(data[4 : 4 + size])
        offset = 4 + size
        (length,) = _LENGTH.unpack_from(data, offset)
        offset += 4
        report = data[offset : offset + length]
        offset += length
        blocks = {}
        for name, block in index:
            blocks[name] = data[offset : offset + block]
            offset += block
        return cls(report, blocks)


class NoSuchComputation(Exception):
    """The run has no such computation."""


_cache: Shared[Document] = Shared(CACHE_NBYTES)
_building = OneAtATime()


def render(report: Report, blocks: Mapping[str, bytes]) -> Document:
    return Document(report_json(report).encode(), dict(blocks))


def embedded(recording: Recording) -> dict[str, str]:
    """Return the calling code and the failure that a client put into the window it uploads."""
    texts = {"code": "", "failure": ""}
    for text in recording["windows"]["labels"].tolist():
        labels = parse_object(text)
        for name in texts:
            value = labels.get(f"daskscope.{name}")
            texts[name] = value if isinstance(value, str) else texts[name]
    return texts


def load(services: Services, account: int, path: str) -> Document:
    """Return a document from its blob."""

    def read() -> Document:
        data = services.archive.store.get(path)
        with services.archive.read() as tx:
            return Document.unpack(tx.open(account, data, path))

    return _cache.load(path, read)


def name_of(path: str) -> str:
    """Return the name that a page uses for the document it shows. It cannot be guessed."""
    return path.rpartition("/")[2]


def by_name(services: Services, account: int, name: str) -> Document:
    """Return a document that a page shows, whichever server made it. A live run has a newer one by now."""
    try:
        if not NAME.fullmatch(name):
            raise MissingBlob(name)
        return load(services, account, f"{account}/renderings/{name}")
    except (MissingBlob, StorageError):
        raise Refusal(
            410, "replaced", "This document was replaced by a newer one. Reload the page to see that."
        ) from None


def store(services: Services, account: int, rendering: Document) -> str:
    """Store a document and return its path."""
    path = remember(account, rendering)
    with services.archive.read() as tx:
        sealed = tx.seal(account, rendering.pack(), path)
    services.archive.store.put(path, sealed)
    return path


def remember(account: int, rendering: Document) -> str:
    """Cache a document for the page that shows it now. Return the path it has or would have."""
    path = new_path(account, "renderings", "view")
    _cache.put(path, rendering)
    return path


def version() -> str:
    """Return the version of the code; another version may compute other numbers."""
    return f"{__version__}/{SCHEMA}"


def of_run(services: Services, account: int, run: int, title: str, computation: str = "") -> tuple[Document, str]:
    """Return the document of a run or computation and its path.

    Make it if the stored one is older than the newest batch. If several readers need it, one makes it.
    """
    with _building((services.url, run, computation)):
        return _of_run(services, account, run, title, computation)


def _of_run(services: Services, account: int, run: int, title: str, computation: str) -> tuple[Document, str]:
    with services.archive.snapshot() as tx:
        basis = basis_of(tx, run)
        kept = find_document(tx, run, computation)
    if basis is None:
        raise not_found("such cluster")
    if kept is not None and kept.upto == basis.upto and kept.version == version():
        try:
            return load(services, account, kept.path), kept.path
        except MissingBlob:
            pass
    with services.archive.read() as tx:
        tasks = count_tasks(tx, run, computation)
    with services.build_memory.reserve(tasks * TASK_NBYTES):
        recording, start, stop = read(services, account, run, title, computation)
        rendering = render(*build(recording, start, stop, title=title, computation=computation))
    if recording.damage:
        # Do not store it: it would show the damage even after the file is restored.
        return rendering, remember(account, rendering)
    made = StoredDocument(store(services, account, rendering), rendering.nbytes, basis.upto, version())
    with services.archive.write() as tx:
        is_kept = keep_document(tx, run, computation, made, basis)
        is_deleted = not is_kept and basis_of(tx, run) is None
    if not is_kept:
        services.archive.store.delete(made.path)
    if is_deleted:
        raise not_found("such cluster")
    return rendering, made.path


def read(services: Services, account: int, run: int, title: str, computation: str = "") -> tuple[Recording, int, int]:
    """Return the rows of a run, or of one computation, with the times they cover."""
    if not computation:
        recording = read_snapshot(services.archive, account, run, title)
        return recording, *lifetime(recording)
    with services.archive.read() as tx:
        span = span_of(tx, run, computation)
    if span is None:
        raise NoSuchComputation(computation)
    start, stop = span
    part = Part(computation=computation, window=(start - MARGIN_US, stop + MARGIN_US))
    recording = read_snapshot(services.archive, account, run, title, part)
    return select(recording, Selection(start_us=start, stop_us=stop, computation=computation)), start, stop


def of_request(call: Call, row: Cluster) -> tuple[Document, str]:
    """Return the document of a run, or of the computation in the path, and its path."""
    computation = str(call.request.path_params.get("computation", ""))
    title = row.name or row.cluster
    try:
        return of_run(call.services, call.account.id, row.id, title, computation)
    except NoSuchComputation:
        raise not_found("such computation") from None
