"""From a running cluster to its live page with one call or one command, in a terminal and in a notebook."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import dask
import distributed
import psutil
import pytest
from tests.helpers.hosted import HostedServer
from tests.helpers.processes import Processes
from tests.helpers.server_process import ServerProcess
from tests.helpers.waiting import until

import daskscope
from daskscope import units
from daskscope.client import local_server
from daskscope.client.local_server import find_or_start, running_servers, split_secret
from daskscope.client.server import Server
from daskscope.live_page import describe
from daskscope.report.read_page import find_page

LocalCluster: Any = distributed.LocalCluster
Client: Any = distributed.Client
COMMAND = [sys.executable, "-c", "import sys; from daskscope.cli.main import main; sys.exit(main())", "watch"]


@pytest.fixture
def cluster() -> Iterator[Any]:
    with LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None) as made:
        yield made


def page_text(url: str) -> str:
    base, secret = split_secret(url)
    with urllib.request.urlopen(f"{base}?secret={secret}", timeout=30) as response:
        return str(response.read().decode())


def test_watching_starts_a_server_and_shows_what_runs(cluster: Any, tmp_path: Path) -> None:
    with Client(cluster) as client:
        watched = daskscope.watch(client, open_browser=False, data=str(tmp_path / "data"))
        try:
            assert f"/clusters/{cluster.scheduler.id}" in watched.url
            assert "daskscope" in page_text(watched.url)
            client.gather(client.map(abs, range(20)))
            until(lambda: dict(describe(watched.summary()))["tasks"] == "20 done, 0 to do")
            assert dict(describe(watched.summary()))["errors"] == "none"
        finally:
            watched.close()
        # The cluster goes on without the recorder, and the data stays.
        assert client.submit(abs, -1).result() == 1
        assert client.run_on_scheduler(lambda dask_scheduler: "daskscope" in dask_scheduler.plugins) is False
    assert (tmp_path / "data" / "catalog.db").exists()


def test_a_server_that_runs_already_is_used(cluster: Any, tmp_path: Path) -> None:
    first = find_or_start(str(tmp_path / "data"))
    try:
        assert split_secret(first.url)[0] in [url for url, _ in running_servers()]
        second = find_or_start()
        assert second.process is None
        with Client(cluster) as client:
            watched = daskscope.watch(client, open_browser=False)
            watched.close()
        assert split_secret(first.url)[0] in [url for url, _ in running_servers()], "only its own server is stopped"
    finally:
        first.close()


def test_a_server_starts_on_another_port_if_the_usual_one_is_taken_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
        found = iter([port, 0])
        monkeypatch.setattr(local_server, "free_port", lambda: next(found))
        server = local_server.start(str(tmp_path / "data"))
        server.close()
    assert f":{port}/" not in server.url


#: Starts a server, prints its process ID once it answers, and is killed.
STARTER = """
import os, signal, sys, urllib.request
from daskscope.client import local_server
local_server.LINGER_S = 0
server = local_server.start(sys.argv[1])
if sys.argv[2] == "keep":
    server.keep()
urllib.request.urlopen(server.url).read()
print(server.process.pid, server.url, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("keep", [False, True])
def test_a_server_ends_with_a_killed_starter_unless_a_recording_needs_it(tmp_path: Path, keep: bool) -> None:
    command = [sys.executable, "-c", STARTER, str(tmp_path / "data"), "keep" if keep else ""]
    pid, url = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout.split()
    server = psutil.Process(int(pid))
    if keep:
        assert "daskscope" in page_text(url)
        server.terminate()
    until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE)


def test_a_cluster_that_is_recorded_elsewhere_keeps_its_page(cluster: Any, tmp_path: Path) -> None:
    with Client(cluster) as client:
        first = daskscope.watch(client, open_browser=False, data=str(tmp_path / "one"))
        second = daskscope.watch(client, open_browser=False, data=str(tmp_path / "two"))
        try:
            assert split_secret(second.url)[0] == split_secret(first.url)[0]
        finally:
            second.close()
            first.close()


