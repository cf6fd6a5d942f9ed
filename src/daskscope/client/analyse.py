"""Ask about recordings from Python: compare them, profile them, and predict them on other clusters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import distributed
import numpy as np

from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.compare.comparison import Comparison, Part, compare_parts, part_of
from daskscope.analysis.profiles import Profile, tree
from daskscope.analysis.profiles import profile as merge
from daskscope.analysis.summary import extent
from daskscope.analysis.what_if import predict as prediction
from daskscope.analysis.what_if.predict import Options, WhatIf
from daskscope.client.connection import ask, find_client, is_recorded
from daskscope.client.local_server import split_secret, with_secret
from daskscope.client.server import configured_url, download_recording
from daskscope.errors import DaskscopeError, ServerError
from daskscope.model.recording import Recording
from daskscope.report.document import report_page
from daskscope.report.source import read_source

#: Anything that names a run.
Source = str | Path | Recording
#: The page of a computation.
COMPUTATION = re.compile(r".*/clusters/[^/]+/computations/([^/]+)(?:/.*)?")


def compare(
    before: Source | Sequence[Source],
    after: Source | Sequence[Source],
    *,
    computation: str | int | None = None,
    time: tuple[float, float] | None = None,
) -> Comparison:
    """Compare runs, and say whether a difference is more than noise.

    Each side is one run or a list of repeats; five repeats on both sides can prove a difference. A run is a path, the ID of a
    cluster, the URL of the page of a cluster or computation, or an open recording. ``computation`` compares one computation of
    each run, by its ID or position (1 is the first, -1 the last); ``time`` compares seconds from the start of each run.

    >>> daskscope.compare("before.daskscope", "after.daskscope")        # doctest: +SKIP
    """
    chosen = "" if computation is None else str(computation)
    return compare_parts(
        (find_part(source, chosen, time) for source in _listed(before)),
        (find_part(source, chosen, time) for source in _listed(after)),
    )


def find_part(source: Source, computation: str = "", time: tuple[float, float] | None = None) -> Part:
    """Read a run and select the part to compare."""
    if isinstance(source, Recording):
        return part_of(source, computation, time)
    if not computation and str(source).startswith(("http://", "https://")):
        page = COMPUTATION.fullmatch(urlsplit(str(source)).path)
        computation = unquote(page[1]) if page else ""
    return part_of(find_recording(source), computation, time)


def _listed(sources: Source | Sequence[Source]) -> Sequence[Source]:
    return [sources] if isinstance(sources, (str, Path, Recording)) else sources


#: Scheduler IDs as distributed makes them.
CLUSTER_ID = re.compile(r"Scheduler-[0-9a-f-]{36}")
#: The page of a cluster, or a page below it: server, account and ID of the cluster.
PAGE = re.compile(r"(https?://.+?)/([^/]+)/clusters/([^/]+)(?:/.*)?")


def find_recording(name: str | Path) -> Recording:
    """Read a recording from disk; download it if the name is the URL of a page, or a cluster ID and a server is configured."""
    text = str(name)
    if isinstance(name, str) and text.startswith(("http://", "https://")):
        return _download_page(text)
    if CLUSTER_ID.fullmatch(text) and not Path(text).exists() and configured_url():
        return download_recording(text)
    return read_source(name)


def _download_page(url: str) -> Recording:
    url, secret = split_secret(url)
    parts = urlsplit(url)
    found = PAGE.fullmatch(f"{parts.scheme}://{parts.netloc}{parts.path}")
    if found is None:
        raise DaskscopeError(
            f"{url} is not the page of a cluster. Give a URL such as https://server/account/clusters/ID."
        )
    server, account, cluster = found.groups()
    return download_recording(unquote(cluster), unquote(account), url=with_secret(server, secret) if secret else server)


def what_if(
    run: Recording | str | Path,
    workers: Sequence[int] | None = None,
    threads: int | None = None,
    *,
    faster: Mapping[str, float] | None = None,
    no_transfers: bool = False,
    no_spill: bool = False,
    no_stragglers: bool = False,
    chunks: float = 1,
    computation: str | None = None,
) -> WhatIf:
    """Predict wall time, cost and memory of a recorded computation for each number of workers.

    Daskscope replays the recorded graph: it places the tasks on the workers as Dask's scheduler does, with their recorded
    durations, result sizes and overheads. It replays the recorded cluster, too: ``check`` says how close that comes to the run.
    If it is off by more than a fifth, or if the recording is incomplete, there are no ``predictions``, and ``reason`` says why.

    Args:
        run: a recording, or what ``open_recording()`` accepts: a file, a directory, a cluster ID or the URL of its page.
        workers: numbers of workers; by default from a quarter to eight times as many as recorded.
        threads: threads of each worker; by default as recorded.
        faster: task prefixes, and how many times faster their tasks are.
        no_transfers: results are at every worker at once.
        no_spill: no task reads its inputs from disk.
        no_stragglers: no task takes longer than 95 % of its prefix do.
        chunks: chunks of this many times the size, such as 2 or 0.5: neighbouring tasks are joined, or tasks are divided.
        computation: ID of the computation; by default the one that took longest.
    """
    recording = run if isinstance(run, Recording) else find_recording(run)
    options = Options(
        faster or {}, no_transfers=no_transfers, no_spill=no_spill, no_stragglers=no_stragglers, chunks=chunks
    )
    return prediction.what_if(recording, workers=workers, threads=threads, options=options, computation=computation)


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
    """Return the call tree of a recording as nested dictionaries, like ``Client.profile``.

    ``source`` is a recording, its path, or a cluster on a server: its ID or the URL of its page. It can also be a client: the
    result then has all that the server of its cluster has recorded, up to a few seconds ago. If no server has a recording of
    it that you can read, it is Dask's own profile of the last minutes, as ``Client.profile`` returns it.
    ``key`` is a task prefix; ``start`` and ``stop`` are seconds since the epoch. ``server`` selects the event loops of the
    workers, ``scheduler`` the event loop of the scheduler. With ``merge_workers=False`` the result has a tree for each worker.
    With ``filename`` the profile is also written as an HTML page.
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
