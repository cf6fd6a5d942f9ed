"""``daskscope.analytics`` records a cluster for its whole lifetime, from a client or by a preload."""

from __future__ import annotations

import operator
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask.config
import distributed
import pytest
from tests.helpers.processes import Processes
from tests.helpers.waiting import until

import daskscope
from daskscope import DaskscopeError, Recording, analytics, units
from daskscope.analysis.summary import extent, recording_gaps, summarise
from daskscope.client.connection import NFRAMES, CallingCode
from daskscope.insights.facts import Facts
from daskscope.insights.rules import findings
from daskscope.insights.story import outcome
from daskscope.report.read_page import find_page

# Untyped in distributed.
LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client

Opened = Callable[[Path], Recording]


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    with dask.config.set({"daskscope.directory": str(tmp_path / "recordings")}):
        yield tmp_path / "recordings"


@pytest.fixture(autouse=True)
def calling_code(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stop sending code after the test; ``register`` would do it until the process ends."""
    monkeypatch.setattr("daskscope.analytics.calling_code", CallingCode())
    with dask.config.set({NFRAMES: 0}):
        yield


@pytest.fixture
def client() -> Iterator[Any]:
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as made,
    ):
        yield made


STOPPED_SCRIPT = """
import time
import distributed
import daskscope.analytics

if __name__ == "__main__":
    client = distributed.Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None)
    daskscope.analytics.register()
    client.submit(abs, 1).result()
    future = client.submit(time.sleep, 60)
    while not any(client.processing().values()):
        pass
    print("running", flush=True)
    future.result()