def test_the_command_prints_the_page_and_ends_with_ctrl_c(cluster: Any, tmp_path: Path) -> None:
    command = [*COMMAND, cluster.scheduler_address, "--no-browser", "--data", str(tmp_path / "data")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    assert "secret=" in url and cluster.scheduler.id in url
    assert "daskscope" in page_text(url)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert errors.splitlines()[-1] == (
        f"daskscope watch: look at the recording again with: daskscope serve --data {tmp_path / 'data'}"
    )


class TestRecordingsOfOthers:
    """Watching never ends a recording that somebody else started."""

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
        server = ServerProcess(tmp_path_factory.mktemp("others") / "data")
        server.start()
        yield server
        server.stop()

    @pytest.fixture
    def processes(self, tmp_path: Path, server: ServerProcess) -> Iterator[Processes]:
        environment = {"DASK_DASKSCOPE__SERVER": f"{server.url}/?secret={server.secret}"}
        with Processes(tmp_path / "processes", environment=environment) as processes:
            yield processes

    def start(self, processes: Processes, *preload: str) -> None:
        processes.scheduler(*preload, installed=True)
        processes.worker("worker")

    def watch_and_leave(self, processes: Processes, *arguments: str) -> list[str]:
        """Watch in a terminal, press Ctrl-C, and return what the command says."""
        command = [*COMMAND, "--scheduler-file", str(processes.scheduler_file), "--no-browser", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None and "/clusters/" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        return errors.splitlines()

    def run_python(self, processes: Processes, code: str) -> None:
        """Run code in another process that has the client of the cluster."""
        connect = f"import distributed, daskscope\nclient = distributed.Client(scheduler_file={str(processes.scheduler_file)!r})"
        environment = {**os.environ, **processes.environment}
        subprocess.run([sys.executable, "-c", f"{connect}\n{code}"], check=True, timeout=60, env=environment)

    @pytest.fixture
    def earlier(self, server: ServerProcess) -> set[str]:
        """The clusters of earlier tests."""
        return {item["id"] for item in Server(server.url, token=server.secret).get("clusters")["items"]}

    def check_all_recorded(
        self, processes: Processes, server: ServerProcess, tasks: int, earlier: Collection[str]
    ) -> None:
        """Close the cluster and compare the recorded tasks with those the program ran."""
        assert processes.terminate("scheduler") == 0
        api = Server(server.url, token=server.secret)

        def ended() -> bool:
            found = [item for item in api.get("clusters")["items"] if item["id"] not in earlier]
            return len(found) == 1 and (found[0]["n_tasks"], found[0]["reason"]) == (tasks, "closed")

        until(ended, f"a recording of {tasks} tasks")

    def test_every_task_is_recorded_although_a_watcher_comes_and_goes(
        self, processes: Processes, server: ServerProcess, earlier: set[str]
    ) -> None:
        self.start(processes, "--preload", "daskscope.analytics")
        with Client(scheduler_file=str(processes.scheduler_file)) as client:
            futures = client.map(abs, range(300), pure=False)
            said = self.watch_and_leave(processes)
            futures += client.map(abs, range(400), pure=False)
            client.gather(futures)
        assert said[-1].startswith("daskscope watch: the cluster is still recorded: http://")
        self.check_all_recorded(processes, server, 700, earlier)

    def test_a_cluster_that_another_process_registered_stays_recorded(
        self, processes: Processes, server: ServerProcess, earlier: set[str]
    ) -> None:
        self.start(processes)
        self.run_python(processes, "daskscope.analytics.register(client)")
        self.watch_and_leave(processes)
        # The process exits without closing the watch.
        self.run_python(processes, "watched = daskscope.watch(client, open_browser=False)")
        with Client(scheduler_file=str(processes.scheduler_file)) as client:
            client.gather(client.map(abs, range(30), pure=False))
        self.check_all_recorded(processes, server, 30, earlier)

    def test_the_first_of_two_watchers_leaves_the_recording_to_the_second(
        self, processes: Processes, server: ServerProcess
    ) -> None:
        self.start(processes)
        with (
            Client(scheduler_file=str(processes.scheduler_file)) as client,
            Client(scheduler_file=str(processes.scheduler_file), set_as_default=False) as other,
            dask.config.set({"daskscope.server": f"{server.url}/?secret={server.secret}"}),
        ):
            first = daskscope.watch(client, open_browser=False)
            second = daskscope.watch(other, open_browser=False)
            client.gather(client.map(abs, range(10), pure=False))
            first.close()
            assert first.is_still_recorded
            client.gather(client.map(abs, range(20), pure=False))
            second.close()
            assert not second.is_still_recorded
            client.gather(client.map(abs, range(40), pure=False))
            until(lambda: second.summary()["state"] not in ("running", "idle"))
            assert second.summary()["n_tasks"] == 30

    def test_a_notebook_that_restarts_takes_back_its_earlier_registration(
        self, processes: Processes, capfd: pytest.CaptureFixture[str]
    ) -> None:
        self.start(processes)
        # The kernel is killed, so that its client says nothing.
        self.run_python(processes, "import os\ndaskscope.analytics.register(client)\nos._exit(0)")
        self.run_python(processes, "daskscope.analytics.unregister(client)")
        with Client(scheduler_file=str(processes.scheduler_file)) as client:
            assert client.run_on_scheduler(lambda dask_scheduler: "daskscope" in dask_scheduler.plugins) is False
        assert "still recorded" not in capfd.readouterr().out

    def test_unregistering_does_not_end_what_a_preload_records(
        self, processes: Processes, server: ServerProcess, earlier: set[str], capfd: pytest.CaptureFixture[str]
    ) -> None:
        self.start(processes, "--preload", "daskscope.analytics")
        self.run_python(processes, "daskscope.analytics.register(client)\ndaskscope.analytics.unregister(client)")
        assert "still recorded: its scheduler was started with --preload" in capfd.readouterr().out
        with Client(scheduler_file=str(processes.scheduler_file)) as client:
            client.gather(client.map(abs, range(30), pure=False))
        self.check_all_recorded(processes, server, 30, earlier)


def test_a_cluster_in_an_account_of_others_stays_recorded_and_says_so(cluster: Any, tmp_path: Path) -> None:
    with HostedServer(tmp_path / "server", login=True) as server, Client(cluster) as client:
        server.make_account("physics", mia="owner")
        token = server.make_token("mia", "physics")
        with (
            dask.config.set({"daskscope.server": server.url, "daskscope.account": "physics"}),
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setenv("DASKSCOPE_TOKEN", token)
            daskscope.analytics.register(client)
        message = f"This cluster is recorded in the account physics of {server.url}, which you cannot see"
        with pytest.raises(daskscope.DaskscopeError, match=re.escape(message)):
            daskscope.watch(client, open_browser=False)
        assert client.run_on_scheduler(lambda dask_scheduler: "daskscope" in dask_scheduler.plugins)
        daskscope.analytics.unregister(client)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "daskscope: Which cluster? Give the address of its scheduler"),
        (["tcp://127.0.0.1:9"], "daskscope: No scheduler answers at tcp://127.0.0.1:9"),
        (["--scheduler-file", "/no/such/file"], "daskscope: There is no file /no/such/file. Start the scheduler"),
    ],
)
def test_a_cluster_that_cannot_be_found_is_a_clear_message(arguments: list[str], message: str) -> None:
    environment = {**os.environ, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"}
    run = subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=60, env=environment, check=False
    )
    assert run.stderr.splitlines()[-1].startswith(message)
    assert run.returncode == 1


