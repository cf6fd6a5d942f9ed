"""Compare computations or clusters of an account."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import unquote

import msgspec

from daskscope import units
from daskscope.server import recording_process
from daskscope.server.building import HERE_NBYTES, MAX_TASKS_HERE, amount_here
from daskscope.server.errors import bad_request, not_found, too_large, unavailable
from daskscope.server.http.parameters import find_cluster
from daskscope.server.http.routing import Call, Route
from daskscope.server.recording_process import ReadFailed, RecordingJob, Run, run_apart
from daskscope.server.rendering import NoSuchComputation
from daskscope.server.services import Services
from daskscope.storage.computations import list_computations
from daskscope.storage.runs import RunTooLarge, count_rows

#: Runs of one side, and tasks of all runs. Comparing a million tasks takes 0.8 s, without reading them.
MAX_RUNS, MAX_TASKS = 20, 1_000_000
#: Stored rows of one run. A task has some ten of them: dependencies, samples of its stack, metrics. The number of tasks is the
#: recorder's word for it, and rows are what takes the memory.
MAX_ROWS = 10_000_000

#: Twenty runs have 1,700 characters. An encoded character takes up to 12 bytes of a URL, which the server limits to 64 KiB.
Runs = Annotated[str, msgspec.Meta(min_length=1, max_length=2_000)]


class CompareQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Each side is a list of runs, separated by commas: a cluster ID, or a cluster ID, a slash and a computation ID.

    Other commas, slashes and percent signs in an ID are percent-encoded.
    """

    before: Runs
    after: Runs


@dataclass(frozen=True)
class Found:
    """A run to compare, its number of tasks, and for a whole cluster that of its stored rows."""

    run: Run
    tasks: int
    rows: int


def compare(call: Call) -> dict[str, Any] | msgspec.Raw:
    query: CompareQuery = call.query
    sides = [[_find(call, text) for text in _listed(texts)] for texts in (query.before, query.after)]
    tasks = sum(run.tasks for side in sides for run in side)
    if tasks > MAX_TASKS:
        raise too_large(
            f"These runs have {units.count(tasks)} tasks; a page compares up to {units.count(MAX_TASKS)}. "
            "Download the recordings and run daskscope compare."
        )
    largest = max((run for side in sides for run in side), key=lambda run: run.rows)
    if largest.rows > MAX_ROWS:
        raise too_large(
            f"{largest.run.name} has {units.count(largest.rows)} rows; a page compares runs of up to {units.count(MAX_ROWS)}. "
            "Compare single computations, or download the recordings and run daskscope compare."
        )
    before, after = ([run.run for run in side] for side in sides)
    job = RecordingJob(call.account.id, before, after, storage=call.services.storage)
    try:
        return _answer(call.services, job, tasks, sum(run.rows for side in sides for run in side), largest)
    except NoSuchComputation:
        raise not_found("such computation") from None
    except ReadFailed as error:
        raise unavailable(str(error)) from None


def _answer(
    services: Services, job: RecordingJob, tasks: int, rows: int, largest: Found
) -> dict[str, Any] | msgspec.Raw:
    """Compare runs: in this process if they are small."""
    here = amount_here(services, job.account)
    if tasks <= MAX_TASKS_HERE and rows <= here.rows:
        try:
            with services.build_memory.reserve(HERE_NBYTES, job.account):
                return recording_process.compare(services.archive, job, here)
        except RunTooLarge:
            pass
    # One recording at a time is in memory.
    return run_apart(services.child_processes, services.build_memory, job, max(largest.rows, tasks)).comparison


def _listed(texts: str) -> list[str]:
    found = [text for text in texts.split(",") if text]
    if not 0 < len(found) <= MAX_RUNS:
        raise bad_request(f"Give 1 to {MAX_RUNS} runs before and after, separated by commas.")
    return found


def _find(call: Call, text: str) -> Found:
    cluster, _, computation = (unquote(part) for part in text.partition("/"))
    row = find_cluster(call, cluster or "-")
    title = row.name or row.cluster
    with call.services.archive.read() as tx:
        if not computation:
            return Found(Run(row.id, row.name, "", title), row.tasks, count_rows(tx, row.id))
        found = list_computations(tx, call.account.id, run=row.id, computation=computation)
    if not found:
        raise not_found("such computation")
    # Only the rows of its time are read.
    name = f"{title} {computation} of {row.cluster}"
    return Found(Run(row.id, row.name, computation, name), found[0].tasks, 0)


ROUTES = [
    Route(
        "GET",
        "/api/v1/compare",
        compare,
        "read",
        "Compare computations or clusters",
        query=CompareQuery,
        heavy=True,
    ),
]
