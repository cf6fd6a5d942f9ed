"""Where the threads were, from a recording: what ``Client.profile`` tells of the last minutes, for all of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from daskscope.analysis.bins import Bins
from daskscope.analysis.profiles import Profile, tree
from daskscope.analysis.profiles import profile as merge
from daskscope.analysis.summary import extent
from daskscope.errors import DaskscopeError
from daskscope.model.recording import Recording
from daskscope.report.document import report_page
from daskscope.report.source import read_source

#: Time can be selected in steps of a 2,000th of the run.
STEPS = 2_000


def profile(
    source: Recording | str | Path,
    key: str | None = None,
    start: float | None = None,
    stop: float | None = None,
    workers: list[str] | None = None,
    *,
    merge_workers: bool = True,
    filename: str | Path | None = None,
    server: bool = False,
    scheduler: bool = False,
) -> dict[str, Any]:
    """The call tree of a recording, as nested dictionaries like those of ``Client.profile``.

    ``key`` is a task prefix, ``start`` and ``stop`` are seconds since the epoch; ``server`` asks for the event loops of the
    workers, ``scheduler`` for that of the scheduler. Without ``merge_workers`` there is a tree for each worker. ``filename`` also
    writes a page that opens without a web server.
    """
    if server and scheduler:
        raise DaskscopeError("Ask for server=True (the workers' event loops) or for scheduler=True, not for both.")
    recording = source if isinstance(source, Recording) else read_source(source)
    begin, end = extent(recording)
    merged = merge(recording, Bins.over(begin, max(end, begin + 1), most=STEPS))
    kind = "scheduler" if scheduler else "worker event loop" if server else "compute"
    wanted = merged.cube.keys["worker"] if workers is None else workers
    counts = {
        worker: tree(merged, kind, key, worker=worker, start_us=_us(start), stop_us=_us(stop))[0] for worker in wanted
    }
    if filename is not None:
        Path(filename).write_bytes(report_page(recording, title=Path(recording.source).stem, view="profile"))
    if not merge_workers:
        return {worker: _nested(merged, own) for worker, own in counts.items()}
    return _nested(merged, sum(counts.values(), np.zeros(len(merged.nodes), dtype=np.int64)))


def _us(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e6)


def _nested(merged: Profile, own: Any) -> dict[str, Any]:
    """The tree as Dask writes it; what was never seen is left out."""
    root: dict[str, Any] = _node("root", "", "", 0)
    made: list[dict[str, Any]] = []
    totals = own.copy()
    for child in range(len(merged.nodes) - 1, -1, -1):
        if merged.parents[child] >= 0:
            totals[merged.parents[child]] += totals[child]
    for number, (frame, parent) in enumerate(zip(merged.nodes.tolist(), merged.parents.tolist(), strict=True)):
        file, function, line = merged.frames[frame]
        node = _node(f"{function};{file};{line}", file, function, line)
        node["count"] = int(totals[number])
        made.append(node)
        above = made[parent] if parent >= 0 else root
        if node["count"]:
            above["children"][node["identifier"]] = node
            root["count"] += node["count"] if parent < 0 else 0
    return root


def _node(identifier: str, file: str, name: str, line: int) -> dict[str, Any]:
    description = {"filename": file, "name": name, "line_number": line, "line": ""}
    return {"count": 0, "children": {}, "identifier": identifier, "description": description}
