"""Runs: the clusters of an account by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, TypedDict

import msgspec

from daskscope.model.states import RUN_STATES
from daskscope.server.contract import ListedCluster, RecentRun
from daskscope.server.http import parameters
from daskscope.server.http.parameters import Place, Text, run_states, since_us
from daskscope.server.http.routing import Call, Route
from daskscope.server.views import cost_of, listed_clusters, recent_view
from daskscope.storage.base.archive import Transaction
from daskscope.storage.catalog import run_groups as store
from daskscope.storage.catalog.clusters import ClusterFilter, count_clusters

#: Maximum names of a page. Each has up to 20 runs.
MAX_NAMES = 200


class RunGroup(TypedDict):
    """The clusters of one name that a filter selects. A cluster without a name is a group of its own."""

    name: str
    newest: ListedCluster
    runs: int
    #: Estimated cost of these runs.
    cost: float
    #: The last runs of this name, oldest first, whatever the filter selects.
    recent: list[RecentRun]


class RunList(TypedDict):
    """A page of an account's clusters by name, and the number of clusters in each state, whatever state the filter selects."""

    items: list[RunGroup]
    next: str | None
    states: dict[str, int]
    #: Clusters that lost workers, in any state.
    lost_workers: int


class RunsQuery(msgspec.Struct, forbid_unknown_fields=True):
    since: Text = "7 days"
    user: Text = ""
    state: Text = ""
    #: Only runs that lost workers.
    lost_workers: bool = False
    search: Text = ""
    tag: Text = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_NAMES)] = 50
    cursor: Place = ""


def list_runs(call: Call) -> RunList:
    """Return the runs that a filter selects by name, the name with the newest run first."""
    query: RunsQuery = call.query
    wanted = ClusterFilter(
        since_us(query.since, call.now_us), query.user, run_states(query.state), query.search, query.tag,
        lost_workers=query.lost_workers, limit=query.limit + 1, after=parameters.decode(query.cursor, int, int),
    )  # fmt: skip
    services, account = call.services, call.account
    with services.archive.read() as tx:
        groups = store.list_groups(tx, account.id, wanted)
        more, groups = len(groups) > query.limit, groups[: query.limit]
        newest = [group.newest for group in groups]
        items = listed_clusters(tx, newest, account, services.url, call.now_us, services.lost_rows)
        shown = _groups(tx, call, groups, items, wanted)
        others = replace(wanted, states=(), lost_workers=False)
        counts = count_clusters(tx, account.id, others)
        lost = count_clusters(tx, account.id, replace(others, lost_workers=True))
    return {
        "items": shown,
        "next": parameters.encode(newest[-1].start_us, newest[-1].id) if more else None,
        "states": {state: counts.get(state, 0) for state in RUN_STATES},
        "lost_workers": sum(lost.values()),
    }


def _groups(
    tx: Transaction,
    call: Call,
    groups: Sequence[store.RunGroup],
    newest: Sequence[ListedCluster],
    wanted: ClusterFilter,
) -> list[RunGroup]:
    names = [group.newest.name for group in groups if group.newest.name]
    recent = store.recent_runs(tx, call.account.id, names)
    lost = store.lost_workers(tx, [run.id for runs in recent.values() for run in runs])
    costs: defaultdict[str, float] = defaultdict(float)
    for paid in store.paid_by_name(tx, call.account.id, names, wanted):
        costs[paid.name] += cost_of(paid, call.account).total
    return [
        {
            "name": item["name"],
            "newest": item,
            "runs": group.runs,
            "cost": round(costs[item["name"]], 6) if item["name"] else item["cost"]["total"],
            "recent": [recent_view(run, len(lost.get(run.id, ()))) for run in recent.get(item["name"], ())],
        }
        for group, item in zip(groups, newest, strict=True)
    ]


ROUTES = [
    Route("GET", "/api/v1/runs", list_runs, "read", "List clusters by name, newest first", query=RunsQuery),
]
