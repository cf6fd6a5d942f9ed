"""Parameters of requests: ``since``, cursors and limits of lists, and the cluster they name."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from datetime import datetime, timezone
from typing import Annotated, Any

import msgspec

from daskscope import units
from daskscope.model.states import RUN_STATES
from daskscope.model.untrusted import clean_text, parse_json
from daskscope.server import documents
from daskscope.server.errors import bad_request, not_found
from daskscope.server.http.routing import Call
from daskscope.storage.catalog import clusters
from daskscope.storage.catalog.computations import NoSuchComputation

#: A number and a unit, as in Dask's settings. Dask's parser needs all of dask: 0.3 s of CPU time when a server starts.
DURATION = re.compile(r"(\d+\.?\d*(?:e\d+)?|(?=[a-z]))\s*([a-z]*)")
UNITS_US = {"": units.SECOND, "ms": units.MILLISECOND} | {
    name: us
    for long, us in (
        ("second", units.SECOND), ("minute", units.MINUTE), ("hour", units.HOUR), ("day", units.DAY), ("week", 7 * units.DAY),
    )
    for name in (long[0], long, f"{long}s")
}  # fmt: skip


def since_us(text: str, now_us: int) -> int:
    """Return ``since`` (``7 days``, ``2h``, seconds, or a date) as a time in microseconds; 0 for all history."""
    if not text or text.lower() in ("none", "all"):
        return 0
    found = DURATION.fullmatch(text.strip().lower())
    us = float(found[1] or 1) * UNITS_US.get(found[2], math.inf) if found else math.inf
    if math.isfinite(us):
        return max(0, now_us - int(us))
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise bad_request(f"since={text[:40]!r} is neither a duration (7 days, 2h) nor a date (2026-05-01).") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return max(0, int(moment.timestamp() * 1e6))


def run_states(text: str) -> tuple[str, ...]:
    """Return the states in a list that is separated by commas."""
    states = tuple(part for part in text.split(",") if part)
    if unknown := set(states) - set(RUN_STATES):
        raise bad_request(f"There is no state {sorted(unknown)[0]!r}. The states are {', '.join(RUN_STATES)}.")
    return states


#: Maximum items of a page.
MAX_PAGE = 1_000
Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE)]
Text = Annotated[str, msgspec.Meta(max_length=200)]
#: A cursor: a name of 500 bytes, escaped and encoded.
Place = Annotated[str, msgspec.Meta(max_length=4_000)]


def encode(*place: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def decode(text: str, *kinds: type) -> tuple[Any, ...] | None:
    """Return the position that a cursor stands for; None for the start."""
    if not text:
        return None
    try:
        place = parse_json(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode())
    except (binascii.Error, ValueError):
        place = None
    fits = isinstance(place, list) and len(place) == len(kinds)
    if not fits or any(type(value) is not kind or _too_big(value) for value, kind in zip(place, kinds)):
        raise bad_request("This cursor is invalid. Start again without one.")
    return tuple(place)


def _too_big(value: Any) -> bool:
    return isinstance(value, int) and abs(value) >= 1 << 63


MAX_NAME = 200


def is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 18


def check_cluster(name: str) -> None:
    """Refuse a cluster name that cannot be in a path: a slash, even escaped, would name something else."""
    plain = name and clean_text(name, MAX_NAME) == name and name.isprintable()
    if not plain or "/" in name or "\\" in name or name in (".", ".."):
        raise bad_request("A batch has an invalid cluster name.")


def find_cluster(call: Call, name: str = "") -> clusters.Cluster:
    """Return a named cluster, else the cluster of the path."""
    with call.services.archive.read() as tx:
        row = clusters.find_cluster(tx, call.account.id, name or call.path("cluster"))
    if row is None:
        raise not_found("such cluster")
    return row


def run_of(call: Call, cluster: str) -> int | None:
    """Return the run of a named cluster; None if none is named."""
    return find_cluster(call, cluster).id if cluster else None


def find_document(call: Call, row: clusters.Cluster) -> documents.Shown:
    """Return the document of a run, or of the computation in the path."""
    computation = str(call.request.path_params.get("computation", ""))
    title = row.name or row.cluster
    try:
        return documents.of_run(call.services, call.account.id, row.id, title, computation)
    except NoSuchComputation:
        raise not_found("such computation") from None
