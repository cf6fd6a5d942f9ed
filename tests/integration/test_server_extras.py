"""A server with the extra ``server`` and nothing else starts, stores and shows data: optional packages are imported when needed."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

from tests.helpers.samples import sample_frames

from daskscope.client.local_server import split_secret

#: Packages of other extras and of the tests.
OPTIONAL = ("psycopg", "obstore", "pandas", "rich", "duckdb", "IPython", "bokeh", "matplotlib", "httptools")
RUN = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from daskscope.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_server_without_optional_packages(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RUN, "serve", "--port", "0", "--data", str(tmp_path / "data")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stderr is not None
        printed = process.stdout.readline().strip()
        assert printed, process.stderr.read()
        url, secret = split_secret(printed)
        headers = {"Authorization": f"Bearer {secret}"}
        post = urllib.request.Request(f"{url}/api/v1/ingest", data=sample_frames("c"), headers=headers, method="POST")
        with urllib.request.urlopen(post, timeout=30) as answer:
            assert answer.status == 200
        for path in (
            "clusters",
            "clusters/c",
            "clusters/c/history",
            "clusters/c/document/report.json",
            "computations",
            "errors",
        ):
            request = urllib.request.Request(f"{url}/api/v1/{path}", headers=headers)
            with urllib.request.urlopen(request, timeout=30) as answer:
                assert json.loads(answer.read()), path
    finally:
        process.terminate()
        process.communicate(timeout=30)
