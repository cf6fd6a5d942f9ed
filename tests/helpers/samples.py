"""A small sample cluster as rows, as the body of an ingest request, and as a recording file."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from daskscope.testing import make_frames
from daskscope.wire.layout import FILE_MAGIC

Tables = dict[str, list[dict[str, Any]]]


def sample_tables(cluster: str = "sample-cluster", text: str = "sample", *, ended: bool = False) -> Tables:
    """Return rows of a scheduler that started a minute ago: a worker, a client, a computation of three tasks, a failure.

    ``text`` is part of every free text, so that tests can find it wherever it appears.
    """
    now = time.time_ns() // 1000
    start = now - 60_000_000
    common = {
        "worker": "tcp://10.0.0.1:1",
        "prefix": f"{text}-inc",
        "group": f"{text}-inc-1",
        "computation": f"{text}-comp",
    }
    tasks = [
        {
            **common,
            "id": i,
            "key": f"{text}-inc-{i}",
            "thread": 1,
            "start_us": start + 1_000_000 * i,
            "stop_us": start + 1_000_000 * i + 800_000,
            "nbytes": 100,
            "status": "error" if i == 2 else "ok",
        }
        for i in range(3)
    ]
    return {
        "clusters": [
            {
                "cluster": cluster, "name": f"{text} cluster", "user": f"{text}-user", "host": f"{text}-host", "seen_us": now,
                "start_us": start, "recording_us": start, "workers": 1, "threads": 2,
                "end_us": now if ended else 0, "end_reason": "closed" if ended else "",
            }
        ],
        "workers": [
            {
                "worker": "tcp://10.0.0.1:1", "server_id": f"{text}-worker", "name": f"{text} worker", "nthreads": 2,
                "start_us": start, "seen_us": now,
            }
        ],
        "clients": [{"client": f"{text}-client", "connect_us": start, "last_seen_us": now, "seen_us": now}],
        "computations": [
            {
                "computation": f"{text}-comp", "start_us": start, "stop_us": now, "seen_us": now, "state": "erred",
                "code": f"{text}.compute()", "tasks": 3, "memory": 2, "erred": 1, "groups": 1,
            }
        ],
        "tasks": tasks,
        "exceptions": [
            {
                **common, "time_us": start + 3_000_000, "key": f"{text}-inc-2", "type": "ValueError", "message": text,
                "traceback": f"Traceback: {text}", "fingerprint": f"{text}-fingerprint", "count": 1,
            }
        ],
        "events": [{"time_us": start + 5, "topic": text, "kind": "note", "detail": f'{{"note": "{text}"}}'}],
    }  # fmt: skip


def sample_frames(
    cluster: str = "sample-cluster", text: str = "sample", *, epoch: int = 1, ended: bool = False
) -> bytes:
    """Return the sample cluster as concatenated frames, the body of an ingest request."""
    return b"".join(make_frames(sample_tables(cluster, text, ended=ended), cluster=cluster, epoch=epoch))


def sample_recording(text: str = "sample") -> bytes:
    """Return the sample cluster as the content of a recording file."""
    return FILE_MAGIC + sample_frames(text=text, ended=True)


def write_frames(path: Path, frames: Iterable[bytes]) -> None:
    """Write a recording file."""
    path.write_bytes(FILE_MAGIC + b"".join(frames))
