"""Recording files: a magic, then frames one after the other.

A writer only ever appends whole frames, so a file cut off by ``kill -9`` or a full disk is good up to its last whole batch.
A directory of such files (a spool, written in segments) reads as one recording.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path

import numpy as np

from daskscope.errors import NewerFormat, NotARecording, RecordingError, WireError
from daskscope.model.recording import Completeness, Recording
from daskscope.model.table import Array, Lists, Strings, Table, Values, object_array
from daskscope.model.tables import TABLES, TableDef
from daskscope.wire.decode import Frame, Header, Incomplete, read_frame
from daskscope.wire.decode_columns import is_int64, parse_json
from daskscope.wire.layout import FILE_MAGIC

SUFFIX = ".daskscope"


@dataclass
class _Stream:
    """What has been read of one table of one epoch of one cluster."""

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
        """Against the writer's counters; a recording that began in mid-epoch does not miss what was written before."""
        assert self.first is not None
        rows = sum(table.rows for table in self.batches.values())
        before, dropped_before = (0, 0) if from_start else (self.first.kept - self.first.rows, self.first.dropped)
        return Completeness(rows, max(0, self.dropped - dropped_before), max(0, self.kept - before - rows))


@dataclass
class _Reading:
    """What has been read so far, and what was wrong with it."""

    streams: dict[tuple[int, str, str], _Stream] = field(default_factory=dict)
    sequences: dict[tuple[int, str], set[int]] = field(default_factory=dict)
    #: Batches that are there but cannot be read; the damage tells of them.
    unreadable: dict[tuple[int, str], set[int]] = field(default_factory=dict)
    damage: str = ""
    damaged_bytes: int = 0

    def read(self, data: mmap.mmap, name: str) -> None:
        offset = len(FILE_MAGIC)
        while offset < len(data):
            try:
                frame = read_frame(memoryview(data), offset)
            except Incomplete:
                self.damaged(f"{name} is cut off", len(data) - offset)
                return
            except NewerFormat as error:
                raise NewerFormat(f"{name} cannot be read: {error}.") from None
            except WireError as error:
                self.damaged(f"{name} is damaged ({error})", len(data) - offset)
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
            # The checksum is right, so the next frame begins where this one says: only this batch is lost.
            self.damaged(f"{name} holds a batch that cannot be read ({error})", frame.size)
            self.unreadable.setdefault((header.epoch, header.cluster), set()).add(header.sequence)
            return
        seen.add(header.sequence)
        self.streams.setdefault((header.epoch, header.cluster, header.table), _Stream()).add(header, table)

    def damaged(self, why: str, size: int) -> None:
        self.damage = self.damage or why
        self.damaged_bytes += size

    def recording(self, source: str) -> Recording:
        tables, completeness = {}, {}
        counted = {life: self._dropped(life) for life in self.sequences}
        for name, definition in TABLES.items():
            mine = {key: stream for key, stream in sorted(self.streams.items()) if key[2] == name}
            if mine:
                batches = [stream.batches[n] for stream in mine.values() for n in sorted(stream.batches)]
                tables[name] = latest(concatenate(definition, batches))
            parts = {key[:2]: s.completeness(from_start=0 in self.sequences[key[:2]]) for key, s in mine.items()}
            for life, dropped in counted.items():
                if dropped.get(name):
                    part = parts.get(life, Completeness())
                    parts[life] = replace(part, dropped=max(part.dropped, dropped[name]))
            if parts:
                columns = zip(*map(astuple, parts.values()), strict=True)
                completeness[name] = Completeness(*(sum(column) for column in columns))
        missing = sum(map(self._missing_batches, self.sequences))
        return Recording(source, tables, completeness, self.damage, self.damaged_bytes, missing)

    def _missing_batches(self, life: tuple[int, str]) -> int:
        """Numbers between the first batch and the last that no batch has."""
        there = self.sequences[life] | self.unreadable.get(life, set())
        return max(there) - min(there) + 1 - len(there)

    def _dropped(self, life: tuple[int, str]) -> dict[str, int]:
        """What the cluster's own rows say was dropped, by table.

        A frame tells of its own table only: where no frame of a table came after rows of it were dropped, or none at all, nobody
        else does. Of a recording that began in mid-epoch the first row has what was dropped before.
        """
        stream = self.streams.get((*life, "clusters"))
        if stream is None:
            return {}
        texts = [text for n in sorted(stream.batches) for text in stream.batches[n]["dropped"].tolist()]
        before = {} if 0 in self.sequences[life] else rows_by_table(texts[0])
        return {name: max(0, rows - before.get(name, 0)) for name, rows in rows_by_table(texts[-1]).items()}


