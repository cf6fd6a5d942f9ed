"""Profiles in the formats of other viewers: speedscope's, and collapsed stacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from daskscope.analysis.bins import Bins
from daskscope.analysis.profiles import Profile, collapsed, profile, tree
from daskscope.analysis.summary import extent
from daskscope.model.recording import Recording
from daskscope.model.table import Array

SPEEDSCOPE_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write_speedscope(recording: Recording, path: Path) -> Path:
    """One profile a kind (computing, event loops), weighted by seconds where they are known."""
    merged = _profile(recording)
    profiles = [_sampled(merged, kind) for kind in merged.cube.keys["kind"]]
    frames = [{"name": name, "file": file, "line": max(1, line)} for file, name, line in merged.frames]
    # Where nothing was sampled the file still has to be one that opens.
    empty = {"type": "sampled", "name": "nothing was sampled", "unit": "none", "startValue": 0, "endValue": 0}
    document = {
        "$schema": SPEEDSCOPE_SCHEMA,
        "name": Path(recording.source).name,
        "exporter": "daskscope",
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
        "profiles": profiles or [{**empty, "samples": [], "weights": []}],
    }
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def write_collapsed(recording: Recording, path: Path) -> Path:
    """A line a stack: frames from the outermost in, and how often it was seen while computing."""
    merged = _profile(recording)
    counts, _ = tree(merged, kind="compute")
    path.write_text("".join(f"{line}\n" for line in collapsed(merged, counts)), encoding="utf-8", errors="replace")
    return path


def _profile(recording: Recording) -> Profile:
    first, last = extent(recording)
    return profile(recording, Bins.over(first, last + 1, most=1))


def _sampled(merged: Profile, kind: str) -> dict[str, Any]:
    counts, _ = tree(merged, kind=kind)
    ends = np.flatnonzero(counts)
    seconds = kind == "compute" and merged.seconds_per_sample > 0
    weights = counts[ends] * (merged.seconds_per_sample if seconds else 1)
    return {
        "type": "sampled",
        "name": kind,
        "unit": "seconds" if seconds else "none",
        "startValue": 0,
        "endValue": float(weights.sum()),
        "samples": [_stack(merged, int(node)) for node in ends],
        "weights": weights.tolist(),
    }


def _stack(merged: Profile, node: int) -> list[int]:
    frames = []
    parents: Array = merged.parents
    while node >= 0:
        frames.append(int(merged.nodes[node]))
        node = int(parents[node])
    return frames[::-1]
