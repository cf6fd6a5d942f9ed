"""The usage of an account: the same totals however it is grouped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.helpers.hosted import HostedServer
from tests.helpers.services import Hosting

from daskscope.server.services import now_us
from daskscope.testing import make_frames

pytestmark = pytest.mark.each_database

SECOND, DAY = 1_000_000, 86_400 * 1_000_000
GROUPINGS = ("day", "user", "cluster", "prefix")


@pytest.fixture(scope="module")
def server(hosted_once: Hosting, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    """Two clusters of today, each with one thread for a hundred seconds; one of them was idle. No test changes them."""
    start = now_us() // DAY * DAY
    with hosted_once(tmp_path_factory.mktemp("usage"), login=True) as server:
        server.make_account("ours", mia="member", olga="owner")
        server.make_account("theirs", eve="owner")
        for user, cluster, tasks in (("mia", "busy", 3), ("olga", "still", 0)):
            end = start + 100 * SECOND
            tables: dict[str, list[dict[str, Any]]] = {
                "clusters": [{"cluster": cluster, "start_us": start, "seen_us": end, "end_us": end}],
                "workers": [{"server_id": cluster, "start_us": start, "end_us": end, "seen_us": end, "nthreads": 1}],
                "tasks": [
                    {
                        "key": f"{prefix}-{n}",
                        "prefix": prefix,
                        "start_us": start + 10 * n * SECOND + 1,
                        "stop_us": start + 10 * (n + 1) * SECOND + 1,
                        "nbytes": 5,
                        "status": "error" if n == 0 else "",
                    }
                    for n, prefix in enumerate(("load", "load", "mean")[:tasks])
                ],
            }
            frames = make_frames({name: rows for name, rows in tables.items() if rows}, cluster=cluster)
            assert server.send(*frames, token=server.make_token(user, "ours")).status == 200
        yield server


def usage(server: HostedServer, query: str, user: str = "mia", account: str = "ours") -> dict[str, Any]:
    answer = server.ask("GET", f"/api/v1/usage?{query}", token=server.make_token(user, account))
    assert answer.status == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_the_total_is_the_same_for_every_grouping(server: HostedServer) -> None:
    totals = [usage(server, f"by={by}")["total"] for by in GROUPINGS]
    assert all(total == totals[0] for total in totals)
    wanted = {"tasks": 3, "errors": 1, "compute_seconds": 30.0, "nbytes": 15, "thread_seconds": 200.0}
    assert {name: totals[0][name] for name in wanted} == wanted
    assert totals[0]["cost"] == pytest.approx(totals[0]["cost_busy"] + totals[0]["cost_idle"], abs=2e-6)


@pytest.mark.parametrize("by", GROUPINGS)
def test_the_lines_add_up_to_the_total(server: HostedServer, by: str) -> None:
    found = usage(server, f"by={by}")
    for name in ("tasks", "errors", "nbytes", "compute_seconds", "cost_busy"):
        # Each line's cost is rounded to a millionth of a dollar.
        assert sum(line[name] for line in found["items"]) == pytest.approx(found["total"][name], abs=4e-6), name


def test_an_idle_cluster_is_counted(server: HostedServer) -> None:
    lines = {line["name"]: line for line in usage(server, "by=cluster")["items"]}
    assert (lines["still"]["tasks"], lines["still"]["thread_seconds"]) == (0, 100.0)
    assert {line["name"] for line in usage(server, "by=user")["items"]} == {"mia", "olga"}


@pytest.mark.parametrize(("since", "days"), [("30 days", 31), ("0001-01-01", 366), ("all", 366), ("2999-01-01", 0)])
def test_the_number_of_days_is_as_requested_up_to_a_year(server: HostedServer, since: str, days: int) -> None:
    assert len(usage(server, f"since={since.replace(' ', '%20')}")["items"]) == days


def test_another_account_has_no_usage(server: HostedServer) -> None:
    for by in GROUPINGS:
        found = usage(server, f"by={by}", "eve", "theirs")
        assert (found["total"]["tasks"], found["total"]["cost"], found["clusters"]) == (0, 0, 0)
