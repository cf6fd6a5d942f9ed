"""Baselines of benchmarks: keep, read, list and delete."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from daskscope.analysis.measured import is_baseline_name, measured_of
from daskscope.server.baseline_contract import Baseline, BaselineList, BaselineRuns
from daskscope.server.errors import Refusal, bad_request, not_found
from daskscope.server.http import parameters
from daskscope.server.http.audit import audit
from daskscope.server.http.parameters import Limit, Place, Text
from daskscope.server.http.routing import Call, Route
from daskscope.server.serializers import moment
from daskscope.storage import baselines as store

PATH = "/api/v1/baselines/{baseline}/{test}"
NO_BASELINE = "such baseline"


class NewBaseline(msgspec.Struct, forbid_unknown_fields=True):
    #: One for each repeat, see ``analysis.measured``.
    runs: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1, max_length=1_000)]


class ListQuery(msgspec.Struct, forbid_unknown_fields=True):
    name: Text = ""
    limit: Limit = 100
    cursor: Place = ""


def list_baselines(call: Call) -> BaselineList:
    query: ListQuery = call.query
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
    Route("GET", "/api/v1/baselines", list_baselines, "read", "List baselines of benchmarks", query=ListQuery),
    Route("GET", PATH, get_baseline, "read", "Return the baseline of a test"),
    Route("PUT", PATH, keep_baseline, "write", "Keep the baseline of a test", body=NewBaseline),
    Route("DELETE", PATH, delete_baseline, "write", "Delete the baseline of a test"),
]
