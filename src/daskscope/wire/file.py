"""Read and write recording files: a magic, then frames one after the other.

Writers append whole frames only, so a file cut off by ``kill -9`` or a full disk is readable up to its last whole batch.
A directory of such files (a spool, written in segments) reads as one recording.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from daskscope.errors import NewerFormat, NotARecording, RecordingError, WireError
from daskscope.model.columns import Column
from daskscope.model.recording import Completeness, Recording, Table, concatenate
from daskscope.model.tables import TABLES
from daskscope.wire.decode import Frame, Header, Incomplete, read_frame
from daskscope.wire.decode_columns import is_int64, parse_json
from daskscope.wire.encode import encode_body, seal
from daskscope.wire.layout import FILE_MAGIC

SUFFIX = ".daskscope"


@dataclass
class _Stream:
    """The batches read so far of one table, epoch and cluster."""

    batches: dict[int, Table] = field(default_factory=dict)
    first: Header | None = None
    kept: int = 0
    dropped: int = 0

    def add(self, header: Header, table: Table) -> None:
        self.batches[header.sequence] = table
        if self.first is None or header.sequence < self.first.sequence:
            self.first = header
        self.kept, self.dropped = max(self.kept, header.kept), max(self.dropped, header.dropped)

    def completeness(self, *, from_start: bool) -> Completeness:
        """Compare with the writer's counters. In a recording that begins mid-epoch, earlier rows do not count as missing."""
        assert self.first is not None
        rows = sum(table.rows for table in self.batches.values())
        before, dropped_before = (0, 0) if from_start else (self.first.kept - self.first.rows, self.first.dropped)
        return Completeness(rows, max(0, self.dropped - dropped_before), max(0, self.kept - before - rows))


@dataclass
class _Reading:
    """Everything read so far, and its damage."""

    streams: dict[tuple[int, str, str], _Stream] = field(default_factory=dict)
    sequences: dict[tuple[int, str], set[int]] = field(default_factory=dict)
    #: Sequence numbers of batches that cannot be read; they count as damage, not as missing.
    unreadable: dict[tuple[int, str], set[int]] = field(default_factory=dict)
    damage: str = ""
    damaged_bytes: int = 0

    def read(self, data: mmap.mmap, name: str) -> None:
        offset = len(FILE_MAGIC)
        while offset < len(data):
            try:
                frame = read_frame(memoryview(data), offset)
            except Incomplete:
                self.add_damage(f"{name} is cut off", len(data) - offset)
                return
            except NewerFormat as error:
                raise NewerFormat(f"{name} cannot be read: {error}.") from None
            except WireError as error:
                self.add_damage(f"{name} is damaged ({error})", len(data) - offset)
                return
            offset += frame.size
            self.add(frame, name)

    def add(self, frame: Frame, name: str) -> None:
        header = frame.header
        seen = self.sequences.setdefault((header.epoch, header.cluster), set())
        if header.sequence in seen:
            return
        try:
            table = frame.table()
        except WireError as error:
            # The checksum is right, so the frame's size is too: only this batch is lost.
            self.add_damage(f"{name} holds a batch that cannot be read ({error})", frame.size)
            self.unreadable.setdefault((header.epoch, header.cluster), set()).add(header.sequence)
            return
        seen.add(header.sequence)
        self.streams.setdefault((header.epoch, header.cluster, header.table), _Stream()).add(header, table)

    def add_damage(self, why: str, size: int) -> None:
        self.damage = self.damage or why
        self.damaged_bytes += size

    def recording(self, source: str) -> Recording:
        tables, completeness = {}, {}
        counted = {cluster_epoch: self._dropped_rows(cluster_epoch) for cluster_epoch in self.sequences}
        for name, definition in TABLES.items():
            streams = {key: stream for key, stream in sorted(self.streams.items()) if key[2] == name}
            if streams:
                batches = [stream.batches[n] for stream in streams.values() for n in sorted(stream.batches)]
                tables[name] = latest(concatenate(definition, batches))
            parts = {key[:2]: s.completeness(from_start=0 in self.sequences[key[:2]]) for key, s in streams.items()}
            for cluster_epoch, dropped in counted.items():
                if dropped.get(name):
                    part = parts.get(cluster_epoch, Completeness())
                    parts[cluster_epoch] = replace(part, dropped=max(part.dropped, dropped[name]))
            if parts:
                columns = zip(*map(astuple, parts.values()), strict=True)
                completeness[name] = Completeness(*(sum(column) for column in columns))
        missing = sum(map(self._missing_batches, self.sequences))
        return Recording(source, tables, completeness, self.damage, self.damaged_bytes, missing)

    def _missing_batches(self, cluster_epoch: tuple[int, str]) -> int:
        """Return how many sequence numbers between the first and the last batch are missing."""
        found = self.sequences[cluster_epoch] | self.unreadable.get(cluster_epoch, set())
        return max(found) - min(found) + 1 - len(found)

    def _dropped_rows(self, cluster_epoch: tuple[int, str]) -> dict[str, int]:
        """Return the dropped rows by table, according to the rows of ``clusters``.

        A frame reports drops of its own table only, so drops after a table's last frame are only in ``clusters``. In a recording
        that begins mid-epoch, the first row of ``clusters`` has the drops from before.
        """
        stream = self.streams.get((*cluster_epoch, "clusters"))
        if stream is None:
            return {}
        texts = [text for n in sorted(stream.batches) for text in stream.batches[n]["dropped"].tolist()]
        before = {} if 0 in self.sequences[cluster_epoch] else rows_by_table(texts[0])
        return {name: max(0, rows - before.get(name, 0)) for name, rows in rows_by_table(texts[-1]).items()}


