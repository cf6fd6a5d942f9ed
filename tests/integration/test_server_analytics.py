"""``daskscope.analytics`` against a real server and a real cluster: list, explain, close and register."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dask.config
import distributed
import pytest
from tests.helpers.hosted import HostedServer, MovingClock
from tests.helpers.samples import sample_frames
from tests.helpers.services import Hosting
from tests.helpers.waiting import until

import daskscope
from daskscope import DaskscopeError, analytics
from daskscope.analysis.summary import summarise
from daskscope.cli.main import main
from daskscope.cli.open import load
from daskscope.client.connection import NFRAMES, CallingCode
from daskscope.client.listing import Listing
from daskscope.client.server import download_recording
from daskscope.collector.bundle import NAME
from daskscope.errors import ServerError

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
    # A short timeout: distributed waits half a minute for an answer from a closed scheduler.
    with contextlib.suppress(TimeoutError):
        client.close(timeout=1)
        cluster.close(timeout=1)


@pytest.fixture
def cluster_id(client: Any) -> str:
    """The ID of the registered cluster, once the server has received its first batch."""
    analytics.register(client)
    until(analytics.list_clusters, "the cluster's first batch")
    (cluster,) = analytics.list_clusters()
    return str(cluster["id"])


def test_register_prints_and_returns_the_page_of_the_cluster(
    client: Any, server: HostedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    page = analytics.register(client)
    assert page == f"{server.url}/ours/clusters/{client.scheduler_info()['id']}"
    assert capsys.readouterr().out == f"daskscope records this cluster: {page}\n"
    # Once per cluster.
    assert analytics.register(client) == page
    assert capsys.readouterr().out == ""


def fail(x: int) -> int:
    raise ValueError(f"no good: {x}")


def inc(x: int) -> int:
    return x + 1


class TestOpen:
    @pytest.fixture
    def cluster(self, client: Any, cluster_id: str) -> dict[str, Any]:
        client.gather(client.map(inc, range(5)))
        analytics.unregister(client)
        until(lambda: download_recording(cluster_id)["tasks"].rows == 5, "the tasks")
        (cluster,) = analytics.list_clusters()
        return dict(cluster)

    def test_by_id_or_url(self, cluster: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
        url = str(cluster["url"])
        for name in (str(cluster["id"]), url, f"{url}?view=profile", f"{url}/report", f"{url}/computations/some"):
            recording = daskscope.open_recording(name)
            assert (recording["tasks"].rows, recording.source) == (5, cluster["id"])
            assert daskscope.profile(name, scheduler=True)["identifier"] == "root"
            assert main(["show", name]) == 0
            assert "inc" in capsys.readouterr().out
        assert load(url).data.startswith(b"<!")

    def test_another_server_does_not_get_the_token(self, server: HostedServer, cluster: dict[str, Any]) -> None:
        with dask.config.set({"daskscope.server": "http://127.0.0.1:9"}), pytest.raises(ServerError, match=r"[Ss]ign"):
            daskscope.open_recording(str(cluster["url"]))

    def test_other_pages_are_refused(self, server: HostedServer) -> None:
        with pytest.raises(DaskscopeError, match="not the page of a cluster"):
            daskscope.open_recording(f"{server.url}/ours/errors/abc")


def spin(seconds: float) -> None:
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop:
        sum(range(100))


def functions(tree: dict[str, Any]) -> set[str]:
    below = (functions(child) for child in tree["children"].values())
    return {tree["description"].get("name", "")}.union(*below)


class TestProfileOfAClient:
    def test_it_has_what_the_server_recorded(self, client: Any) -> None:
        with dask.config.set({"daskscope.analytics.profile.interval": "100ms"}):
            analytics.register(client)
        until(analytics.list_clusters, "the cluster's first batch")
        client.submit(spin, 0.3).result()
        cluster = client.scheduler_info()["id"]
        until(lambda: daskscope.profile(cluster, key="spin")["count"] > 0, "samples of the task")
        found = daskscope.profile(client, key="spin")
        assert found["identifier"] == "root" and "spin" in functions(found)
        assert found == daskscope.profile(cluster, key="spin")

    def test_it_is_dasks_own_without_a_recording(self, client: Any) -> None:
        client.submit(spin, 0.3).result()
        until(lambda: daskscope.profile(client, key="spin")["count"] > 0, "samples of the task")
        assert daskscope.profile(client, key="spin") == client.profile("spin")
        assert daskscope.profile(client, key="other")["count"] == 0
        client.close()
        with pytest.raises(DaskscopeError, match=r"The client is closed. Connect a new distributed.Client."):
            daskscope.profile(client)


class TestRegister:
    def test_a_cluster_registered_again_is_one_run_with_a_gap(
        self, server: HostedServer, client: Any, cluster_id: str
    ) -> None:
        client.gather(client.map(inc, range(5)))
        analytics.unregister(client)
        client.gather(client.map(inc, range(5, 10)))
        time.sleep(0.5)
        analytics.register(client)
        client.gather(client.map(inc, range(10, 17)))
        analytics.unregister(client)
        until(lambda: download_recording(cluster_id)["tasks"].rows == 12, "the tasks of both recordings")

        summary = summarise(download_recording(cluster_id))
        assert len(analytics.list_clusters()) == 1
        assert sum(prefix.count for prefix in summary.prefixes) == 12
        assert "nothing was recorded from" in summary.statement

    def test_only_a_token_for_this_cluster_is_sent_to_the_scheduler(
        self, server: HostedServer, client: Any, cluster_id: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def token_and_id(dask_scheduler: Any) -> tuple[str, str]:
            plugin = dask_scheduler.plugins[NAME]
            return plugin.settings.token, dask_scheduler.id

        token, scheduler = client.run_on_scheduler(token_and_id)
        own = server.make_token("mia", "ours")
        assert token not in ("", own)
        assert server.ask("GET", "/api/v1/me", token=token).json()["scopes"] == ["ingest"]
        assert server.ask("GET", "/api/v1/clusters", token=token).code == "forbidden"
        assert server.send(sample_frames("another"), token=token).code == "forbidden"
        assert cluster_id == scheduler

    def test_registering_with_an_invalid_token_fails_at_once(
        self, server: HostedServer, client: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DASKSCOPE_TOKEN", "dscope_cut_off")
        with pytest.raises(ServerError, match="daskscope token create"):
            analytics.register(client)

    def test_registering_without_a_reachable_server_fails_if_it_needs_a_token(
        self, client: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with (
            dask.config.set({"daskscope.server": "http://127.0.0.1:1"}),
            pytest.raises(ServerError, match="Registering needs the server once"),
        ):
            analytics.register(client)


@pytest.mark.each_database
class TestLists:
    def test_clusters_computations_and_errors_are_listed_with_all_fields(self, client: Any, cluster_id: str) -> None:
        client.gather(client.map(inc, range(10), pure=False))
        failed = client.submit(fail, 3, pure=False)
        distributed.wait([failed])
        client.log_event("scores", {"note": "<b>kept</b>"})
        until(lambda: analytics.list_exceptions(cluster_id=cluster_id), "the exception")
        until(lambda: analytics.list_clusters()[0]["n_tasks"] == 11, "the tasks")
        until(lambda: sum(item["n_tasks"] for item in analytics.list_computations(cluster_id)) == 11, "the sums")

        (cluster,) = analytics.list_clusters(user="mia")
        assert [len(analytics.list_clusters(state=wanted)) for wanted in (("running", "idle"), "failed")] == [1, 0]
        assert cluster.keys() >= {
            "id", "scheduler_id", "status", "created", "workers", "memory", "memory_limit", "n_tasks", "thread_seconds",
            "name", "user", "versions", "cost", "idle_since", "last_work", "state", "reason",
        }  # fmt: skip
        assert (cluster["status"], cluster["workers"], cluster["threads"]) == ("running", 1, 2)
        assert cluster["versions"]["distributed"] == version("distributed")
        assert cluster["cost"]["estimate"] is True

        computations = analytics.list_computations(scheduler_id=cluster_id)
        assert all(item.keys() >= {"code", "start", "stop", "state", "n_tasks"} for item in computations)
        assert {item["state"] for item in computations} <= {"finished", "failed"}
        assert sorted(item["call"] for item in computations) == [
            "client.gather(client.map(inc, range(10), pure=False))",
            "failed = client.submit(fail, 3, pure=False)",
        ]
        assert "failed = client.submit(fail, 3, pure=False)"[:39] in repr(computations)

        (exception,) = analytics.list_exceptions()
        assert (exception["type"], exception["message"]) == ("ValueError", "no good: 3")
        assert "fail" in exception["traceback"]
        assert analytics.list_errors()[0]["count"] == 1
        assert analytics.list_events(cluster_id)

        frame = analytics.list_clusters().to_pandas()
        assert list(frame["id"]) == [cluster_id]
        assert "cost.total" in frame.columns

    def test_listing_computations_requires_a_cluster(self) -> None:
        with pytest.raises(ValueError, match="cluster_id= or scheduler_id="):
            analytics.list_computations()

    def test_clusters_are_listed_by_age(self, server: HostedServer, clock: MovingClock) -> None:
        assert server.send(sample_frames("old"), token=server.make_token("mia", "ours")).status == 200
        clock.move(days=10)
        assert analytics.list_clusters() == []
        assert len(analytics.list_clusters(since="11 days")) == len(analytics.list_clusters(since=None)) == 1
        with pytest.raises(ServerError, match="neither a duration"):
            analytics.list_clusters(since="yesterdayish")

    def test_a_notebook_escapes_texts(self) -> None:
        nasty = "<img src=x onerror=alert(1)>"
        shown = Listing([{nasty: 1, "name": nasty, "url": f"https://x/'{nasty}"}])._repr_html_()
        assert "<img" not in shown
        assert "href='https://x/&#x27;&lt;img" in shown
        assert Listing(empty=nasty)._repr_html_() == "<p>&lt;img src=x onerror=alert(1)&gt;</p>"
        assert Listing([{"url": "javascript:alert(1)"}])._repr_html_().count("href") == 0

    def test_a_foreign_account_is_refused_with_a_suggestion(self, server: HostedServer) -> None:
        server.make_account("theirs", mallory="owner")
        with pytest.raises(
            DaskscopeError, match=r"for the account ours only\. Get one for all your accounts with: daskscope login"
        ):
            analytics.list_clusters(account="theirs")


def wait_for(event: str) -> None:
    distributed.Event(event).wait()


class TestExplain:
    def test_explain_an_idle_cluster_without_a_timeout(self, client: Any, cluster_id: str) -> None:
        client.submit(inc, 1).result()
        answers: list[dict[str, Any]] = []

        def is_idle() -> bool:
            # It was idle before the task, too: keep the first answer that says so.
            answers.append(analytics.explain(cluster_id))
            return bool(answers[-1]["state"] == "idle" and answers[-1]["clients"])

        until(is_idle, "an idle cluster with a client")
        found = answers[-1]
        assert "no idle-timeout is set" in found["answer"]
        assert any("costs about" in line for line in found["evidence"])

    def test_explain_a_busy_cluster(self, client: Any, cluster_id: str) -> None:
        futures = client.map(wait_for, ["go"] * 3, pure=False)
        answers: list[dict[str, Any]] = []

        def is_busy() -> bool:
            # Dask checks for idleness periodically, so the state may lag behind the tasks.
            answers.append(analytics.explain(cluster_id))
            return bool(answers[-1]["tasks_processing"] and answers[-1]["state"] == "running")

        until(is_busy, "a busy cluster")
        assert answers[-1]["answer"].startswith("It is working")
        distributed.Event("go").set()
        distributed.wait(futures)

    def test_explain_a_task_that_no_worker_can_run(self, client: Any, cluster_id: str) -> None:
        future = client.submit(inc, 1, resources={"GPU": 2}, pure=False)
        until(lambda: analytics.explain(cluster_id)["tasks_unrunnable"] == 1)
        found = analytics.explain(cluster_id)
        assert "1 task cannot run" in found["answer"]
        assert "GPU" in found["answer"]
        assert found["advice"]
        del future

    def test_explain_a_lost_cluster(self, server: HostedServer, clock: MovingClock) -> None:
        assert server.send(sample_frames("lost"), token=server.make_token("mia", "ours")).status == 200
        clock.move(seconds=61)
        assert analytics.explain("lost")["answer"].startswith("Probably not running: its last message came 1 min")
        (cluster,) = analytics.list_clusters()
        assert (cluster["state"], cluster["workers"]) == ("lost", 0)
        assert re.match(r"no message for 1 min \d+(\.\d)? s", cluster["reason"])
        assert cluster["cost"]["per_hour"] == 0

    def test_explain_an_unknown_cluster(self, server: HostedServer) -> None:
        with pytest.raises(ServerError, match="No such cluster"):
            analytics.explain("nobody")
        with pytest.raises(ServerError, match="There is nothing at"):
            analytics.explain("../../etc/passwd")


class TestClose:
    def test_a_cluster_closes_on_request(self, client: Any, cluster_id: str) -> None:
        analytics.close(cluster_id)
        until(lambda: client.cluster.scheduler.status.name == "closed", "the scheduler's end")
        until(lambda: analytics.list_clusters()[0]["state"] == "finished")
        with pytest.raises(ServerError, match="finished: there is nobody to ask"):
            analytics.close(cluster_id)

    def test_a_cluster_that_disallows_closing_continues(self, server: HostedServer, client: Any) -> None:
        with dask.config.set({"daskscope.analytics.close.allow": False}):
            analytics.register(client)
        until(analytics.list_clusters)
        analytics.close(analytics.list_clusters()[0]["id"])
        known = server.services.counters.get("batches", "fresh")
        until(lambda: server.services.counters.get("batches", "fresh") > known + 5, "some more batches")
        assert client.submit(inc, 1).result() == 2