"""


def compute(client: Any, tasks: int = 10) -> None:
    client.gather(client.map(operator.neg, range(tasks), pure=False))


def ours(client: Any) -> list[str]:
    def ours(dask_scheduler: Any) -> list[str]:
        return [
            name
            for name, part in (*dask_scheduler.plugins.items(), *dask_scheduler.handlers.items())
            if "daskscope" in name and not hasattr(part, "is_farewell")
        ]

    return list(client.run_on_scheduler(ours))


class TestRegister:
    def test_a_registered_cluster_is_recorded_until_it_closes(self, directory: Path, opened: Opened) -> None:
        with (
            LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            analytics.register()
            assert dask.config.get(NFRAMES) == 1
            compute(client)

        recording = opened(directory)
        assert recording["tasks"].rows == 10
        assert list(recording["clusters"]["end_reason"]) == ["closed"]

    def test_running_computations_are_lost_when_the_cluster_closes(self, directory: Path, opened: Opened) -> None:
        with (
            LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            analytics.register()
            compute(client)
            # Until the client's release has arrived, the cluster would lose results when its worker goes.
            until(lambda: not cluster.scheduler.tasks)
            future = client.submit(operator.pos, 1, resources={"nobody has it": 1})
            until(lambda: cluster.scheduler.unrunnable)
            # Close it before the client, which would release its tasks.
            cluster.close()
            assert future.status != "finished"

        computations = opened(directory)["computations"]
        assert sorted(zip(computations["state"], computations["unfinished"])) == [("done", 0), ("lost", 1)]

    def test_a_script_that_a_user_stops_is_interrupted(self, tmp_path: Path, opened: Opened) -> None:
        script, directory = tmp_path / "script.py", tmp_path / "recordings"
        script.write_text(STOPPED_SCRIPT)
        environment = {**os.environ, "DASK_DASKSCOPE__DIRECTORY": str(directory)}
        with subprocess.Popen(
            [sys.executable, str(script)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert any(line == "running\n" for line in process.stdout)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        recording = opened(directory)
        facts = Facts.of(recording, *extent(recording))

        assert "KeyboardInterrupt" in errors
        assert sorted(recording["computations"]["state"]) == ["cancelled", "done"]
        assert outcome(facts).state == "interrupted"

    @pytest.mark.usefixtures("directory")
    def test_a_report_is_about_its_own_block(self, client: Any, tmp_path: Path) -> None:
        analytics.register()
        client.submit(time.sleep, 0.5, pure=False).result()
        with pytest.raises(ZeroDivisionError):
            client.submit(divmod, 1, 0).result()
        with daskscope.performance_report(tmp_path / "report.html") as report:
            client.gather(client.map(operator.neg, range(3), pure=False))
        assert report.recording is not None
        found, summary = find_page((tmp_path / "report.html").read_bytes()).report, summarise(report.recording)

        assert found["title"] == "report: client.gather(client.map(operator.neg, range(3), pure=False))"
        assert found["answer"]["state"] == "finished"
        assert (summary.start_us, summary.end_us) == (found["start_us"], found["stop_us"])
        assert [(one.code, one.tasks) for one in summary.computations] == [(found["title"].partition(": ")[2], 3)]
        assert summary.errors == ()
        assert f"<td>{units.duration(found['totals']['duration_us'])}</td>" in report._repr_html_()

    def test_registering_twice_has_no_effect(self, client: Any, directory: Path, opened: Opened) -> None:
        analytics.register()
        analytics.register(client)
        compute(client)
        analytics.unregister()

        assert opened(directory)["tasks"].rows == 10
        assert ours(client) == []

    def test_unregistering_ends_the_recording(self, client: Any, directory: Path, opened: Opened) -> None:
        analytics.register()
        compute(client)
        analytics.unregister()
        compute(client)

        recording = opened(directory)
        assert recording["tasks"].rows == 10
        assert list(recording["clusters"]["end_reason"]) == ["recording ended"]
        assert ours(client) == []

    def test_a_cluster_registered_again_is_one_run_with_a_gap(
        self, client: Any, directory: Path, opened: Opened
    ) -> None:
        analytics.register()
        compute(client, 10)
        analytics.unregister()
        ended = time.time()
        compute(client, 5)
        time.sleep(1.2)
        began = time.time()
        analytics.register()
        compute(client, 20)
        analytics.unregister()

        recording = opened(directory)
        [(start, stop)] = recording_gaps(recording)
        assert start / 1e6 == pytest.approx(ended, abs=0.5)
        assert stop / 1e6 == pytest.approx(began, abs=0.5)
        assert stop - start > 1_200_000
        summary = summarise(recording)
        assert not summary.complete
        assert "nothing was recorded from" in summary.statement
        # Both parts are in the run, and executions are numbered through.
        assert sum(prefix.count for prefix in summary.prefixes) == 30
        assert sorted(recording["tasks"]["id"]) == list(range(30))
        assert summary.start_us <= recording["tasks"]["start_us"].min()
        assert [f.kind for f in findings(Facts.of(recording, *extent(recording)))].count("incomplete") == 1

    def test_recordings_to_different_places_have_no_gap(
        self, client: Any, tmp_path: Path, directory: Path, opened: Opened
    ) -> None:
        with daskscope.record(tmp_path / "run.daskscope"):
            compute(client)
        analytics.register()
        compute(client)
        analytics.unregister()
        with dask.config.set({"daskscope.directory": str(tmp_path / "other")}):
            analytics.register()
            analytics.unregister()

        for path in (tmp_path / "run.daskscope", directory, tmp_path / "other"):
            assert summarise(opened(path)).complete

    def test_unregistering_an_unrecorded_cluster_has_no_effect(self, client: Any) -> None:
        analytics.unregister()

    def test_a_recording_of_a_registered_cluster_keeps_the_recorder(
        self, client: Any, directory: Path, tmp_path: Path, opened: Opened
    ) -> None:
        analytics.register()
        compute(client)
        with daskscope.record(tmp_path / "run.daskscope"):
            compute(client)
        assert ours(client) == ["daskscope", "daskscope"]
        compute(client)
        analytics.unregister()

        assert opened(tmp_path / "run.daskscope")["tasks"].rows == 10
        assert opened(directory)["tasks"].rows == 30

    def test_registering_during_a_recording_starts_writing_to_the_directory(
        self, client: Any, directory: Path, tmp_path: Path, opened: Opened
    ) -> None:
        with daskscope.record(tmp_path / "run.daskscope"):
            compute(client)
            analytics.register()
            compute(client)
        assert ours(client) == ["daskscope", "daskscope"]
        compute(client)
        analytics.unregister()

        assert opened(tmp_path / "run.daskscope")["tasks"].rows == 20
        kept = daskscope.open_recording(directory)
        assert kept["tasks"].rows >= 20
        assert kept["workers"].rows == 1
        assert list(kept["clusters"]["end_reason"]) == ["recording ended"]

    def test_the_recording_continues_after_the_client_leaves(self, directory: Path, opened: Opened) -> None:
        with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
            with Client(cluster) as client:
                analytics.register(client)
            with Client(cluster) as client:
                compute(client)

        assert opened(directory)["tasks"].rows == 10

    def test_without_a_destination_the_error_says_how_to_set_one(self, client: Any) -> None:
        with pytest.raises(DaskscopeError, match="DASK_DASKSCOPE__DIRECTORY=/path"):
            analytics.register()

        assert ours(client) == []


class TestPreload:
    @pytest.fixture
    def processes(self, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Processes]:
        with Processes(tmp_path / "processes", environment=request.param) as processes:
            processes.scheduler("--preload", "daskscope.analytics", installed=True)
            processes.worker("worker")
            yield processes

    def run(self, processes: Processes) -> list[str]:
        """Use the cluster, end its scheduler as a batch system would; the lines it logged of ours."""
        with Client(scheduler_file=str(processes.scheduler_file)) as client:
            client.wait_for_workers(1, timeout=30)
            compute(client)
            if ours(client):
                until(lambda: agent_runs(client), "the agent's start")
        assert processes.terminate("scheduler") == 0
        assert "Traceback" not in processes.log("scheduler")
        return [line for line in processes.log("scheduler").splitlines() if "daskscope:" in line]

    @pytest.mark.parametrize("processes", [{"DASK_DASKSCOPE__DIRECTORY": "recordings"}], indirect=True)
    def test_a_cluster_is_recorded_with_workers_that_lack_the_package(
        self, processes: Processes, opened: Opened
    ) -> None:
        assert self.run(processes) == []

        recording = opened(processes.directory / "recordings")
        assert recording["tasks"].rows == 10
        assert list(recording["clusters"]["end_reason"]) == ["closed"]
        assert list(recording["workers"]["agent"]) == ["running"]
        assert recording["clusters"]["address"][0].startswith("tcp://127.0.0.1:")

    @pytest.mark.parametrize("processes", [{}], indirect=True)
    def test_without_a_destination_the_scheduler_runs_and_logs_it_once(self, processes: Processes) -> None:
        lines = self.run(processes)

        assert len(lines) == 1
        assert "DASK_DASKSCOPE__DIRECTORY=/path" in lines[0]

    @pytest.mark.parametrize(
        "processes",
        [
            {"DASK_DASKSCOPE__DIRECTORY": "recordings", "DASK_DASKSCOPE__SPOOL__LIMIT": "much"},
            {"DASK_DASKSCOPE": "5"},
        ],
        indirect=True,
        ids=["a limit that is no number", "a number for everything"],
    )
    def test_the_scheduler_runs_with_an_invalid_setting(self, processes: Processes) -> None:
        lines = self.run(processes)

        assert len(lines) == 1
        assert "this cluster is not recorded" in lines[0]

    @pytest.mark.parametrize("processes", [{"DASK_DASKSCOPE__DIRECTORY": "/proc/nowhere"}], indirect=True)
    def test_the_scheduler_runs_with_an_unwritable_directory(self, processes: Processes) -> None:
        lines = self.run(processes)

        assert len(lines) == 1
        assert "cannot write to /proc/nowhere" in lines[0]

    @pytest.mark.parametrize(
        "processes",
        [{"DASK_DASKSCOPE__DIRECTORY": "recordings", "DASK_DASKSCOPE__ANALYTICS__DISABLED": "True"}],
        indirect=True,
    )
    def test_a_disabled_recorder_logs_nothing(self, processes: Processes) -> None:
        assert self.run(processes) == []
        assert not (processes.directory / "recordings").exists()

    def test_a_cluster_is_recorded_after_its_configuration_was_cleared(self, tmp_path: Path, opened: Opened) -> None:
        with (
            LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            # As the test helpers of distributed do; Dask itself cannot run long without its own settings.
            kept = dict(dask.config.config)
            dask.config.config.clear()
            dask.config.config["daskscope"] = {"directory": str(tmp_path / "recordings")}
            try:
                cluster.sync(analytics.dask_setup, cluster.scheduler)
            finally:
                dask.config.config.clear()
                dask.config.config.update(kept)
            compute(client)

        assert opened(tmp_path / "recordings")["tasks"].rows == 10

    def test_a_worker_that_preloads_it_runs_and_logs_one_warning(self, tmp_path: Path) -> None:
        with Processes(tmp_path / "processes") as processes:
            processes.scheduler()
            processes.worker("worker", "--no-nanny", "--preload", "daskscope.analytics", installed=True)
            with Client(scheduler_file=str(processes.scheduler_file)) as client:
                client.wait_for_workers(1, timeout=30)
                compute(client)

            lines = [line for line in processes.log("worker").splitlines() if "daskscope:" in line]
        assert len(lines) == 1
        assert "only in the scheduler" in lines[0]


def agent_runs(client: Any) -> bool:
    def there(dask_worker: Any) -> bool:
        return "daskscope-agent" in dask_worker.plugins

    return all(client.run(there).values())