def rows_by_table(text: str) -> dict[str, int]:
    """Parse counts of rows by table; invalid text gives no counts, so that the rest of the recording stays readable."""
    try:
        counts = parse_json(text.encode("utf-8", "replace")) if text else {}
    except WireError:
        return {}
    if not isinstance(counts, dict):
        return {}
    return {name: rows for name, rows in counts.items() if name in TABLES and is_int64(rows) and rows > 0}


def read_recording(path: str | Path) -> Recording:
    """Read a recording file, or a directory of them, up to the last whole batch.

    Batches with a known sequence number are ignored, so a segment may be present twice. Several clusters and epochs are merged
    into one recording.
    """
    path, reading = Path(path), _Reading()
    for file in _files(path):
        with _bytes(file) as data:
            reading.read(data, file.name if path.is_dir() else "the file")
    return reading.recording(str(path))


def latest(table: Table) -> Table:
    """Return the last row per key of an entity table, in order of first appearance; fact tables unchanged."""
    key = table.definition.key
    if not key:
        return table
    last: dict[tuple[str, ...], int] = {}
    for row, identity in enumerate(zip(*(table[column] for column in key), strict=True)):
        last[identity] = row
    return table.take(np.fromiter(last.values(), dtype=np.int64, count=len(last)))


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        files = sorted(path.rglob(f"*{SUFFIX}"))
        if not files:
            raise NotARecording(f"{path} is a directory without {SUFFIX} files. Name a recording file.")
        return files
    if not path.exists():
        raise RecordingError(f"{path} does not exist. Record a run with: with daskscope.record({path.name!r}): ...")
    if not path.is_file():
        raise NotARecording(f"{path} is neither a file nor a directory. Name a recording file.")
    return [path]


class _bytes:
    """Maps the bytes of a recording file into memory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> mmap.mmap:
        try:
            with self.path.open("rb") as file:
                start = file.read(len(FILE_MAGIC))
                _check_start(self.path, start)
                self.map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise RecordingError(f"{self.path} cannot be read: {error.strerror}.") from None
        return self.map

    def __exit__(self, *exc: object) -> None:
        # Columns may still have memory views of the map; it is closed when the last of them is deleted.
        self.map = None  # type: ignore[assignment]


def _check_start(path: Path, start: bytes) -> None:
    if start == FILE_MAGIC:
        return
    if len(start) == len(FILE_MAGIC) and start[:-1] == FILE_MAGIC[:-1] and start[-1] > FILE_MAGIC[-1]:
        raise NewerFormat(
            f"{path} was written by a newer daskscope (file format {start[-1]}, this one reads {FILE_MAGIC[-1]}). "
            "Upgrade with: pip install --upgrade daskscope"
        )
    raise NotARecording(f"{path} is not a daskscope recording. Recordings are written by daskscope.record().")


#: One row by column name; missing columns are empty.
Row = Mapping[str, Any]

#: Rows of one frame, as many as the recorder writes; readers accept up to ``layout.MAX_ROWS``.
FRAME_ROWS = 20_000


def columns_of_rows(table: str, rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Return all columns of a table for ``encode_body``; values missing in a row are 0, ``""`` or an empty list."""
    definition = TABLES[table]
    unknown = {name for row in rows for name in row} - set(definition.names)
    if unknown:
        raise KeyError(f"{table} has no column {', '.join(sorted(unknown))}")
    empty = {column.name: _empty(column) for column in definition.columns}
    return {name: [row.get(name, value) for row in rows] for name, value in empty.items()}


def frames_of_rows(tables: Mapping[str, Sequence[Row]], *, cluster: str, epoch: int) -> Iterator[bytes]:
    """Yield the frames of all tables that have rows, numbered from 0."""
    sequence = 0
    for table, rows in tables.items():
        for first in range(0, len(rows), FRAME_ROWS):
            part = rows[first : first + FRAME_ROWS]
            body = encode_body(table, columns_of_rows(table, part))
            yield seal(body, cluster=cluster, epoch=epoch, sequence=sequence, kept=first + len(part), dropped=0)
            sequence += 1


def _empty(column: Column) -> Any:
    if column.kind.endswith("[]"):
        return []
    return {"str": "", "float": 0.0}.get(column.kind, 0)


def frames_of_table(
    table: Table, *, cluster: str, epoch: int, sequence: int, kept: int = 0, dropped: int = 0
) -> Iterator[bytes]:
    """Yield the frames of one table, numbered from ``sequence``; the last one carries ``kept`` and ``dropped``."""
    for first in range(0, table.rows, FRAME_ROWS):
        part = table.take(np.arange(first, min(first + FRAME_ROWS, table.rows)))
        body = encode_body(table.name, {name: part[name].tolist() for name in table.definition.names})
        last = first + part.rows == table.rows
        count = max(first + part.rows, kept if last else 0)
        yield seal(body, cluster=cluster, epoch=epoch, sequence=sequence, kept=count, dropped=dropped if last else 0)
        sequence += 1