def run_notebook(directory: Path, *cells: str) -> list[dict[str, Any]]:
    # Not above: every test process imports this file.
    import nbformat.v4
    from nbclient import NotebookClient

    nbformat4: Any = nbformat.v4
    notebook = nbformat4.new_notebook(cells=[nbformat4.new_code_cell(cell) for cell in cells])
    client = NotebookClient(
        notebook, timeout=280, kernel_name="python3", resources={"metadata": {"path": str(directory)}}
    )
    try:
        client.execute()
    finally:
        (directory / "executed.json").write_text(json.dumps(notebook))
    return [dict(cell) for cell in notebook.cells]


def shown(cell: dict[str, Any]) -> str:
    return "\n".join(
        str(output.get("text", "")) + str(output.get("data", {}).get("text/html", "")) for output in cell["outputs"]
    )


START = """
import distributed, daskscope
client = distributed.Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None)
"""


def test_a_notebook_shows_a_link_and_a_summary_that_follows(tmp_path: Path) -> None:
    cells = run_notebook(
        tmp_path,
        START,
        f"watched = daskscope.watch(open_browser=False, data={str(tmp_path / 'data')!r})\nwatched",
        "import time\nclient.gather(client.map(abs, range(7)))\ntime.sleep(6)",
        "watched.close()\nclient.close()",
    )
    assert "Open the page" in shown(cells[1]) and "recording ended" in shown(cells[1])
    assert "7 done, 0 to do" in shown(cells[1]), "the summary in the cell above follows"


FOLLOWS = (
    "import threading\n[thread.join(60) for thread in threading.enumerate() if thread.name == 'daskscope-watch']\n"
)


