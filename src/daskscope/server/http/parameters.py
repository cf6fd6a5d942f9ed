"""Parameters of requests: ``since``, cursors and limits of lists, and the cluster they name."""

from __future__ import annotations

import base64
import binascii
import json
from datetime import datetime, timezone
from typing import Annotated, Any

import msgspec
from dask.utils import parse_timedelta

from daskscope.model.untrusted import clean_text
from daskscope.server import documents
from daskscope.server.errors import bad_request, not_found
from daskscope.server.http.routing import Call
from daskscope.storage.catalog import clusters
from daskscope.storage.catalog.computations import NoSuchComputation


def since_us(text: str, now_us: int) -> int:
    """Return ``since`` (``7 days``, ``2h``, seconds, or a date) as a time in microseconds; 0 for all history."""
    if not text or text.lower() in ("none", "all"):
        return 0
    try:
        return max(0, now_us - int(float(parse_timedelta(text, default="seconds")) * 1e6))
    except (ValueError, KeyError, IndexError, OverflowError, TypeError):
        # IndexError: a text of spaces only.
        pass
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise bad_request(f"since={text[:40]!r} is neither a duration (7 days, 2h) nor a date (2026-05-01).") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return max(0, int(moment.timestamp() * 1e6))


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
        place = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (binascii.Error, ValueError, RecursionError):
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
