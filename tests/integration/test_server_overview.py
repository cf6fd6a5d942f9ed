"""The numbers of the overview page for known data, and sharing a computation as a report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.hosted import HostedServer, HttpResponse
from tests.helpers.services import Hosting

from daskscope.testing import make_frames

pytestmark = pytest.mark.each_database

GIB = 1 << 30
#: A Thursday at noon; its week begins on the 11th.
NOW = "2026-05-14T12:00"
WORKER = "tcp://10.0.0.1:1"
SHARE = "/api/v1/clusters/two-days/computations/c-done/share"


def at(text: str) -> int:
    """Convert a UTC time to microseconds."""
    return int(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp()) * 1_000_000


class SetClock:
    """A server clock that stands still at a given time."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __call__(self) -> int:
        return at(self.text)


def cluster(name: str, start: str, seen: str, **more: Any) -> list[dict[str, Any]]:
    return [{"cluster": name, "name": name, "start_us": at(start), "seen_us": at(seen), **more}]


def worker(start: str, seen: str, nthreads: int, *, end: str = "", gib: int = 0) -> list[dict[str, Any]]:
    return [
        {
            "worker": WORKER, "server_id": "w", "name": "w", "nthreads": nthreads, "memory_limit": gib * GIB,
            "start_us": at(start), "seen_us": at(seen), "end_us": at(end) if end else 0,
        }
    ]  # fmt: skip


def computation(name: str, state: str, start: str, seen: str, **counts: int) -> dict[str, Any]:
    moments = {"start_us": at(start), "stop_us": 0 if state == "running" else at(seen), "seen_us": at(seen)}
    return {"computation": name, "state": state, "code": f"{name}.compute()", **moments, **counts}


def tasks(start: str, seconds: int, computation: str, *statuses: str) -> list[dict[str, Any]]:
    """Return tasks that run one after the other, each for so many seconds."""
    begin = at(start)
    return [
        {
            "id": n, "key": f"inc-{begin}-{n}", "prefix": "inc", "group": "inc", "computation": computation, "worker": WORKER,
            "thread": 1, "start_us": begin + n * seconds * 1_000_000, "stop_us": begin + (n + 1) * seconds * 1_000_000,
            "status": status,
        }
        for n, status in enumerate(statuses)
    ]  # fmt: skip