@pytest.mark.parametrize(
    ("task", "end", "state", "errors"),
    [
        ("client.submit(abs, 1).result()", f"client.shutdown()\n{FOLLOWS}", "finished: closed", "none"),
        (
            "future = client.submit(int, 'x')\ndistributed.wait(future)",
            "client.shutdown()\nwatched.close()",
            "failed: closed",
            "1",
        ),
    ],
)
def test_the_summary_in_a_notebook_ends_with_the_cluster(
    tmp_path: Path, task: str, end: str, state: str, errors: str
) -> None:
    cells = run_notebook(
        tmp_path,
        START,
        f"watched = daskscope.watch(open_browser=False, data={str(tmp_path / 'data')!r})\nwatched",
        task,
        f"{end}\nprint([thread.name for thread in __import__('threading').enumerate()], watched._displays)",
    )
    (output,) = cells[1]["outputs"]
    rows = dict(re.findall("<tr><td>(.*?)</td><td>(.*?)</td></tr>", output["data"]["text/html"]))
    assert rows == {"state": state, "tasks": "1 done, 0 to do", "errors": errors}
    assert ">Open the page</a>" in output["data"]["text/html"]
    assert "daskscope-watch" not in shown(cells[3]) and shown(cells[3]).endswith(" []\n")


def test_a_cell_is_recorded_by_the_magic(tmp_path: Path) -> None:
    cells = run_notebook(
        tmp_path,
        START,
        "%load_ext daskscope",
        "%%daskscope cell.html\ntotal = client.submit(sum, [1, 2]).result()\nprint(total)",
        "assert total == 3\nclient.close()",
    )
    assert shown(cells[2]).startswith("3\n")
    assert "<td>tasks</td><td>1</td>" in shown(cells[2])
    assert (tmp_path / "cell.html").stat().st_size > 10_000


def test_the_report_of_a_cell_has_its_code_and_its_time(tmp_path: Path) -> None:
    cell = "numbers = range(4)\nclient.gather(client.map(abs, numbers))"
    register = f"""
import dask.config, daskscope.analytics
dask.config.set({{"daskscope.directory": {str(tmp_path / "recordings")!r}}})
daskscope.analytics.register()
client.gather(client.map(str, range(9)))
"""
    cells = run_notebook(tmp_path, START, register, "%load_ext daskscope", f"%%daskscope\n{cell}", "client.close()")
    found = find_page((tmp_path / "dask-report.html").read_bytes()).report

    assert found["calling_code"] == f"{cell}\n"
    assert found["title"] == "dask-report: client.gather(client.map(abs, numbers))"
    assert [(one["code"], one["tasks"]) for one in found["computations"]] == [(cell, 4)]
    assert f"<td>{units.duration(found['totals']['duration_us'])}</td>" in shown(cells[3])


@pytest.mark.parametrize(("cell", "error"), [("1 / 0", "ZeroDivisionError"), ("1 +", "SyntaxError")])
def test_a_recorded_cell_that_fails_stops_the_notebook_and_has_a_report(tmp_path: Path, cell: str, error: str) -> None:
    from nbclient.exceptions import CellExecutionError

    with pytest.raises(CellExecutionError, match=error):
        run_notebook(tmp_path, START, "%load_ext daskscope", f"%%daskscope\n{cell}", "client.close()")
    executed = json.loads((tmp_path / "executed.json").read_text())["cells"]

    assert [out["ename"] for out in executed[2]["outputs"] if out["output_type"] == "error"] == [error]
    assert executed[3]["outputs"] == []
    assert find_page((tmp_path / "dask-report.html").read_bytes()).report["calling_code"] == f"{cell}\n"


def test_a_recorded_cell_without_a_cluster_says_what_is_missing(tmp_path: Path) -> None:
    from nbclient.exceptions import CellExecutionError

    with pytest.raises(CellExecutionError, match="No Dask client to record"):
        run_notebook(tmp_path, "%load_ext daskscope", "%%daskscope\n1 + 1")
    executed = json.loads((tmp_path / "executed.json").read_text())["cells"]
    assert [output["ename"] for output in executed[1]["outputs"]] == ["NoClient"]


def test_watching_says_what_it_needs(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with Client(cluster) as client, pytest.raises(daskscope.DaskscopeError, match=r"pip install 'daskscope\[server\]'"):
        daskscope.watch(client, open_browser=False, data="somewhere")
