"""Return the profile of a recording or a running cluster: like ``Client.profile``, but for the whole run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import distributed
import numpy as np

from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.profiles import Profile, tree
from daskscope.analysis.profiles import profile as merge
from daskscope.analysis.summary import extent
from daskscope.client.connection import ask, find_client, is_recorded
from daskscope.client.server import download_recording
from daskscope.client.source import find_recording
from daskscope.errors import DaskscopeError, ServerError
from daskscope.model.recording import Recording
from daskscope.report.document import report_page

#: Resolution of ``start`` and ``stop``: a 2,000th of the run.
MAX_BINS = 2_000


def profile(
    source: Recording | str | Path | distributed.Client,
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
    """Return the call tree of a recording as nested dictionaries like those of ``Client.profile``.

    ``source`` is a recording, its path, or a cluster on a server: its ID or the URL of its page. It can also be a client: the
    result then has all that the server of its cluster has recorded, up to a few seconds ago. If no server has a recording of
    it that you can read, it is Dask's own profile of the last minutes, as ``Client.profile`` returns it.
    ``key`` is a task prefix; ``start`` and ``stop`` are seconds since the epoch. ``server`` selects the event loops of the
    workers, ``scheduler`` that of the scheduler. With ``merge_workers=False`` the result has a tree for each worker. With
    ``filename`` the profile is also written as an HTML page.
    """
    if server and scheduler:
        raise DaskscopeError("Give either server=True (event loops of the workers) or scheduler=True, not both.")
    if isinstance(source, distributed.Client):
        found = _recording_of(source)
        if found is None:
            options = {"start": start, "stop": stop, "workers": workers, "server": server, "scheduler": scheduler}
            result: dict[str, Any] = source.profile(key, merge_workers=merge_workers, filename=filename, **options)
            return result
        source = found
    recording = source if isinstance(source, Recording) else find_recording(source)
    begin, end = extent(recording)
    merged = merge(recording, Bins.over(begin, max(end, begin + 1), max_count=MAX_BINS))
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


def _recording_of(client: distributed.Client) -> Recording | None:
    """Return the recording that a server has of a running cluster; None if there is none that this user can read."""
    client = find_client(client)
    if client.asynchronous:
        raise DaskscopeError("profile() needs a client that is not asynchronous.")
    hello = client.sync(_hello, client)
    if not hello.get("server") or not hello.get("account"):
        return None
    try:
        return download_recording(hello["cluster"], hello["account"], url=hello["server"])
    except ServerError as error:
        # The first batch is on its way, or the cluster belongs to an account of others.
        if error.status == 404:
            return None
        raise


async def _hello(client: distributed.Client) -> dict[str, Any]:
    """Return the reply of the cluster's recorder, without a claim on it; empty if there is no recorder."""
    found = await ask(client, "hello") if await is_recorded(client) else None
    return found or {}


def _us(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e6)


def _nested(merged: Profile, own: Any) -> dict[str, Any]:
    """Return the tree in Dask's format, without nodes that have no samples."""
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
