"""Documents for the viewer, made from rows once and kept: opening a large computation again reads one file.

A rendering is the viewer's report as JSON followed by its blocks, in one sealed blob: code is in it.
"""

from __future__ import annotations

import json
import struct
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from daskscope import __version__
from daskscope.analysis.grouping import where
from daskscope.analysis.selection import Selection, select
from daskscope.analysis.summary import MADE_FOR, lifetime
from daskscope.model.recording import Recording
from daskscope.model.table import Strings, Table
from daskscope.report.document import build
from daskscope.report.html import report_json
from daskscope.report.schema import SCHEMA, Report
from daskscope.server.failure import not_found
from daskscope.server.services import Services
from daskscope.storage.blobs import MissingBlob, new_path
from daskscope.storage.computations import span_of
from daskscope.storage.renderings import KeptRendering, basis_of, find_rendering, keep_rendering
from daskscope.storage.runs import WHOLE, Part, read_steadily
from daskscope.wire.file import concatenate

_LENGTH = struct.Struct("<I")
#: Bytes of renderings kept in memory: the page asks for the report and then for its blocks.
CACHE_NBYTES = 64 * 1024 * 1024


#: What a computation's window is widened by when its row groups are looked for: rows are ordered by when they stopped.
MARGIN_US = 60_000_000


@dataclass(frozen=True)
class Rendering:
    """A finished report: JSON text, and its blocks by name."""

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
    def unpack(cls, data: bytes) -> Rendering:
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


class RenderingCache:
    """Renderings that were asked for lately, by the path of their blob; a blob never changes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Rendering] = OrderedDict()
        self._nbytes = 0

    def get(self, path: str) -> Rendering | None:
        with self._lock:
            rendering = self._kept.get(path)
            if rendering is not None:
                self._kept.move_to_end(path)
            return rendering

    def put(self, path: str, rendering: Rendering) -> None:
        with self._lock:
            if path in self._kept or rendering.nbytes > CACHE_NBYTES:
                return
            self._kept[path] = rendering
            self._nbytes += rendering.nbytes
            while self._nbytes > CACHE_NBYTES:
                self._nbytes -= self._kept.popitem(last=False)[1].nbytes


_cache = RenderingCache()


def render(report: Report, blocks: Mapping[str, bytes]) -> Rendering:
    return Rendering(report_json(report).encode(), dict(blocks))


def embedded(recording: Recording) -> dict[str, str]:
    """The calling code and the failure a client put into the window it uploads."""
    texts = {"code": "", "failure": ""}
    for text in recording["windows"]["labels"].tolist():
        try:
            labels = json.loads(text or "{}")
        except (ValueError, RecursionError):
            continue
        for name in texts:
            value = labels.get(f"daskscope.{name}") if isinstance(labels, dict) else None
            texts[name] = value if isinstance(value, str) else texts[name]
    return texts


def load(services: Services, account: int, path: str) -> Rendering:
    """A rendering from its blob."""
    known = _cache.get(path)
    if known is None:
        data = services.store.get(path)
        with services.database.read() as connection:
            known = Rendering.unpack(services.vault.open(connection, account, data))
        _cache.put(path, known)
    return known


def name_of(path: str) -> str:
    """By what a page names the rendering it shows; nobody can guess it."""
    return path.rpartition("/")[2]


def remembered(account: int, name: str) -> Rendering | None:
    """A rendering that was shown a while ago, as long as it is in memory. Of a live run there is a newer one by now."""
    return _cache.get(f"{account}/renderings/{name}")


def store(services: Services, account: int, rendering: Rendering) -> str:
    """Keep a rendering; its path."""
    path = remember(account, rendering)
    with services.database.read() as connection:
        sealed = services.vault.seal(connection, account, rendering.pack())
    services.store.put(path, sealed)
    return path


def remember(account: int, rendering: Rendering) -> str:
    """Hold a rendering in memory, for the page that shows it now; the path it has, or would have."""
    path = new_path(account, "renderings", "view")
    _cache.put(path, rendering)
    return path


def version() -> str:
    """A rendering made by another version of the code may hold other numbers."""
    return f"{__version__}/{SCHEMA}"


def of_run(services: Services, account: int, run: int, title: str, computation: str = "") -> tuple[Rendering, str]:
    """The report of a run or of one of its computations, made if what is kept is older than the newest batch; and where it lies."""
    with services.database.snapshot() as connection:
        basis = basis_of(connection, run)
        kept = find_rendering(connection, run, computation)
    if basis is None:
        raise not_found("such cluster")
    if kept is not None and kept.upto == basis.upto and kept.version == version():
        try:
            return load(services, account, kept.path), kept.path
        except MissingBlob:
            pass
    recording = read(services, account, run, title, computation)
    rendering = render(*build(recording, title=title))
    if recording.damage:
        # Kept, it would say so for ever, after the file was restored as well.
        return rendering, remember(account, rendering)
    made = KeptRendering(store(services, account, rendering), rendering.nbytes, basis.upto, version())
    with services.database.write() as connection:
        is_kept = keep_rendering(connection, run, computation, made, basis, services.clock())
        is_deleted = not is_kept and basis_of(connection, run) is None
    if not is_kept:
        services.store.delete(made.path)
    elif kept is not None:
        services.store.delete(kept.path)
    if is_deleted:
        raise not_found("such cluster")
    return rendering, made.path


def read(services: Services, account: int, run: int, title: str, computation: str = "") -> Recording:
    """The rows of a run, or those of one computation and of the time it took."""
    if not computation:
        recording = _rows(services, account, run, title, WHOLE)
        # Somebody may have made a report of a part of it: that part is not the run.
        return made_for(recording, *lifetime(recording))
    with services.database.read() as connection:
        span = span_of(connection, run, computation)
    if span is None:
        raise NoSuchComputation(computation)
    start, stop = span
    part = Part(computation=computation, window=(start - MARGIN_US, stop + MARGIN_US))
    recording = _rows(services, account, run, title, part)
    selected = select(recording, Selection(start_us=start, stop_us=stop, computation=computation))
    return made_for(selected, start, stop)


def _rows(services: Services, account: int, run: int, title: str, part: Part) -> Recording:
    return read_steadily(services.database, services.vault, services.store, account, run, title, part)


def made_for(recording: Recording, start_us: int, stop_us: int) -> Recording:
    """The recording as one that was made for this stretch of time, whichever it was made for before."""
    windows = recording["windows"]
    others = windows.take(np.flatnonzero(~where(windows.strings("kind"), *MADE_FOR)))
    row = {
        "kind": "report",
        "seen_us": stop_us,
        "start_us": start_us,
        "stop_us": stop_us,
        "status": "ok",
        "labels": "{}",
    }
    columns = {
        column.name: Strings.of([str(row.get(column.name, ""))])
        if column.kind == "str"
        else np.array([row.get(column.name, 0)], dtype=np.int64)
        for column in windows.definition.columns
    }
    framed = concatenate(windows.definition, [others, Table(windows.definition, columns)])
    return replace(recording, tables={**recording.tables, "windows": framed})
