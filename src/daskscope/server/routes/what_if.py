"""Predictions of a computation on other clusters, by replaying its graph."""

from __future__ import annotations

from typing import Annotated

import msgspec

from daskscope import units
from daskscope.analysis.cost import choose_prices
from daskscope.analysis.what_if import MAX_THREADS, Changes, Prediction, what_if
from daskscope.errors import DaskscopeError
from daskscope.server.http.errors import bad_request, not_found, too_large
from daskscope.server.http.parameters import Text, find_cluster
from daskscope.server.http.routing import Call, Route
from daskscope.server.rendering import NoSuchComputation, Subject, read
from daskscope.server.serializers import parsed, tags_of
from daskscope.server.what_if_contract import PredictedCluster, WhatIf
from daskscope.storage.computations import list_computations

#: A replay takes up to 11 µs of CPU time per task and number of workers, in a thread of the server: 5 s at most. Larger
#: computations are for the command line.
MAX_TASKS, MAX_COUNTS = 50_000, 8
#: Prefixes that the response lists.
MAX_PREFIXES = 100


class WhatIfQuery(msgspec.Struct, forbid_unknown_fields=True):
    #: Numbers separated by commas; by default around the recorded number.
    workers: Text = ""
    #: 0: as recorded.
    threads: Annotated[int, msgspec.Meta(ge=0, le=MAX_THREADS)] = 0
    #: A task prefix, and how many times faster its tasks are.
    prefix: Annotated[str, msgspec.Meta(max_length=500)] = ""
    times: Annotated[float, msgspec.Meta(gt=0, le=1000)] = 1.0
    no_transfers: bool = False


def predict(call: Call) -> WhatIf:
    query: WhatIfQuery = call.query
    row, name = find_cluster(call), call.path("computation")
    with call.services.archive.read() as tx:
        stored = list_computations(tx, call.account.id, run=row.id, computation=name)
    if not stored:
        raise not_found("such computation")
    if stored[0].tasks > MAX_TASKS:
        raise too_large(
            f"This computation has {units.count(stored[0].tasks)} tasks, and the server replays up to {units.count(MAX_TASKS)}. "
            f"Run daskscope what-if {row.cluster} --computation {name} instead."
        )
    workers = _counts(query.workers)
    prices = choose_prices(vars(call.account.preferences), parsed(row.prices, {}), [*tags_of(row), row.name])
    try:
        recording, _, _ = read(call.services.archive, Subject(call.account.id, row.id, row.name, name))
        # The number of tasks is the recorder's word for it.
        if recording["tasks"].rows > 2 * MAX_TASKS:
            raise too_large("This computation has too many executions for a replay on the server.")
        found = what_if(
            recording,
            workers=workers,
            threads=query.threads or None,
            changes=Changes({query.prefix: query.times} if query.prefix else {}, no_transfers=query.no_transfers),
            computation=name,
            prices=prices,
        )
    except NoSuchComputation:
        raise not_found("such computation") from None
    except DaskscopeError as error:
        raise bad_request(str(error)) from None
    return {
        "reason": found.reason,
        "check": found.check,
        "advice": found.advice,
        "workers": found.workers,
        "threads": found.threads,
        "duration": found.wall_us / 1e6,
        "replayed": found.replayed_us / 1e6,
        "bound": found.bound_us / 1e6,
        "knee": found.knee,
        "predictions": [_view(prediction) for prediction in found.predictions],
        "assumptions": list(found.assumptions),
        "prefixes": list(found.prefixes[:MAX_PREFIXES]),
    }


def _counts(text: str) -> list[int] | None:
    if not text:
        return None
    parts = text.split(",")
    if len(parts) > MAX_COUNTS or not all(part.isascii() and part.isdigit() and len(part) < 9 for part in parts):
        raise bad_request(f"workers={text[:40]!r} is not a list of up to {MAX_COUNTS} numbers, such as 1,2,4.")
    return [int(part) for part in parts]


def _view(prediction: Prediction) -> PredictedCluster:
    return {
        "workers": prediction.workers,
        "threads": prediction.threads,
        "duration": prediction.wall_us / 1e6,
        "max_duration": prediction.max_wall_us / 1e6,
        "speedup": prediction.speedup,
        "efficiency": prediction.efficiency,
        "cost": None if prediction.cost is None else round(prediction.cost, 6),
        "peak_worker_memory": prediction.peak_worker_nbytes,
        "peak_memory": prediction.peak_nbytes,
        "transferred": prediction.transferred_nbytes,
        "exceeds_memory": prediction.exceeds_memory,
    }


ROUTES = [
    Route(
        "GET",
        "/api/v1/clusters/{cluster}/computations/{computation}/what-if",
        predict,
        "read",
        "Predict a computation on other clusters",
        query=WhatIfQuery,
        heavy=True,
    ),
]
