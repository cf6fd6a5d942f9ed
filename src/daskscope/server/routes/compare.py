"""Compare computations or clusters of an account, and keep baselines of benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypedDict
from urllib.parse import unquote

import msgspec

from daskscope import units
from daskscope.analysis.compare.measurements import is_baseline_name, measured_of
from daskscope.server.documents import HERE_NBYTES, MAX_TASKS_HERE, amount_here
from daskscope.server.errors import Refusal, bad_request, not_found, too_large, unavailable
from daskscope.server.http import parameters
from daskscope.server.http.audit import audit
from daskscope.server.http.parameters import Limit, Place, Text, find_cluster
from daskscope.server.http.routing import Call, Route
from daskscope.server.processes import recordings
from daskscope.server.processes.job import JobFailed
from daskscope.server.processes.recordings import RecordingRequest, Run, run_apart
from daskscope.server.services import Services
from daskscope.server.views import moment
from daskscope.storage.catalog import baselines as store
from daskscope.storage.catalog.computations import NoSuchComputation, list_computations
from daskscope.storage.runs.read import RunTooLarge, count_rows


class Baseline(TypedDict):
    """The baseline of one test."""

    name: str
    test: str
    repeats: int
    #: Bytes as stored: compressed and encrypted.
    size: int
    created: str | None
    changed: str | None
    #: Who kept it last.
    user: str


class BaselineRuns(Baseline):
    """A baseline with the measurements of each repeat, as they were kept."""

    runs: list[dict[str, object]]


class BaselineList(TypedDict):
    """A page of an account's baselines."""

    items: list[Baseline]
    next: str | None


#: Limits: runs per side, tasks of all runs together. Comparing a million tasks takes 0.8 s, without reading them.
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
    """A run to compare, its number of tasks, and for a whole cluster also the number of its stored rows."""

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
    request = RecordingRequest(call.account.id, before, after)
    try:
        return _answer(call.services, request, tasks, sum(run.rows for side in sides for run in side), largest)
    except NoSuchComputation:
        raise not_found("such computation") from None
    except JobFailed as error:
        raise unavailable(str(error)) from None


def _answer(
    services: Services, request: RecordingRequest, tasks: int, rows: int, largest: Found
) -> dict[str, Any] | msgspec.Raw:
    """Compare runs: in this process if they are small."""
    here = amount_here(services, request.account)
    if tasks <= MAX_TASKS_HERE and rows <= here.rows:
        try:
            with services.build_memory.reserve(HERE_NBYTES, request.account):
                return recordings.compare(services.archive, request, here)
        except RunTooLarge:
            pass
    # One recording at a time is in memory.
    return run_apart(services.runner, request, max(largest.rows, tasks)).comparison


def _listed(texts: str) -> list[str]:
    found = [text for text in texts.split(",") if text]
    if not 0 < len(found) <= MAX_RUNS:
        raise bad_request(f"Give 1 to {MAX_RUNS} runs before and after, separated by commas.")
    return found


def _find(call: Call, text: str) -> Found:
    cluster, _, computation = (unquote(part) for part in text.partition("/"))
    row = find_cluster(call, cluster or "-")
    title = row.name or "unnamed"
    with call.services.archive.read() as tx:
        if not computation:
            return Found(Run(row.id, row.name, "", _named(title, row.start_us)), row.tasks, count_rows(tx, row.id))
        found = list_computations(tx, call.account.id, run=row.id, computation=computation)
    if not found:
        raise not_found("such computation")
    # Only the rows of its time are read.
    return Found(Run(row.id, row.name, computation, _named(title, found[0].start_us)), found[0].tasks, 0)


def _named(title: str, start_us: int) -> str:
    """Return the name of a run with its start, which tells runs of one name apart."""
    return f"{title}, {units.moment(start_us).replace('T', ' ').replace('Z', ' UTC')}"


PATH = "/api/v1/baselines/{baseline}/{test}"
NO_BASELINE = "such baseline"


class NewBaseline(msgspec.Struct, forbid_unknown_fields=True):
    #: One for each repeat, see ``analysis.measured``.
    runs: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1, max_length=1_000)]


class BaselinesQuery(msgspec.Struct, forbid_unknown_fields=True):
    name: Text = ""
    limit: Limit = 100
    cursor: Place = ""


def list_baselines(call: Call) -> BaselineList:
    query: BaselinesQuery = call.query
    after = parameters.decode(query.cursor, str, str)
    place = (str(after[0]), str(after[1])) if after else None
    with call.services.archive.read() as tx:
        rows = store.list_baselines(tx, call.account.id, name=query.name, limit=query.limit + 1, after=place)
    more, rows = len(rows) > query.limit, rows[: query.limit]
    return {
        "items": [_view(row) for row in rows],
        "next": parameters.encode(rows[-1].name, rows[-1].test) if more else None,
    }


def get_baseline(call: Call) -> BaselineRuns:
    name, test = call.path("baseline"), call.path("test")
    with call.services.archive.read() as tx:
        row = store.find_baseline(tx, call.account.id, name, test)
        runs = store.find_runs(tx, call.account.id, name, test)
    if row is None or runs is None:
        raise not_found(NO_BASELINE)
    return {**_view(row), "runs": runs}


def keep_baseline(call: Call) -> Baseline:
    body: NewBaseline = call.body
    name, test = call.path("baseline"), call.path("test")
    for text in (name, test):
        if not is_baseline_name(text):
            raise bad_request(
                f"{text[:60]!r} cannot name a baseline or its test. Use letters, digits, dots, dashes and underscores, at most 100."
            )
    try:
        runs = [measured_of(run).to_dict() for run in body.runs]
    except ValueError as error:
        raise bad_request(
            f"The body is not a baseline: {error}. Send what pytest --daskscope-save writes, of the version of this server."
        ) from None
    try:
        with call.services.archive.write() as tx:
            return _view(store.keep_baseline(tx, call.account.id, call.identity.name, name, test, runs))
    except store.BaselinesFull as error:
        raise Refusal(413, "baselines_full", str(error)) from None


def delete_baseline(call: Call) -> dict[str, str]:
    name, test = call.path("baseline"), call.path("test")
    with call.services.archive.write() as tx:
        if not store.delete_baseline(tx, call.account.id, name, test):
            raise not_found(NO_BASELINE)
        audit(call, tx, "baseline-deleted", f"{name}/{test}")
    return {"deleted": f"{name}/{test}"}


def _view(row: store.Baseline) -> Baseline:
    return {
        "name": row.name,
        "test": row.test,
        "repeats": row.repeats,
        "size": row.nbytes,
        "created": moment(row.created_us),
        "changed": moment(row.changed_us),
        "user": row.user,
    }


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
    Route("GET", "/api/v1/baselines", list_baselines, "read", "List baselines of benchmarks", query=BaselinesQuery),
    Route("GET", PATH, get_baseline, "read", "Return the baseline of a test"),
    Route("PUT", PATH, keep_baseline, "write", "Keep the baseline of a test", body=NewBaseline),
    Route("DELETE", PATH, delete_baseline, "write", "Delete the baseline of a test"),
]
