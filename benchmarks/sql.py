"""Measure SQL over many runs: a group-by over every task of an account, through the server's own path."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import msgspec

from benchmarks import synthetic
from benchmarks.result import Result, at_most
from daskscope.server.processes.child import ChildProcesses
from daskscope.server.processes.sql import sql_process
from daskscope.storage.runs.parquet import to_parquet
from daskscope.storage.sql.query import SqlFiles, SqlLimits

RUNS, TASKS = 1_000, 10_000
ROUNDS = 3
QUERY = "select prefix, sum(stop_us - start_us) from tasks group by 1 order by 2 desc"


def run() -> list[Result]:
    data = to_parquet(synthetic.recording(TASKS)["tasks"])
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        files = SqlFiles()
        for number in range(RUNS):
            path = directory / files.add("tasks", f"cluster-{number}")
            path.parent.mkdir(parents=True)
            path.write_bytes(data)
        seconds = []
        for _ in range(ROUNDS):
            began = time.monotonic()
            with sql_process(ChildProcesses(), directory, SqlLimits()) as process:
                process.tables_of(QUERY)
                found = process.run(directory, files)
            seconds.append(time.monotonic() - began)
        assert sum(row[1] for row in msgspec.json.decode(found.rows)) > 0
    note = f"{RUNS * TASKS:,} tasks in {RUNS:,} files; with the start of its process; best of {ROUNDS}"
    return [at_most("sql: sum by prefix over all runs", min(seconds), 2, " s", note)]
