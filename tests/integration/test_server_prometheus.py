"""A real Prometheus scrapes a real server."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.load import Load
from tests.helpers.server_process import ServerProcess
from tests.helpers.services import free_port, skip_unavailable
from tests.helpers.waiting import until

CONFIG = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: daskscope
    static_configs: [{{targets: ["{target}"]}}]
    authorization: {{credentials_file: "{secret}"}}
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path / "data")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def prometheus(tmp_path: Path, server: ServerProcess) -> Iterator[str]:
    """The URL of a Prometheus that scrapes the server every second."""
    program = shutil.which("prometheus")
    if program is None:
        skip_unavailable("Prometheus", "there is no program of that name, and apt could not install it")
    config = tmp_path / "prometheus.yml"
    config.write_text(CONFIG.format(target=server.url.removeprefix("http://"), secret=server.data / "local.secret"))
    address = f"127.0.0.1:{free_port()}"
    command = [
        program,
        f"--config.file={config}",
        f"--web.listen-address={address}",
        f"--storage.tsdb.path={tmp_path / 'tsdb'}",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield f"http://{address}"
    process.terminate()
    process.wait(20)


def ask(prometheus: str, query: str) -> dict[str, float]:
    """Return the values of a query by state."""
    try:
        with urllib.request.urlopen(
            f"{prometheus}/api/v1/query?{urllib.parse.urlencode({'query': query})}", timeout=60
        ) as answer:
            result = json.loads(answer.read())["data"]["result"]
    except OSError:
        return {}
    return {item["metric"].get("state", ""): float(item["value"][1]) for item in result}


def test_prometheus_reports_the_numbers_of_the_server(server: ServerProcess, prometheus: str) -> None:
    load = Load(server.url, clusters=1, batches=2, rows=10, token=server.secret)
    load.start()
    until(lambda: load.ended, "the end of a cluster")
    load.stop()

    until(lambda: ask(prometheus, "daskscope_tasks").get("") == load.tasks, "the scrape of all tasks")
    assert ask(prometheus, "daskscope_clusters")["finished"] == len(load.ended)
    assert ask(prometheus, 'daskscope_batches_total{kind="fresh"}') == {"": load.acknowledged}
    assert ask(prometheus, "up") == {"": 1.0}
    series = ask(prometheus, 'count({__name__=~"daskscope_.*"})')[""]
    assert series < 200
