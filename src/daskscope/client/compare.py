"""Compare recordings, reports, computations and clusters on a server."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from daskscope.analysis.compare.comparison import Comparison, Part, compare_parts, part_of
from daskscope.client.source import find_recording
from daskscope.model.recording import Recording

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
