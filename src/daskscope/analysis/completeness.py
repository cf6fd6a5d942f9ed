"""How much of what happened the recording holds, said without flattery."""

from __future__ import annotations

from dataclasses import dataclass

from daskscope import units
from daskscope.model.recording import Recording


@dataclass(frozen=True)
class TableCompleteness:
    """One table: rows read, rows dropped inside the cluster, rows written but not in the file."""

    table: str
    rows: int
    dropped: int
    missing: int


def completeness(recording: Recording) -> tuple[TableCompleteness, ...]:
    """Every table the recording has heard of."""
    return tuple(
        TableCompleteness(name, part.rows, part.dropped, part.missing) for name, part in recording.completeness.items()
    )


def is_complete(recording: Recording) -> bool:
    """Whether every row that was ever meant for the recording is in it."""
    if recording.damage or recording.missing_batches or recording.partial:
        return False
    return not any(part.dropped or part.missing for part in completeness(recording))


def statement(recording: Recording) -> str:
    """One line: all rows of every table, or exactly what is not there and why."""
    parts = completeness(recording)
    rows = sum(part.rows for part in parts)
    gaps = [recording.partial] if recording.partial else []
    gaps += [f"{_share(p, p.dropped)} dropped inside the cluster" for p in parts if p.dropped]
    gaps += [f"{_share(p, p.missing)} not in the file" for p in parts if p.missing]
    if recording.missing_batches:
        batches = units.counted(recording.missing_batches, "batch", "batches")
        named = "other tables than these" if any(p.missing for p in parts) else "any table"
        gaps.append(f"{batches} not in the file, which may have held rows of {named}")
    if recording.damage:
        ignored = units.counted(recording.damaged_bytes, "byte")
        were = "was" if recording.damaged_bytes == 1 else "were"
        if recording.damage.endswith("cut off"):
            gaps.append(f"{recording.damage}: {ignored} after the last whole batch {were} ignored")
        else:
            gaps.append(f"{recording.damage}: {ignored} {were} ignored")
    if gaps:
        return f"Incomplete, {units.counted(rows, 'row')} read: {'; '.join(gaps)}."
    return f"Complete: all {units.counted(rows, 'row')} of every table." if rows else "The recording holds no rows."


def _share(part: TableCompleteness, rows: int) -> str:
    total = part.rows + part.dropped + part.missing
    return f"{units.count(rows)} of {units.counted(total, 'row')} of {part.table}"
