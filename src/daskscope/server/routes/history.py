"""The history of a computation: the durations of earlier runs of the same code, and when and why they changed."""

from __future__ import annotations

from itertools import pairwise
from statistics import median

from daskscope import units
from daskscope.analysis.attribution import PastRun, causes
from daskscope.analysis.change_points import change_points
from daskscope.server.errors import not_found
from daskscope.server.history_contract import ComputationHistory, HistoryChange, HistoryRun
from daskscope.server.http.parameters import find_cluster
from daskscope.server.http.routing import Call, Route
from daskscope.server.serializers import cost_of, moment, seconds
from daskscope.storage.accounts import Account
from daskscope.storage.computations import list_computations
from daskscope.storage.past_runs import StoredRun, past_runs

MAX_RUNS = 200


def get_history(call: Call) -> ComputationHistory:
    run = find_cluster(call).id
    with call.services.archive.read() as tx:
        rows = list_computations(tx, call.account.id, run=run, computation=call.path("computation"))
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


ROUTES = [
    Route(
        "GET",
        "/api/v1/clusters/{cluster}/computations/{computation}/history",
        get_history,
        "read",
        "Return earlier runs of a computation's code, and when and why their duration changed",
    ),
]
