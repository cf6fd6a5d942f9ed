"""The rule about chunks that are too small or too large."""

from __future__ import annotations

from typing import Any

import pytest
from tests.rule_rows import WORKERS, S, T, by_rule

from daskscope.insights.facts import Finding

MIB = 1 << 20


def found(
    fixed_s: float, s_per_mb: float, sizes: list[float], *, noise_s: float = 0.0, **tables: Any
) -> Finding | None:
    """Run tasks one after the other on four threads, as long as a line says, for 100 s at most."""
    free, tasks = [0.0] * 4, []
    for n, size in enumerate(sizes):
        thread = free.index(min(free))
        start, length = free[thread], fixed_s + s_per_mb * size + noise_s * (n % 4)
        free[thread] = start + length
        times = {"start_us": T + round(start * S), "stop_us": T + round((start + length) * S)}
        names: dict[str, Any] = {
            "prefix": "read",
            "key": f"read-{n}",
            "computation": "c",
            "worker": "ab"[thread % 2],
            "status": "ok",
        }
        tasks.append({**names, **times, "id": n, "thread": thread, "nbytes": round(size * MIB)})
    cluster = {"cluster": "c", "recording_us": T, "end_us": T + round(max(free) * S)}
    workers = [{**worker, "memory_limit": 10**10} for worker in WORKERS]
    return by_rule(**{"tasks": tasks, "clusters": [cluster], "workers": workers, **tables}).get("chunk-size")


def test_chunks_that_are_too_small() -> None:
    finding = found(0.5, 0.01, [1.0, 2.0, 3.0] * 32)
    assert finding is not None
    assert finding.title == "Larger chunks would be faster for read"
    assert finding.evidence == (
        "A task takes 500 ms and 10 ms per MiB. With 2 MiB per chunk (median), 96 % of that is the fixed part."
    )
    assert finding.advice == "Try chunks or partitions of about 8 MiB, 4 times as large."
    assert finding.gain is not None
    # 96 tasks on 4 threads take 24 times 0.52 s; 24 tasks take 6 times 0.58 s.
    assert finding.gain.us == pytest.approx((24 * 0.52 - 6 * 0.58) * S, rel=0.02)


def test_chunks_that_are_too_large() -> None:
    """21 tasks on 4 threads take 6 rounds, the last of one task."""
    finding = found(0.0, 1.0, [1.0, 1.5, 2.0] * 6 + [2.0, 2.0, 6.0])
    assert finding is not None
    assert finding.title == "Smaller chunks would be faster for read"
    assert finding.advice == "Try chunks or partitions of about 384 KiB, a quarter as large."


@pytest.mark.parametrize(
    ("fixed_s", "s_per_mb", "sizes"),
    [
        (0.01, 0.25, [1.0, 2.0, 3.0] * 32),
        (0.5, 0.01, [2.0, 2.1, 2.2] * 32),
        (0.5, 0.01, [1.0, 2.0, 3.0] * 5),
        (0.5, 0.0, [1.0, 2.0, 3.0] * 32),
        (0.002, 0.001, [1.0, 2.0, 3.0] * 32),
        (0.5, 0.01, [1.0, 2.0, 3.0] * 30 + [40.0]),
    ],
    ids=["time goes by bytes", "equal sizes", "few tasks", "no line", "short tasks", "skew"],
)
def test_runs_that_say_nothing(fixed_s: float, s_per_mb: float, sizes: list[float]) -> None:
    assert found(fixed_s, s_per_mb, sizes) is None


def test_durations_that_vary_for_other_reasons() -> None:
    assert found(0.5, 0.01, [1.0, 2.0, 3.0] * 32, noise_s=0.2) is None


def test_chunks_that_would_not_fit_into_memory() -> None:
    workers = [{**worker, "memory_limit": 50 * MIB} for worker in WORKERS]
    assert found(0.5, 0.01, [1.0, 2.0, 3.0] * 32, workers=workers) is None
