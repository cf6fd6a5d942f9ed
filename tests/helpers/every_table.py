"""Batches with rows of every table, and batches that are broken."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from tests.helpers.archive import NOW, frame, task
from tests.helpers.dissect import dissect

from daskscope.model.recording import Table
from daskscope.model.tables import TABLES

GOLDEN = Path(__file__).parents[1] / "data" / "recordings" / "v1.daskscope"


def any_value(kind: str, rng: random.Random) -> Any:
    if kind.endswith("[]"):
        return [any_value(kind[:-2], rng) for _ in range(rng.randint(0, 3))]
    if kind == "str":
        return rng.choice(["", "inc", "größe 🦆", "nul \0 inside", "a\nb", f"text {rng.randint(0, 9)}"])
    if kind == "float":
        return rng.choice([0.0, -1.5, 1e300, rng.random()])
    return rng.randint(-(2**40), 2**50)


def any_frames(cluster: str = "c", rows: int = 7) -> list[bytes]:
    """Return batches of every table with values of every type; times grow, as a recorder's do."""
    rng, kept = random.Random(4), dict.fromkeys(TABLES, 0)
    frames: list[bytes] = []
    for turn in range(4):
        for name, definition in TABLES.items():
            values = [{c.name: any_value(c.kind, rng) for c in definition.columns} for _ in range(rows)]
            for number, row in enumerate(values):
                row[definition.time] = NOW + turn * 1000 + number
                if name == "clusters":
                    row["dropped"] = ""
                if name == "tasks":
                    row["interval_start_us"] = row["interval_stop_us"] = [NOW] * len(row["interval_action"])
                    row["interval_source"] = [""] * len(row["interval_action"])
            kept[name] += rows
            frames.append(frame(name, values, len(frames), cluster=cluster, kept=kept[name]))
    return frames


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    columns = [table[name].tolist() for name in table.definition.names]
    return sorted(zip(*columns, strict=True), key=repr)


def broken_keys(sequence: int) -> bytes:
    """Return a batch with keys that are not valid JSON, with the right length and checksum."""
    rows = [task(n, key=f"text {n}", group="g") for n in range(3)]
    good = frame("tasks", rows, sequence)
    parts = dissect(good)
    assert parts.packed.count(b'["text 0"') == 1
    parts.packed = parts.packed.replace(b'["text 0"', b'{"text 0"')
    return parts.frame()
