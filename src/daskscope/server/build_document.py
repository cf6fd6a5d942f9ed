"""Build documents for the viewer from the rows of a run.

A document is the viewer's report as JSON followed by its blocks, in one encrypted blob, because it contains code.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from daskscope.analysis.selection import Selection, select
from daskscope.analysis.summary import extent, lifetime
from daskscope.model.recording import Recording
from daskscope.model.untrusted import parse_object
from daskscope.report.document import build
from daskscope.report.html import report_json
from daskscope.report.schema import Report
from daskscope.storage.base.archive import Archive
from daskscope.storage.base.blobs import new_path
from daskscope.storage.catalog.computations import NoSuchComputation, span_of
from daskscope.storage.runs.read import Amount, Part, RunTooLarge, read_snapshot
from daskscope.wire.file import read_recording

_LENGTH = struct.Struct("<I")
#: Margin around a computation's window when choosing row groups: rows are ordered by their stop time.
MARGIN_US = 60_000_000
#: Workers of a recording that is read with a limit. A document of 5,000 takes 400 MB, however few tasks they have.
MAX_WORKERS_HERE = 1_000


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


@dataclass(frozen=True)
class Subject:
    """What a document is about: a run, or one computation of it."""

    account: int
    run: int
    title: str
    computation: str = ""


def document_of(report: Report, blocks: Mapping[str, bytes]) -> Document:
    return Document(report_json(report).encode(), dict(blocks))


def build_from_rows(archive: Archive, subject: Subject, limit: Amount | None = None) -> tuple[Document, bool]:
    """Return the document of a run or computation, and whether all of its rows could be read."""
    recording, start, stop = read(archive, subject, limit)
    made = document_of(*build(recording, start, stop, title=subject.title, computation=subject.computation))
    return made, not recording.damage


def build_from_file(path: Path, title: str) -> tuple[Document, str]:
    """Return the document of a recording file, and the cluster it is of."""
    recording = read_recording(path)
    start, stop = extent(recording)
    made = document_of(*build(recording, start, stop, title=title, **embedded(recording)))
    return made, next(iter(recording["clusters"]["cluster"].tolist()), "")


def embedded(recording: Recording) -> dict[str, str]:
    """Return the calling code and the failure that a client put into the window it uploads."""
    texts = {"code": "", "failure": ""}
    for text in recording["windows"]["labels"].tolist():
        labels = parse_object(text)
        for name in texts:
            value = labels.get(f"daskscope.{name}")
            texts[name] = value if isinstance(value, str) else texts[name]
    return texts


def read(archive: Archive, subject: Subject, limit: Amount | None = None) -> tuple[Recording, int, int]:
    """Return the rows of a run, or of one computation, with the times they cover. Raise ``RunTooLarge`` beyond a limit."""
    account, run, title, computation = subject.account, subject.run, subject.title, subject.computation
    if not computation:
        recording = _few_workers(read_snapshot(archive, account, run, title, limit=limit), limit)
        return recording, *lifetime(recording)
    with archive.read() as tx:
        span = span_of(tx, run, computation)
    if span is None:
        raise NoSuchComputation(computation)
    start, stop = span
    part = Part(computation=computation, window=(start - MARGIN_US, stop + MARGIN_US))
    recording = _few_workers(read_snapshot(archive, account, run, title, part, limit), limit)
    return select(recording, Selection(start_us=start, stop_us=stop, computation=computation)), start, stop


def _few_workers(recording: Recording, limit: Amount | None) -> Recording:
    """Return a recording unless it has so many workers that sums by worker and time take as much memory as many rows."""
    if limit is not None and recording["workers"].rows > MAX_WORKERS_HERE:
        raise RunTooLarge(f"This cluster has {recording['workers'].rows:,} workers, too many to read at once.")
    return recording


def store_document(archive: Archive, account: int, document: Document) -> str:
    """Store a document and return its path."""
    path = new_path(account, "documents", "document")
    with archive.read() as tx:
        sealed = tx.seal(account, document.pack(), path)
    archive.store.put(path, sealed)
    return path
