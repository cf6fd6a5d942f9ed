"""``daskscope demo`` prints how the workload ended, three findings, the result, the URL of the page, and what to try next."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

START = "import sys; from daskscope.cli.main import main; sys.exit(main(sys.argv[1:]))"


def test_the_demo_prints_the_outcome_three_findings_and_one_url(tmp_path: Path) -> None:
    finished = subprocess.run(
        [sys.executable, "-c", START, "demo"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "DASK_CONFIG": str(tmp_path)},
        timeout=100,
        check=False,
    )

    assert finished.returncode == 0, finished.stderr
    before, result, page, next_step = finished.stdout.rsplit("\n", 4)[:-1]
    lines = [line for line in before.splitlines() if line]
    assert re.match(r"1 of \d+ computations failed: ", lines[0])
    assert lines[1:3] == ["Findings", "--------"]
    assert [line[:2] for line in lines[3:]] == ["1.", "  ", "  ", "2.", "  ", "  ", "3.", "  ", "  "]
    assert finished.stdout.count("http") == 1
    assert re.fullmatch(
        r"Recorded [\d,]+ task executions \(1 failed, 1 retried, 1 worker lost\) in demo\.daskscope and demo\.html\.",
        result,
    )
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/local/clusters/Scheduler-[\w-]+\?secret=[\w-]{43}", page)
    assert next_step == (
        "The server stops with this command; --serve keeps it running. Next: start it with "
        "`daskscope serve --data demo-server` and open that page, or try `daskscope show demo.daskscope`."
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo-server", "demo.daskscope", "demo.html"]