def known_clusters() -> dict[str, tuple[str, str, dict[str, list[dict[str, Any]]]]]:
    """Return the clusters of one account: the user, when each was last seen, and its tables."""
    return {
        # One day, from noon to noon, with two threads: 48 thread-hours, 700 s of them busy.
        "two-days": (
            "ada",
            "2026-05-13T12:00",
            {
                "clusters": cluster(
                    "two-days", "2026-05-12T12:00", "2026-05-13T12:00", end_us=at("2026-05-13T12:00"), end_reason="closed"
                ),
                "workers": worker("2026-05-12T12:00", "2026-05-13T12:00", 2, end="2026-05-13T12:00"),
                "computations": [
                    computation("c-done", "done", "2026-05-12T13:00", "2026-05-13T11:00", tasks=3),
                    computation("c-before", "erred", "2026-05-13T07:00", "2026-05-13T08:00", tasks=1),
                    computation("c-erred", "erred", "2026-05-13T08:00", "2026-05-13T11:30", tasks=1),
                ],
                "tasks": [
                    *tasks("2026-05-12T13:00", 100, "c-done", "ok", "ok", "error"),
                    *tasks("2026-05-13T08:00", 400, "c-erred", "error"),
                ],
                "exceptions": [
                    {
                        "time_us": at("2026-05-12T13:05"), "key": "inc-2", "prefix": "inc", "group": "inc", "computation": "c-done",
                        "worker": WORKER, "type": "ValueError", "message": "no good", "fingerprint": "f", "count": 1,
                    }
                ],
            },
        ),
        # Last seen two hours ago, with a computation that never ended, and with work too old for the page's weeks.
        "lost": (
            "bob",
            "2026-05-14T10:00",
            {
                "clusters": cluster("lost", "2026-02-01T00:00", "2026-05-14T10:00"),
                "computations": [computation("c-lost", "running", "2026-02-01T01:00", "2026-05-14T10:00", tasks=5)],
                "tasks": [
                    *tasks("2026-02-01T01:00", 1000, "c-lost", "ok"),
                    *tasks("2026-04-23T10:00", 30, "c-lost", "ok", "ok"),
                ],
            },
        ),
        "running": (
            "ada",
            NOW,
            {
                "clusters": cluster("running", "2026-05-14T06:00", NOW),
                "workers": worker("2026-05-14T06:00", NOW, 4),
                "computations": [
                    computation("c-running", "running", "2026-05-14T07:00", NOW, tasks=10, memory=3, erred=1, released=1),
                    computation("c-failed", "erred", "2026-05-14T06:00", "2026-05-14T08:00", tasks=1),
                    computation("c-finished", "done", "2026-05-14T06:30", "2026-05-14T07:00", tasks=1),
                ],
                "tasks": tasks("2026-05-14T07:00", 50, "c-running", "ok", "ok"),
                "exceptions": [
                    {
                        "time_us": at("2026-05-14T07:30"), "key": "inc-2", "prefix": "inc", "group": "inc", "computation": name,
                        "worker": WORKER, "type": "OSError", "message": f"no {name}", "fingerprint": name, "count": count,
                    }
                    for name, count in (("c-failed", 1), ("c-running", 9))
                ],
            },
        ),
        # Eight threads at 5 cents and 16 GiB at half a cent: 48 cents an hour, for one hour.
        "idle": (
            "bob",
            NOW,
            {
                "clusters": cluster("idle", "2026-05-14T11:00", NOW, threads=8, idle_since_us=at("2026-05-14T11:30")),
                "workers": worker("2026-05-14T11:00", NOW, 8, gib=16),
            },
        ),
    }  # fmt: skip


@contextmanager
def filled_server(hosting: Hosting, directory: Path) -> Iterator[HostedServer]:
    clock = SetClock(NOW)
    with hosting(directory, login=True, clock=clock) as server:
        server.make_account("ours", olga="owner", ada="member", bob="member", vera="viewer")
        server.make_account("theirs", mallory="owner")
        for name, (user, last_seen, tables) in known_clusters().items():
            clock.text = last_seen
            frames, token = make_frames(tables, cluster=name), server.make_token(user, "ours")
            assert server.send(*frames, token=token).status == 200
        clock.text = NOW
        yield server


@pytest.fixture(scope="module")
def server(hosted_once: Hosting, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostedServer]:
    """A server for tests that change nothing."""
    with filled_server(hosted_once, tmp_path_factory.mktemp("overview")) as server:
        yield server


@pytest.fixture
def own_server(hosted: Hosting, tmp_path: Path) -> Iterator[HostedServer]:
    with filled_server(hosted, tmp_path / "data") as server:
        yield server


def ask(server: HostedServer, query: str = "", user: str = "olga", account: str = "ours") -> HttpResponse:
    return server.ask("GET", f"/api/v1/overview?{query}", token=server.make_token(user, account))


def overview(server: HostedServer, query: str = "failed_since=2026-05-14T00:00:00Z", **caller: str) -> dict[str, Any]:
    answer = ask(server, query, **caller)
    assert answer.status == 200, answer
    found: dict[str, Any] = answer.json()
    return found


