"""The Python code of the tutorial and the how-to guides runs as it is printed.

The blocks of a page run in order, in one interpreter, against real local clusters and a real server. Blocks after a line
``<!-- docs: not-run -->`` need something that a test does not have, such as Kubernetes; they are only compiled.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from tests.helpers.hosted import HostedServer

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "tutorial.md", *sorted(DOCS.glob("how-to/*.md"))]
BLOCK = re.compile(r"^(?P<skip><!-- docs: not-run -->\n)?```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
YAML = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: The URL of the server in the docs.
SERVER = "http://127.0.0.1:8780"
#: The expected output of a page's code.
OUTPUT = {
    "tutorial": ["'error'", "[1, 2, 4]", "ValueError", "parse", "tutorial.html"],
    "report": ["dask-report.html", "transpose"],
    "record": ["events", "1200000.0"],
    "compare": ["instead of "],
    "team-server": ["n_tasks"],
    "preload": ["6"],
    # Which changes it predicts depends on how busy the machine is.
    "what-if": ["The replay of the recorded run takes"],
}


def runnable(page: Path) -> str:
    return "\n".join(block["code"] for block in BLOCK.finditer(page.read_text()) if not block["skip"])


RUNNABLE = [page for page in PAGES if runnable(page)]


def test_every_page_with_runnable_code_is_run() -> None:
    assert sorted(page.stem for page in RUNNABLE) == sorted(OUTPUT)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_compiles(page: Path) -> None:
    for block in BLOCK.finditer(page.read_text()):
        compile(block["code"], str(page), "exec")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_configuration_is_valid_yaml(page: Path) -> None:
    for text in YAML.findall(page.read_text()):
        assert isinstance(yaml.safe_load(text), dict)


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    code = runnable(page)
    environment = {**os.environ, "DASK_CONFIG": str(tmp_path), "HOME": str(tmp_path)}
    with HostedServer(tmp_path / "server") as server:
        # With -c, as in an interactive session: workers import the main module of a script, which would need a guard.
        finished = subprocess.run(
            [sys.executable, "-c", code.replace(SERVER, server.url)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            timeout=280,
            check=False,
        )

    assert finished.returncode == 0, finished.stderr
    assert [text for text in OUTPUT[page.stem] if text not in finished.stdout] == []
