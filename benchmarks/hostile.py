"""The most expensive requests that an account can send: SQL, comparisons and reports of hostile recordings."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

from daskscope.testing import make_frames
from daskscope.wire.file import Row

#: Microseconds since 1970.
START_US = 1_700_000_000_000_000
NAMES, SAMPLES, POSTS = 20_000, 400_000, 4

QUERIES = (
    "select " + "(" * 8_000,
    # The parser sees these brackets: they are not counted.
    "select E'\\'', " + "(" * 8_000,
    "select sum(a.i * b.i) from range(10000000) a(i), range(10000000) b(i)",
    "select list(i) from range(1000000000) t(i)",
    "select repeat('x', 10000000) from range(1000)",
    "select levenshtein(repeat('a', 100000), repeat('b', 100000))",
    "select worker, count(*), max(memory) from samples group by 1",
)
COMPARED = ("names", "rows")


def _tables(**tables: list[Row]) -> dict[str, list[Row]]:
    common: dict[str, list[Row]] = {
        "workers": [
            {"worker": "w", "server_id": "s", "seen_us": START_US, "start_us": START_US, "nthreads": 2, "name": "w"}
        ],
        "computations": [{"computation": "c", "seen_us": START_US, "start_us": START_US, "tasks": 1}],
    }
    return {**common, **tables}


def recordings() -> Iterator[bytes]:
    """Yield posts of two clusters: one with very many prefixes and a deep stack, one with very many rows of one task."""
    tasks: list[Row] = [
        {"key": f"p{n}-1", "prefix": f"p{n}", "group": f"g{n}", "worker": "w", "status": "ok", "computation": "c",
         "start_us": START_US + 1_000 * n, "stop_us": START_US + 1_000 * n + 900}
        for n in range(NAMES)
    ]  # fmt: skip
    stack: Row = {
        "start_us": START_US, "stop_us": START_US + 1_000, "worker": "w", "prefix": "p0", "kind": "compute", "count": 5,
        "stack": [f"f.py\tg{n}\t1" for n in range(NAMES)],
    }  # fmt: skip
    yield b"".join(make_frames(_tables(tasks=tasks, profiles=[stack]), cluster="names"))
    sample: Row = {"time_us": START_US + 500, "worker": "w", "memory": 1}
    for epoch in range(1, POSTS + 1):
        yield b"".join(make_frames(_tables(tasks=tasks[:1], samples=[sample] * SAMPLES), cluster="rows", epoch=epoch))


def requests(kind: str) -> Iterator[tuple[str, str, bytes | None]]:
    """Yield method, path and body of endless requests of a kind: sql, compare or report."""
    for number in itertools.count():
        cluster = COMPARED[number % len(COMPARED)]
        if kind == "sql":
            yield "POST", "sql", json.dumps({"query": QUERIES[number % len(QUERIES)]}).encode()
        elif kind == "compare":
            yield "GET", f"compare?before={cluster}&after={cluster}", None
        else:
            # A report is built anew after each batch.
            event: Row = {"time_us": START_US + number, "topic": "t", "kind": "k", "detail": "{}"}
            frames = make_frames({"events": [event]}, cluster=cluster, epoch=1_000 + number)
            yield "POST", "ingest", b"".join(frames)
            yield "GET", f"clusters/{cluster}/document/report.json", None