class TestNumbers:
    def test_the_current_clusters(self, server: HostedServer) -> None:
        found = overview(server)
        assert found["states"] == {"running": 1, "idle": 1, "failed": 1, "lost": 1}
        assert [(item["cluster"]["id"], item["done"], item["total"]) for item in found["running"]] == [
            ("running", 5, 10)
        ]
        assert [item["id"] for item in found["idle"]] == ["idle"]
        assert found["idle_per_hour"] == found["idle"][0]["cost"]["per_hour"] == 0.48

    def test_failures_since_midnight_newest_first(self, server: HostedServer) -> None:
        found = overview(server)
        assert (found["n_failed"], found["n_finished"]) == (2, 3)
        assert [(item["id"], item["state"], item["code"]) for item in found["failed"]] == [
            ("c-lost", "lost", "c-lost.compute()"),
            ("c-failed", "failed", "c-failed.compute()"),
        ]
        # The error of the computation, not the most frequent one of its cluster.
        assert [item["cause"] for item in found["failed"]] == ["", "OSError: no c-failed"]

    def test_a_run_that_fails_often_is_listed_once(self, server: HostedServer) -> None:
        found = overview(server, "failed_since=all")
        assert [(item["id"], item["n_failed"]) for item in found["failed"]] == [
            ("c-lost", 1),
            ("c-failed", 1),
            ("c-erred", 2),
        ]

    @pytest.mark.parametrize(
        ("since", "failed", "finished"), [("2 days", 4, 6), ("3h", 1, 1), ("2026-05-14T11:00:00Z", 0, 0), ("all", 4, 6)]
    )
    def test_failures_are_counted_since_any_time(
        self, server: HostedServer, since: str, failed: int, finished: int
    ) -> None:
        found = overview(server, f"failed_since={since.replace(' ', '%20')}")
        assert (found["n_failed"], found["n_finished"]) == (failed, finished)

    def test_the_trend_has_the_cost_of_every_day(self, server: HostedServer) -> None:
        days = {day.pop("day"): day for day in overview(server)["days"]}
        assert list(days) == [f"2026-05-{day:02}" for day in range(1, 15)]
        assert [day for day, sums in days.items() if any(sums.values())] == ["2026-05-12", "2026-05-13", "2026-05-14"]
        # Half of 48 thread-hours at 5 cents on each of the two days, minus the busy time.
        halves = {"thread_seconds": 86_400.0, "cost": 1.2, "cost_idle": round(1.2 * (1 - 350 / 86_400), 6)}
        assert days["2026-05-12"] == {"tasks": 3, "errors": 1, "compute_seconds": 300.0, **halves}
        assert days["2026-05-13"] == {"tasks": 1, "errors": 1, "compute_seconds": 400.0, **halves}
        # 24 thread-hours of one cluster, 100 s of them busy; 8 thread-hours and 16 GiB-hours of another.
        assert days["2026-05-14"] == {
            "tasks": 2,
            "errors": 0,
            "compute_seconds": 100.0,
            "thread_seconds": (24 + 8) * 3600.0,
            "cost": 1.68,
            "cost_idle": round(1.2 * (1 - 100 / 86_400) + 0.48, 6),
        }

    def test_the_trend_has_the_requested_length(self, server: HostedServer) -> None:
        (today,) = overview(server, "days=1")["days"]
        assert (today["day"], today["tasks"]) == ("2026-05-14", 2)
        year = overview(server, "days=366")["days"]
        assert (len(year), sum(day["tasks"] for day in year)) == (366, 9)

    def test_the_map_has_a_cell_for_every_member_and_week_with_tasks(self, server: HostedServer) -> None:
        cells = sorted((cell["user"], cell["week"], cell["compute_seconds"]) for cell in overview(server)["weeks"])
        assert cells == [("ada", "2026-05-11", 800.0), ("bob", "2026-04-20", 60.0)]

    def test_a_viewer_sees_the_same_numbers(self, server: HostedServer) -> None:
        assert overview(server, user="vera") == overview(server)

    def test_another_account_sees_no_data(self, server: HostedServer) -> None:
        found = overview(server, user="mallory", account="theirs")
        days = found.pop("days")
        assert not any(value for day in days for name, value in day.items() if name != "day")
        assert set(found.pop("states").values()) <= {0}
        assert {name: value for name, value in found.items() if value} == {}