def rows_by_table(text: str) -> dict[str, int]:
    """Counts of rows; a text that holds none is no reason to read nothing."""
    try:
        counts = parse_json(text.encode("utf-8", "replace")) if text else {}
    except WireError:
        return {}
    if not isinstance(counts, dict):
        return {}
    return {name: rows for name, rows in counts.items() if name in TABLES and is_int64(rows) and rows > 0}


def read_recording(path: str | Path) -> Recording:
    """Read a recording file, or a directory of them, up to the last whole batch.

    Batches with a sequence number that was read before are ignored, so that a segment may be there twice. Several clusters
    and epochs are merged into one recording.
    """
    path, reading = Path(path), _Reading()
    for file in _files(path):
        with _bytes(file) as data:
            reading.read(data, file.name if path.is_dir() else "the file")
    return reading.recording(str(path))


def concatenate(definition: TableDef, tables: list[Table]) -> Table:
    """One table from the batches of it."""
    if len(tables) == 1:
        return tables[0]
    return Table(definition, {name: _join([table.columns[name] for table in tables]) for name in definition.names})


def _join(parts: list[Values]) -> Values:
    first = parts[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)  # type: ignore[arg-type]
    if isinstance(first, Strings):
        return _join_strings([part for part in parts if isinstance(part, Strings)])
    lists = [part for part in parts if isinstance(part, Lists)]
    offsets = np.concatenate(([0], np.cumsum(np.concatenate([part.lengths for part in lists])))).astype(np.int64)
    flat = _join([part.flat for part in lists if len(part.flat)] or [lists[0].flat])
    assert not isinstance(flat, Lists)
    return Lists(offsets, flat)


def _join_strings(parts: list[Strings]) -> Strings:
    texts = [part.texts for part in parts if part.texts is not None]
    if len(texts) == len(parts):
        return Strings.from_texts(np.concatenate(texts))
    index: dict[str, int] = {}
    codes: list[Array] = []
    for part in parts:
        mapping = np.fromiter(
            (index.setdefault(value, len(index)) for value in part.values), dtype=np.int32, count=len(part.values)
        )
        codes.append(mapping[part.codes] if len(mapping) else part.codes)
    return Strings(np.concatenate(codes), object_array(list(index)))


def latest(table: Table) -> Table:
    """The last row per key of an entity table, in order of first appearance; fact tables as they are."""
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
            raise NotARecording(f"{path} is a directory without {SUFFIX} files in it; name a recording file.")
        return files
    if not path.exists():
        raise RecordingError(f"{path} does not exist. Record a run with: with daskscope.record({path.name!r}): ...")
    if not path.is_file():
        raise NotARecording(f"{path} is neither a file nor a directory; name a recording file.")
    return [path]


class _bytes:
    """The bytes of a recording file, mapped rather than read."""

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
        # Columns may still look into the map through memory views; it is closed when the last of them goes.
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


def write_frames(path: str | Path, frames: Iterable[bytes]) -> None:
    """Write a complete recording file."""
    with Path(path).open("wb") as file:
        file.write(FILE_MAGIC)
        for frame in frames:
            file.write(frame)
