"""``daskscope.analytics`` against a real server and a real cluster: what is listed, explained, closed; and what travels."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dask.config
import distributed
import pytest
from tests.services import Hosting, slow_on_postgresql

from daskscope import DaskscopeError, analytics
from daskscope.client.calling_code import NFRAMES, CallingCode
from daskscope.client.listing import Listing
from daskscope.collector.bundle import NAME
from daskscope.errors import ServerError
from daskscope.testing.hosted import HostedServer, MovingClock
from daskscope.testing.processes import until
from daskscope.testing.samples import sample_frames

# Untyped in distributed.
LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client

QUICK = {
    "daskscope.analytics.events.interval": "100ms",
    "daskscope.analytics.computation.interval": "200ms",
    "daskscope.analytics.samples.interval": "200ms",
}


@pytest.fixture(autouse=True)
def calling_code(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("daskscope.analytics.calling_code", CallingCode())
    with dask.config.set({NFRAMES: 0, **QUICK}):
        yield


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


@pytest.fixture
def server(
    hosted: Hosting, tmp_path: Path, clock: MovingClock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[HostedServer]:
    with hosted(tmp_path / "data", login=True, clock=clock) as server:
        server.make_account("ours", mia="member")
        monkeypatch.setenv("DASKSCOPE_TOKEN", server.make_token("mia", "ours"))
        with dask.config.set({"daskscope.server": server.url, "daskscope.spool.directory": str(tmp_path / "spool")}):
            yield server


@pytest.fixture
def client(server: HostedServer) -> Iterator[Any]:
    cluster = LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None)
    client = Client(cluster)
    yield client
    # Given little time: of a scheduler that was closed meanwhile, distributed waits half a minute for an answer.
    with contextlib.suppress(TimeoutError):
        client.close(timeout=1)
        cluster.close(timeout=1)


@pytest.fixture
def cluster_id(client: Any) -> str:
    """The registered cluster, once the server has heard of it."""
    analytics.register(client)
    until(analytics.list_clusters, "the cluster's first batch")
    (cluster,) = analytics.list_clusters()
    return str(cluster["id"])


def fail(x: int) -> int:
    raise ValueError(f"no good: {x}")


def inc(x: int) -> int:
    return x + 1


@slow_on_postgresql
class TestRegister:
    def test_only_a_token_for_this_cluster_travels(
        self, server: HostedServer, client: Any, cluster_id: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def travelled(dask_scheduler: Any) -> tuple[str, str]:
            plugin = dask_scheduler.plugins[NAME]
            return plugin.settings.token, dask_scheduler.id

        token, scheduler = client.run_on_scheduler(travelled)
        own = server.make_token("mia", "ours")
        assert token not in ("", own)
        assert server.ask("GET", "/api/v1/me", token=token).json()["scopes"] == ["ingest"]
        assert server.ask("GET", "/api/v1/clusters", token=token).code == "forbidden"
        assert server.send(sample_frames("another"), token=token).code == "forbidden"
        assert cluster_id == scheduler

    def test_a_token_that_is_no_good_is_said_at_once(
        self, server: HostedServer, client: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DASKSCOPE_TOKEN", "dscope_cut_off")
        with pytest.raises(ServerError, match="daskscope token create"):
            analytics.register(client)

    def test_a_server_that_is_away_is_said_where_a_token_is_needed(
        self, client: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with (
            dask.config.set({"daskscope.server": "http://127.0.0.1:1"}),
            pytest.raises(ServerError, match="Registering needs the server once"),
        ):
            analytics.register(client)


class TestLists:
    def test_everything_that_happened_is_listed_with_the_known_fields(self, client: Any, cluster_id: str) -> None:
        client.gather(client.map(inc, range(10), pure=False))
        failed = client.submit(fail, 3, pure=False)
        distributed.wait([failed])
        client.log_event("scores", {"note": "<b>kept</b>"})
        until(lambda: analytics.list_exceptions(cluster_id=cluster_id), "the exception")
        until(lambda: analytics.list_clusters()[0]["n_tasks"] == 11, "the tasks")
        until(lambda: sum(item["n_tasks"] for item in analytics.list_computations(cluster_id)) == 11, "the sums")

        (cluster,) = analytics.list_clusters(user="mia")
        assert cluster.keys() >= {
            "id", "scheduler_id", "status", "created", "workers", "memory", "memory_limit", "n_tasks", "thread_seconds",
            "name", "user", "versions", "cost", "idle_since", "last_work", "state", "reason",
        }  # fmt: skip
        assert (cluster["status"], cluster["workers"], cluster["threads"]) == ("running", 1, 2)
        assert cluster["versions"]["distributed"] == version("distributed")
        assert cluster["cost"]["estimate"] is True

        computations = analytics.list_computations(scheduler_id=cluster_id)
        assert all(item.keys() >= {"code", "start", "stop", "state", "n_tasks"} for item in computations)
        assert {item["state"] for item in computations} <= {"done", "erred"}

        (exception,) = analytics.list_exceptions()
        assert (exception["type"], exception["message"]) == ("ValueError", "no good: 3")
        assert "fail" in exception["traceback"]
        assert analytics.list_errors()[0]["count"] == 1
        assert analytics.list_events(cluster_id)

        frame = analytics.list_clusters().to_pandas()
        assert list(frame["id"]) == [cluster_id]
        assert "cost.total" in frame.columns

    def test_a_list_names_a_cluster(self) -> None:
        with pytest.raises(ValueError, match="cluster_id= or scheduler_id="):
            analytics.list_computations()

    def test_history_is_asked_for_by_age(self, server: HostedServer, clock: MovingClock) -> None:
        assert server.send(sample_frames("old"), token=server.make_token("mia", "ours")).status == 200
        clock.move(days=10)
        assert analytics.list_clusters() == []
        assert len(analytics.list_clusters(since="11 days")) == len(analytics.list_clusters(since=None)) == 1
        with pytest.raises(ServerError, match="no length of time"):
            analytics.list_clusters(since="yesterdayish")

    def test_a_notebook_shows_texts_as_texts(self) -> None:
        nasty = "<img src=x onerror=alert(1)>"
        shown = Listing([{nasty: 1, "name": nasty, "url": f"https://x/'{nasty}"}])._repr_html_()
        assert "<img" not in shown
        assert "href='https://x/&#x27;&lt;img" in shown
        assert Listing(empty=nasty)._repr_html_() == "<p>&lt;img src=x onerror=alert(1)&gt;</p>"
        assert Listing([{"url": "javascript:alert(1)"}])._repr_html_().count("href") == 0

    def test_a_foreign_account_is_refused_with_what_to_do(self, server: HostedServer) -> None:
        server.make_account("theirs", mallory="owner")
        with pytest.raises(DaskscopeError, match="daskscope login --account NAME"):
            analytics.list_clusters(account="theirs")


def wait_for(event: str) -> None:
    distributed.Event(event).wait()


class TestExplain:
    def test_an_idle_cluster_without_a_timeout(self, client: Any, cluster_id: str) -> None:
        client.submit(inc, 1).result()
        answers: list[dict[str, Any]] = []

        def is_idle() -> bool:
            # It was so before the task, too: the answer that says so is the one to look at.
            answers.append(analytics.explain(cluster_id))
            return bool(answers[-1]["state"] == "idle" and answers[-1]["clients"])

        until(is_idle, "that it is idle, with a client")
        found = answers[-1]
        assert "no idle-timeout is set" in found["answer"]
        assert any("costs about" in line for line in found["evidence"])

    def test_a_busy_one(self, client: Any, cluster_id: str) -> None:
        futures = client.map(wait_for, ["go"] * 3, pure=False)
        until(lambda: analytics.explain(cluster_id)["tasks_processing"] > 0)
        found = analytics.explain(cluster_id)
        assert found["answer"].startswith("It is working")
        assert found["state"] == "running"
        distributed.Event("go").set()
        distributed.wait(futures)

    def test_one_that_waits_for_what_nobody_has(self, client: Any, cluster_id: str) -> None:
        future = client.submit(inc, 1, resources={"GPU": 2}, pure=False)
        until(lambda: analytics.explain(cluster_id)["tasks_unrunnable"] == 1)
        found = analytics.explain(cluster_id)
        assert "1 task cannot run" in found["answer"]
        assert "GPU" in found["answer"]
        assert found["advice"]
        del future

    def test_a_lost_one(self, server: HostedServer, clock: MovingClock) -> None:
        assert server.send(sample_frames("lost"), token=server.make_token("mia", "ours")).status == 200
        clock.move(seconds=61)
        assert analytics.explain("lost")["answer"].startswith(
            "It may not be running: nothing was heard of it for 1 min"
        )
        (cluster,) = analytics.list_clusters()
        assert (cluster["state"], cluster["status"], cluster["workers"]) == ("lost", "stopped", 0)
        assert cluster["reason"].startswith("nothing heard for 61 s")
        assert cluster["cost"]["per_hour"] == 0

    def test_one_that_is_not_there(self, server: HostedServer) -> None:
        with pytest.raises(ServerError, match="no such cluster"):
            analytics.explain("nobody")
        with pytest.raises(ServerError, match="There is nothing at"):
            analytics.explain("../../etc/passwd")


@slow_on_postgresql
class TestClose:
    def test_a_cluster_that_is_asked_to_closes(self, client: Any, cluster_id: str) -> None:
        analytics.close(cluster_id)
        until(lambda: client.cluster.scheduler.status.name == "closed", "the scheduler's end")
        until(lambda: analytics.list_clusters()[0]["state"] == "finished")
        with pytest.raises(ServerError, match="finished: there is nobody to ask"):
            analytics.close(cluster_id)

    def test_one_that_does_not_listen_goes_on(self, server: HostedServer, client: Any) -> None:
        with dask.config.set({"daskscope.analytics.close.allow": False}):
            analytics.register(client)
        until(analytics.list_clusters)
        analytics.close(analytics.list_clusters()[0]["id"])
        known = server.services.counters.get("batches", "fresh")
        until(lambda: server.services.counters.get("batches", "fresh") > known + 5, "some more batches")
        assert client.submit(inc, 1).result() == 2