class TestRefusals:
    @pytest.mark.parametrize(
        "query",
        [
            "days=0", "days=367", "days=-1", "days=x", "days=1.5", "days=", "days=99999999999999999999", "weeks=3",
            "failed_since=%00", "failed_since=yesterdayish", "failed_since=2026-13-45", "failed_since=1e400%20days",
            "failed_since=" + "9" * 400, "failed_since=+", "failed_since=%20%20",
        ],
    )  # fmt: skip
    def test_an_invalid_parameter_is_refused(self, server: HostedServer, query: str) -> None:
        answer = ask(server, query)
        assert (answer.status, answer.code) == (400, "bad_request")

    @pytest.mark.parametrize(
        "query",
        ["failed_since=-5%20days", "failed_since=9999-12-31", "failed_since=0001-01-01", "failed_since=1e12%20days"],
    )
    def test_an_extreme_date_does_not_make_the_server_fail(self, server: HostedServer, query: str) -> None:
        assert ask(server, query).status in (200, 400)

    def test_anonymous_and_foreign_callers_are_refused(self, server: HostedServer) -> None:
        assert server.ask("GET", "/api/v1/overview").code == "unauthorized"
        assert ask(server, "account=ours", "mallory", "theirs").status == 403
        ingest = server.make_token("olga", "ours", "ingest")
        assert server.ask("GET", "/api/v1/overview", token=ingest).code == "forbidden"


class TestShare:
    def share(self, server: HostedServer, user: str = "olga", account: str = "ours", path: str = SHARE) -> HttpResponse:
        return server.ask("POST", path, token=server.make_token(user, account))

    def test_a_computation_becomes_a_report_with_its_numbers(self, own_server: HostedServer) -> None:
        answer = self.share(own_server)
        assert answer.status == 201
        made = answer.json()
        assert (made["kind"], made["n_tasks"], made["n_errors"], made["cluster_id"], made["user"]) == (
            "recording", 3, 1, "two-days", "olga",
        )  # fmt: skip
        assert [item["id"] for item in overview(own_server)["reports"]] == [made["id"]]
        token = own_server.make_token("olga", "ours")
        document = "document/report.json"
        whole = own_server.ask("GET", f"/api/v1/clusters/two-days/computations/c-done/{document}", token=token).json()
        shared = own_server.ask("GET", f"/api/v1/reports/{made['id']}/{document}", token=token).json()
        assert shared["totals"] == whole["totals"]
        # The link works without a token.
        assert own_server.ask("GET", made["url"].removeprefix(own_server.url)).status == 200

    def test_a_shared_computation_has_the_default_visibility_of_the_account(self, own_server: HostedServer) -> None:
        owner = own_server.make_token("olga", "ours")
        assert own_server.ask("PATCH", "/api/v1/preferences", {"visibility": "private"}, token=owner).status == 200
        made = self.share(own_server).json()
        assert (made["private"], made["url"]) == (True, f"{own_server.url}/ours/reports/{made['id']}")

    def test_a_report_outlives_its_deleted_cluster(self, own_server: HostedServer) -> None:
        made, token = self.share(own_server).json(), own_server.make_token("olga", "ours")
        assert own_server.ask("DELETE", "/api/v1/clusters/two-days", token=token).status == 200
        document = own_server.ask("GET", f"/api/v1/reports/{made['id']}/document/report.json", token=token)
        assert document.status == 200
        assert document.json()["totals"]["tasks"] == 3

    def test_sharing_needs_permission_and_an_existing_computation(self, own_server: HostedServer) -> None:
        assert own_server.ask("POST", SHARE).status == 401
        assert self.share(own_server, "vera").code == "forbidden"
        assert self.share(own_server, "mallory", "theirs").code == "not_found"
        assert self.share(own_server, path=SHARE.replace("c-done", "c-none")).code == "not_found"
        assert self.share(own_server, path=SHARE.replace("two-days", "three")).code == "not_found"
        assert overview(own_server)["reports"] == []
