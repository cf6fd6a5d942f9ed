"""The computations of an account, and how one of them did over time."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import Any, TypedDict

import msgspec

from daskscope import units
from daskscope.analysis.compare.history import PastRun, causes, change_points
from daskscope.server.caches import usual_duration
from daskscope.server.contract import OneComputation
from daskscope.server.errors import not_found
from daskscope.server.http import parameters
from daskscope.server.http.parameters import Limit, Place, Text, find_cluster, run_of, since_us
from daskscope.server.http.routing import Call, Route
from daskscope.server.views import (
    computation_view,
    cost_of,
    moment,
    prefix_views,
    scheduler_now_us,
    seconds,
    usual_view,
)
from daskscope.storage.catalog.clusters import prefixes_of
from daskscope.storage.catalog.computations import earlier_runs
from daskscope.storage.catalog.computations import list_computations as stored
from daskscope.storage.catalog.history import StoredRun, past_runs
from daskscope.storage.people.accounts import Account


class HistoryRun(TypedDict):
    """One run. Durations are seconds; compute, transfer and disk are thread time of its tasks."""

    id: str
    cluster_id: str
    start: str | None
    duration: float
    #: Estimate in dollars for the workers while it ran; None without prices or workers.
    cost: float | None
    compute: float
    transfer: float
    disk: float
    n_tasks: int
    n_errors: int
    nbytes: int
    #: Peak of the cluster.
    threads: int


class HistoryLevel(TypedDict):
    """The median duration from one change to the next, in seconds, and the index of the first run with it."""

    first: int
    duration: float


class HistoryChange(TypedDict):
    """A change of the level: when, by how much, and what else changed."""

    at: str | None
    sentence: str
    causes: list[str]


class ComputationHistory(TypedDict):
    """Finished runs of the same code, oldest first, and the changes of their duration."""

    runs: list[HistoryRun]
    levels: list[HistoryLevel]
    changes: list[HistoryChange]


MAX_RUNS = 200


def get_history(call: Call) -> ComputationHistory:
    run = find_cluster(call).id
    with call.services.archive.read() as tx:
        rows = stored(tx, call.account.id, run=run, computation=call.path("computation"))
        if not rows:
            raise not_found("such computation")
        runs = past_runs(tx, call.account.id, rows[0], MAX_RUNS)
    return history_of(runs, call.account)


def history_of(runs: list[StoredRun], account: Account) -> ComputationHistory:
    """Return the history of runs, oldest first."""
    past = [run.past for run in runs]
    changes = change_points([float(run.wall_us) for run in past])
    edges = [0, *(change.index for change in changes), len(past)]
    levels = [past[first:last] for first, last in pairwise(edges) if last > first]
    return {
        "runs": [_run(run, account) for run in runs],
        "levels": [
            {"first": first, "duration": seconds(median_us(level))} for first, level in zip(edges, levels, strict=False)
        ],
        "changes": [_change(before, after) for before, after in pairwise(levels)],
    }


def median_us(runs: list[PastRun]) -> float:
    return median(run.wall_us for run in runs)


def _run(run: StoredRun, account: Account) -> HistoryRun:
    past, cost = run.past, cost_of(run.paid, account).total
    return {
        "id": run.computation,
        "cluster_id": run.cluster,
        "start": moment(past.start_us),
        "duration": seconds(past.wall_us),
        "cost": round(cost, 6) if cost > 0 else None,
        "compute": seconds(run.paid.compute_us),
        "transfer": seconds(past.transfer_us),
        "disk": seconds(past.disk_us),
        "n_tasks": past.tasks,
        "n_errors": past.errors,
        "nbytes": past.nbytes,
        "threads": past.threads,
    }


def _change(before: list[PastRun], after: list[PastRun]) -> HistoryChange:
    old, new = median_us(before), median_us(after)
    word = "slower" if new > old else "faster"
    headline = f"{units.percent(abs(new / old - 1))} {word}" if old else word.capitalize()
    return {
        "at": moment(after[0].start_us),
        "sentence": (
            f"{headline}: {units.duration(new)} instead of {units.duration(old)} "
            f"(medians of {len(after)} and {len(before)} runs)."
        ),
        "causes": causes(before, after) or ["No recorded cause. The code or the machines may have changed."],
    }


#: Maximum earlier runs listed with a computation.
MAX_EARLIER = 10


class ComputationsQuery(msgspec.Struct, forbid_unknown_fields=True):
    cluster_id: Text = ""
    since: Text = ""
    limit: Limit = 100
    cursor: Place = ""


def list_computations(call: Call) -> dict[str, Any]:
    query: ComputationsQuery = call.query
    run = run_of(call, query.cluster_id)
    after = parameters.decode(query.cursor, int, str, int)
    with call.services.archive.read() as tx:
        rows = stored(
            tx, call.account.id,
            run=run, since_us=since_us(query.since, call.now_us), limit=query.limit + 1, after=after,
        )  # fmt: skip
    more, rows = len(rows) > query.limit, rows[: query.limit]
    items = [computation_view(row, call.account, call.services.url, call.now_us) for row in rows]
    last = rows[-1] if more else None
    return {
        "items": items,
        "next": parameters.encode(last.start_us, last.computation, last.run_id) if last else None,
    }


def get_computation(call: Call) -> OneComputation:
    cluster = find_cluster(call)
    run, name = cluster.id, call.path("computation")
    with call.services.archive.read() as tx:
        rows = stored(tx, call.account.id, run=run, computation=name)
        if not rows:
            raise not_found("such computation")
        prefixes, of_cluster = prefixes_of(tx, run, name), prefixes_of(tx, run)
        earlier = earlier_runs(tx, call.account.id, rows[0], MAX_EARLIER)
        runs = call.services.earlier_runs.of(tx, call.account.id, rows[0]) if rows[0].state == "running" else []
    return {
        **computation_view(rows[0], call.account, call.services.url, call.now_us),
        "prefixes": prefix_views(prefixes, of_cluster),
        "earlier": [computation_view(row, call.account, call.services.url, call.now_us) for row in earlier],
        "usual": usual_view(usual_duration(rows[0], runs, scheduler_now_us(cluster, call.now_us))),
    }


ROUTES = [
    Route(
        "GET",
        "/api/v1/clusters/{cluster}/computations/{computation}/history",
        get_history,
        "read",
        "Return earlier runs of a computation's code, and when and why their duration changed",
    ),
    Route(
        "GET",
        "/api/v1/computations",
        list_computations,
        "read",
        "List computations, newest first",
        query=ComputationsQuery,
    ),
    Route(
        "GET",
        "/api/v1/clusters/{cluster}/computations/{computation}",
        get_computation,
        "read",
        "Return a computation with its prefixes",
    ),
]
