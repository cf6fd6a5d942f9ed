"""The history of a computation: the durations of earlier runs of the same code, and when and why they changed."""

from __future__ import annotations

from daskscope import units
from daskscope.analysis.attribution import PastRun, causes
from daskscope.analysis.change_points import ChangePoint, change_points
from daskscope.server.history_contract import ComputationHistory, HistoryChange
from daskscope.server.http.errors import not_found
from daskscope.server.http.parameters import find_cluster
from daskscope.server.http.routing import Call, Route
from daskscope.server.serializers import moment
from daskscope.storage.computations import list_computations
from daskscope.storage.past_runs import past_runs

MAX_RUNS = 200


def get_history(call: Call) -> ComputationHistory:
    run = find_cluster(call).id
    with call.services.archive.read() as tx:
        rows = list_computations(tx, call.account.id, run=run, computation=call.path("computation"))
        if not rows:
            raise not_found("such computation")
        runs = past_runs(tx, call.account.id, rows[0], MAX_RUNS)
    return history_of(runs)


def history_of(runs: list[PastRun]) -> ComputationHistory:
    """Return the history of runs, oldest first."""
    changes = change_points([float(run.wall_us) for run in runs])
    edges = [0, *(change.index for change in changes), len(runs)]
    return {
        "runs": [
            {
                "start": moment(run.start_us),
                "duration": run.wall_us / 1e6,
                "n_tasks": run.tasks,
                "nbytes": run.nbytes,
                "threads": run.threads,
            }
            for run in runs
        ],
        "changes": [
            _change(change, runs[edges[n] : edges[n + 1]], runs[edges[n + 1] : edges[n + 2]])
            for n, change in enumerate(changes)
        ],
    }


def _change(change: ChangePoint, before: list[PastRun], after: list[PastRun]) -> HistoryChange:
    word = "slower" if change.after > change.before else "faster"
    share = units.percent(abs(change.ratio - 1))
    return {
        "at": moment(after[0].start_us),
        "sentence": (
            f"{share} {word}: {units.duration(change.after)} instead of {units.duration(change.before)} "
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
