"""Predict a computation on other clusters."""

from __future__ import annotations

from typing import Annotated, TypedDict

import msgspec

from daskscope import units
from daskscope.analysis.cost import choose_prices
from daskscope.analysis.what_if.predict import MAX_THREADS, Options, Prediction
from daskscope.analysis.what_if.predict import WhatIf as Found
from daskscope.errors import DaskscopeError
from daskscope.server.documents import HERE_NBYTES, amount_here
from daskscope.server.errors import bad_request, not_found, too_large, unavailable
from daskscope.server.http.parameters import Text, find_cluster
from daskscope.server.http.routing import Call, Route
from daskscope.server.processes import replay
from daskscope.server.processes.job import JobFailed, TooLarge
from daskscope.server.processes.replay import WhatIfRequest, answer, answer_apart
from daskscope.server.services import Services
from daskscope.server.views import parsed, tags_of
from daskscope.storage.base.database import StorageError
from daskscope.storage.catalog.computations import NoSuchComputation, list_computations
from daskscope.storage.runs.read import RunTooLarge


class PredictedCluster(TypedDict):
    """A computation on a number of equal workers."""

    workers: int
    threads: int
    duration: float
    #: The longer duration, where the recording leaves a range: see the assumptions. Usually the same.
    max_duration: float
    #: Duration of the run divided by ``duration``.
    speedup: float
    efficiency: float
    cost: float | None
    #: Bytes of results: the most at one worker, of all, and moved between workers.
    peak_worker_memory: int
    peak_memory: int
    transferred: int
    exceeds_memory: bool


class WhatIf(TypedDict):
    """Predictions of a computation, by number of workers."""

    #: Why there are no predictions; empty if there are.
    reason: str
    #: How well the replay repeats the run, and up to how many workers more of them pay off, as sentences.
    check: str
    advice: str
    #: Of the run: workers, threads of each, duration, and the duration of its replay.
    workers: int
    threads: int
    duration: float
    replayed: float
    #: Duration with any number of workers.
    bound: float
    #: The last number of workers up to which more of them pay off; 0 without predictions.
    knee: int
    predictions: list[PredictedCluster]
    assumptions: list[str]
    #: Task prefixes, longest total time first.
    prefixes: list[str]


#: A replay takes up to 24 µs of CPU time per task and number of workers. Larger computations are for the command line.
MAX_TASKS, MAX_COUNTS = 50_000, 8
#: Prefixes that the response lists.
MAX_PREFIXES = 100


class WhatIfQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Parameters of a prediction: ``Options``, and numbers of workers and threads."""

    #: Numbers separated by commas; by default around the recorded number.
    workers: Text = ""
    #: 0: as recorded.
    threads: Annotated[int, msgspec.Meta(ge=0, le=MAX_THREADS)] = 0
    #: A task prefix, and how many times faster its tasks are.
    prefix: Annotated[str, msgspec.Meta(max_length=500)] = ""
    times: Annotated[float, msgspec.Meta(gt=0, le=1000)] = 1.0
    no_transfers: bool = False
    #: No task reads its inputs from disk.
    no_spill: bool = False
    #: No task takes longer than 95 % of its prefix do.
    no_stragglers: bool = False
    #: Chunks of this many times the size: a whole number, or one divided by it.
    chunks: Annotated[float, msgspec.Meta(gt=0, le=1000)] = 1.0


def predict(call: Call) -> WhatIf:
    query: WhatIfQuery = call.query
    row, name = find_cluster(call), call.path("computation")
    with call.services.archive.read() as tx:
        stored = list_computations(tx, call.account.id, run=row.id, computation=name)
    if not stored:
        raise not_found("such computation")
    next_step = f"Run daskscope what-if {row.cluster} --computation {name} instead."
    tasks = stored[0].tasks
    if tasks * max(1.0, 1 / query.chunks) > MAX_TASKS:
        smaller = f", {units.count(round(tasks / query.chunks))} with such chunks" if query.chunks < 1 else ""
        raise too_large(
            f"This computation has {units.count(tasks)} tasks{smaller}. The server replays up to {units.count(MAX_TASKS)}. "
            f"{next_step}"
        )
    request = WhatIfRequest(
        account=call.account.id,
        run=row.id,
        computation=name,
        workers=_counts(query.workers),
        threads=query.threads or None,
        options=Options.from_attributes({query.prefix: query.times} if query.prefix else {}, query),
        prices=choose_prices(vars(call.account.preferences), parsed(row.prices, {}), [*tags_of(row), row.name]),
        # Retried and recomputed tasks have several executions.
        max_executions=2 * MAX_TASKS,
    )
    try:
        return _view(_answer(call.services, request, tasks))
    except NoSuchComputation:
        raise not_found("such computation") from None
    except TooLarge as error:
        raise too_large(f"{error} {next_step}") from None
    except JobFailed as error:
        raise unavailable(str(error)) from None
    except StorageError:
        raise
    except DaskscopeError as error:
        raise bad_request(str(error)) from None


def _answer(services: Services, request: WhatIfRequest, tasks: int) -> Found:
    """Replay a computation: in this process if it is small."""
    tasks = round(tasks * max(1.0, 1 / request.options.chunks))
    if tasks <= replay.MAX_TASKS_HERE:
        try:
            with services.build_memory.reserve(HERE_NBYTES, request.account):
                return answer(services.archive, request, amount_here(services, request.account))
        except RunTooLarge:
            pass
    return answer_apart(services.runner, request, tasks * replay.TASK_NBYTES + replay.PROCESS_NBYTES)


def _view(found: Found) -> WhatIf:
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
        "predictions": [_view_of(prediction) for prediction in found.predictions],
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


def _view_of(prediction: Prediction) -> PredictedCluster:
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
