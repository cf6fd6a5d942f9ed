"""``daskscope demo`` ends with three lines: the result, the URL of the page, and what to try next."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

START = "import sys; from daskscope.cli.main import main; sys.exit(main(sys.argv[1:]))"


def test_the_demo_ends_with_its_result_the_url_and_a_suggestion(tmp_path: Path) -> None:
    finished = subprocess.run(
        [sys.executable, "-c", START, "demo", "--no-serve"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "DASK_CONFIG": str(tmp_path)},
        timeout=100,
        check=False,
    )

    assert finished.returncode == 0, finished.stderr
    before, result, page, next_step = finished.stdout.rsplit("\n", 4)[:-1]
    assert before.splitlines()[-1].startswith(("Complete: ", "Incomplete, "))
    assert re.fullmatch(
        r"Recorded [\d,]+ task executions \(1 failed, 1 retried, 1 worker lost\) in demo\.daskscope and demo\.html\.",
        result,
    )
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/local/clusters/Scheduler-[\w-]+\?secret=[\w-]{43}", page)
    assert next_step == (
        "Next: start the server with `daskscope serve --data demo-server` and open that page, "
        "or try `daskscope show demo.daskscope --errors`."
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo-server", "demo.daskscope", "demo.html"]
