"""Stacks of running tasks on request: a real cluster blocked in known lines, and recorders that cannot answer."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.config
import distributed
import pytest
from tests.helpers.hosted import HostedServer, HttpResponse, MovingClock
from tests.helpers.samples import sample_frames
from tests.helpers.services import Hosting
from tests.helpers.waiting import until

from daskscope import analytics
from daskscope.client.server import download_recording

# Untyped in distributed.
LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client

RELEASE = threading.Event()
QUICK = {
    "daskscope.analytics.events.interval": "200ms",
    "daskscope.analytics.samples.interval": "500ms",
    "daskscope.analytics.computation.interval": "500ms",
}


def block_here() -> None:
    RELEASE.wait(60)  # the line of the innermost frame of ours


def outer(number: int) -> int:
    block_here()
    return number


def line_of(function: Any, text: str) -> int:
    """Return the line of this file at which a function has a text."""
    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if text in line)


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


@pytest.fixture
def server(
    hosted: Hosting, tmp_path: Path, clock: MovingClock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[HostedServer]:
    RELEASE.clear()
    with hosted(tmp_path / "data", login=True, clock=clock) as server:
        server.make_account("ours", mia="member", vera="viewer")
        monkeypatch.setenv("DASKSCOPE_TOKEN", server.make_token("mia", "ours"))
        settings = {"daskscope.server": server.url, "daskscope.spool.directory": str(tmp_path / "spool")}
        with dask.config.set({**settings, **QUICK}):
            yield server
    RELEASE.set()


class Page:
    """Asks as the page of a cluster does."""

    def __init__(self, server: HostedServer, client: Any) -> None:
        self.server, self.token = server, server.make_token("mia", "ours", "read", "write")
        self.path = f"/api/v1/clusters/{client.scheduler_info()['id']}"
        until(lambda: self.get("").status == 200, "the first batch")

    def get(self, rest: str) -> HttpResponse:
        return self.server.ask("GET", self.path + rest, token=self.token)

    def request(self, **body: Any) -> HttpResponse:
        return self.server.ask("POST", f"{self.path}/stacks", body, token=self.token)

    def answer(self) -> dict[str, Any]:
        until(lambda: self.get("/stacks").json()["state"] == "done", "the stacks")
        answer: dict[str, Any] = self.get("/stacks").json()
        return answer


def cluster(**settings: Any) -> Any:
    return LocalCluster(n_workers=2, threads_per_worker=2, processes=False, dashboard_address=None, **settings)


def readable(answer: dict[str, Any], item: dict[str, Any]) -> list[tuple[str, str, int]]:
    """Return the frames of a task's stack that are in this file."""
    frames = [answer["frames"][number] for number in item["frames"]]
    return [(Path(file).name, function, line) for file, function, line, _ in frames if file == __file__]


def test_the_stacks_show_the_lines_in_which_tasks_are_blocked(server: HostedServer) -> None:
    with cluster() as made, Client(made) as client:
        analytics.register(client)
        page = Page(server, client)
        assert page.get("/stacks").json()["state"] == "not requested"
        futures = client.map(outer, range(3), pure=False)
        until(lambda: len(page.get("/running").json()["items"]) == 3, "the running tasks")
        running = page.get("/running").json()
        assert {item["key"] for item in running["items"]} == {future.key for future in futures}
        assert {item["prefix"] for item in running["items"]} == {"outer"}
        assert all(item["age"] > 0.9 for item in running["items"])

        answer = page.request()
        assert answer.status == 202, answer.text
        found = page.answer()
        assert found["request"] == answer.json()["request"]
        assert (found["asked"], found["answered"], found["why"]) == (2, 2, "")
        assert {item["key"] for item in found["items"]} == {future.key for future in futures}
        expected = [
            (Path(__file__).name, "outer", line_of(outer, "block_here()")),
            (Path(__file__).name, "block_here", line_of(block_here, "RELEASE.wait")),
        ]
        for item in found["items"]:
            assert readable(found, item) == expected
            assert item["age"] > 0.9
        # Merged, all three are one path.
        assert sum(found["counts"]) == 3
        assert found["parents"][0] == 0
        assert {owner for file, _, _, owner in found["frames"] if file == __file__} == {"user"}

        RELEASE.set()
        client.gather(futures)
        kept = download_recording(client.scheduler_info()["id"])["stacks"]
    assert sorted(set(kept["key"].tolist()) - {""}) == sorted(future.key for future in futures)


def test_one_worker_can_be_asked(server: HostedServer) -> None:
    with cluster() as made, Client(made) as client:
        analytics.register(client)
        page = Page(server, client)
        futures = client.map(outer, range(4), pure=False)
        until(lambda: len(page.get("/running").json()["items"]) == 4, "the running tasks")
        address = page.get("/running").json()["items"][0]["worker"]
        assert page.request(worker=address).status == 202
        found = page.answer()
        assert (found["of"], found["asked"], {item["worker"] for item in found["items"]}) == (address, 1, {address})
        RELEASE.set()
        client.gather(futures)


def test_a_recording_without_profiles_has_no_stacks(server: HostedServer) -> None:
    with (
        dask.config.set({"daskscope.analytics.profile.transmit": False}),
        cluster() as made,
        Client(made) as client,
    ):
        analytics.register(client)
        page = Page(server, client)
        futures = client.map(outer, range(2), pure=False)
        until(lambda: len(page.get("/running").json()["items"]) == 2, "the running tasks")
        page.request()
        found = page.answer()
        assert (found["items"], found["why"]) == ([], "profiles are switched off")
        RELEASE.set()
        client.gather(futures)


def test_keys_are_hidden_if_they_must_not_be_recorded(server: HostedServer) -> None:
    with (
        dask.config.set({"daskscope.analytics.keys.transmit": False}),
        cluster() as made,
        Client(made) as client,
    ):
        analytics.register(client)
        page = Page(server, client)
        future = client.submit(outer, 1, key="classified")
        until(lambda: len(page.get("/running").json()["items"]) == 1, "the running task")
        page.request()
        found = page.answer()
        assert len(found["items"]) == 1
        assert "classified" not in page.get("/stacks").text + page.get("/running").text
        RELEASE.set()
        client.gather(future)


def test_a_recorder_that_does_not_answer_is_reported(server: HostedServer, clock: MovingClock) -> None:
    token = server.make_token("mia", "ours")
    assert server.send(sample_frames("old"), token=token).status == 200
    path = "/api/v1/clusters/old/stacks"
    assert server.ask("POST", path, {}, token=server.make_token("vera", "ours", "read")).status == 403
    assert server.ask("POST", path, {"worker": "x" * 501}, token=token).status == 400
    assert server.ask("POST", path, {}, token=token).status == 202
    # A second request at once would only load the cluster.
    assert server.ask("POST", path, {}, token=token).status == 429
    assert server.ask("GET", path, token=token).json()["state"] == "waiting"
    # Any server tells the recorder in the response to its next batch, for a while.
    told = server.send(sample_frames("old"), token=token).json()["stacks"]
    assert told == {"cluster": "old", "request": told["request"], "worker": ""}
    clock.move(seconds=31)
    assert "stacks" not in server.send(sample_frames("old"), token=token).json()
    assert server.ask("GET", path, token=token).json()["state"] == "no answer"
