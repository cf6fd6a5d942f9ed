"""Rows of a recording of coffea, in the shape that coffea 2026.9 and 0.7 produce."""

from __future__ import annotations

from typing import Any

S = 1_000_000
T = 1_700_000_000 * S
ACCUMULATOR = "coffea.processor.accumulator.set_accumulator"
CHUNK = 50_000


def task(number: int, start: float, stop: float, prefix: str, **columns: Any) -> dict[str, Any]:
    return {
        "id": number,
        "key": f"{prefix}-{number}",
        "group": prefix,
        "prefix": prefix,
        "computation": "process",
        "worker": "a",
        "status": "ok",
        "type": "bytes",
        "start_us": T + round(start * S),
        "stop_us": T + round(stop * S),
        **columns,
    }


def chunk(number: int, stop: float, *, process: float = 0.9, **columns: Any) -> dict[str, Any]:
    return {
        "key": f"Dimuon-{number}",
        "time_us": T + round(stop * S) - 1_000,
        "worker": "a",
        "kind": "process",
        "dataset": "ttbar",
        "file_id": "f1",
        "entry_start": number * CHUNK,
        "entry_stop": (number + 1) * CHUNK,
        "bytes_read": 1_000,
        "requests": 2,
        "columns": ("Muon_pt", "nMuon"),
        "open_us": 50_000,
        "process_us": round(process * S),
        "stalled_us": 0,
        "failed": 0,
        **columns,
    }


def tables(chunks: int = 4, **columns: Any) -> dict[str, list[dict[str, Any]]]:
    """The shape of one call of coffea's Runner, as recorded with coffea 2026.9 and 0.7: preprocess, broadcast, process, merge."""
    first = 3
    tasks = [
        task(0, 0, 0.1, "automatic_retries", type=ACCUMULATOR, computation="preprocess"),
        task(1, 0.1, 0.2, "reduce", type=ACCUMULATOR, computation="preprocess"),
        task(2, 0.2, 0.3, "lambda"),
        *(task(first + n, 1 + n, 2 + n, "Dimuon", key=f"Dimuon-{n}", **columns) for n in range(chunks)),
        task(first + chunks, 1 + chunks, 2 + chunks, "reduce"),
    ]
    edges = [
        (1, 0),
        *((first + n, 2) for n in range(chunks)),
        *((first + chunks, first + n) for n in range(chunks)),
    ]
    return {
        "clusters": [{"cluster": "c", "recording_us": T, "end_us": T + 10 * S}],
        "workers": [{"worker": "a", "server_id": "1", "nthreads": 1, "start_us": T}],
        "computations": [
            {"computation": "preprocess", "client": "x", "start_us": T},
            {"computation": "process", "client": "x", "start_us": T + S // 5},
        ],
        "tasks": tasks,
        "edges": [{"task": a, "dependency": b} for a, b in edges],
        "chunks": [chunk(n, 2 + n) for n in range(chunks)],
    }
