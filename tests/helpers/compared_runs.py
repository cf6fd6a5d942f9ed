"""Rows of a run with four task prefixes, one of which can be slowed, with a little noise."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from tests.helpers.samples import Tables, write_frames

from daskscope.analysis.compare.measurements import Measured, measure
from daskscope.analysis.summary import extent
from daskscope.testing import make_frames, make_recording

T = 1_763_244_000_000_000
TASKS = 10
PREFIXES = {"load": 8_000, "clean": 4_000, "score": 5_000, "store": 3_000}


def compared_tables(seed: int, score: float = 1.0, cluster: str = "compared", start_us: int = T) -> Tables:
    """Return the rows of one run. ``score`` multiplies the time of that prefix; its stack is sampled in proportion."""
    random, now, tasks = Random(seed), start_us, list[dict[str, Any]]()
    common = {"worker": "tcp://a:1", "status": "ok", "nbytes": 10, "computation": "c-1"}
    activities = []
    for prefix, us in PREFIXES.items():
        total = 0
        for number in range(TASKS):
            took = round(us * (score if prefix == "score" else 1.0) * random.lognormvariate(0.0, 0.01))
            row = {
                "id": len(tasks),
                "prefix": prefix,
                "key": f"{prefix}-{number}",
                "start_us": now,
                "stop_us": now + took,
            }
            tasks.append({**common, **row, "group": prefix})
            now, total = now + took, total + took
        row = {
            "context": "execute",
            "prefix": prefix,
            "activity": "thread-cpu",
            "unit": "seconds",
            "value": total / 1e6,
        }
        activities.append({"time_us": now, **row})
    stacks = [
        {
            "kind": "compute", "worker": "tcp://a:1", "start_us": start_us, "stop_us": now, "prefix": prefix, "count": count,
            "stack": ["/home/ann/job.py\tmain\t1", f"/home/ann/job.py\t{prefix}\t{count}"], "ticks": 10, "ticks_expected": 10,
        }
        for prefix, count in {**PREFIXES, "score": round(PREFIXES["score"] * score)}.items()
    ]  # fmt: skip
    code = f"factor = {score}\nscored.compute()"
    computation = {
        "computation": "c-1", "state": "done", "start_us": start_us, "stop_us": now, "tasks": len(tasks), "code": code,
        "code_line": 1, "code_file": "/home/ann/job.py", "groups": len(PREFIXES), "seen_us": now,
    }  # fmt: skip
    return {
        "clusters": [
            {
                "cluster": cluster, "name": "job", "start_us": start_us, "recording_us": start_us, "end_us": now, "seen_us": now,
                "versions": f'{{"dask": "{"2026.8" if score == 1 else "2026.9"}"}}',
            }
        ],
        "workers": [{"worker": "tcp://a:1", "server_id": "a", "nthreads": 1, "start_us": start_us, "seen_us": now}],
        "computations": [computation],
        "tasks": tasks,
        "activities": activities,
        "profiles": stacks,
        "samples": [{"time_us": start_us + 1, "worker": "tcp://a:1", "memory": 2**20}],
    }  # fmt: skip


def write_runs(directory: Path, count: int, score: float = 1.0, first: int = 0) -> list[str]:
    """Write recordings of repeats, and return their paths."""
    paths = [directory / f"{score}-{seed}.daskscope" for seed in range(first, first + count)]
    for seed, path in enumerate(paths, first):
        write_frames(path, make_frames(compared_tables(seed, score)))
    return [str(path) for path in paths]


def measured_run(seed: int, score: float = 1.0) -> Measured:
    """Return the measurements of one run."""
    recording = make_recording(compared_tables(seed, score))
    return measure(recording, *extent(recording))
