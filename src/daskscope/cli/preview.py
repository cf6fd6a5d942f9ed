"""Print exactly what a recorder would send, without sending it."""

from __future__ import annotations

import argparse
import json
import logging
import runpy
import tempfile
import time
from itertools import islice
from pathlib import Path

import distributed

import daskscope
from daskscope.cli.demo import WORKLOAD
from daskscope.cli.output import write, write_message
from daskscope.cli.show import show_table
from daskscope.errors import DaskscopeError
from daskscope.model.recording import Recording


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scheduler",
        nargs="?",
        metavar="ADDRESS",
        help="scheduler to record (default: run a sample workload on a local cluster)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=10.0,
        metavar="S",
        help="seconds to record a running scheduler (default: %(default)s)",
    )
    parser.add_argument("--table", action="append", metavar="NAME", help="table to print (repeatable)")
    parser.add_argument(
        "--rows", type=int, default=3, metavar="N", help="rows per table, 0 for all (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="daskscope-preview-") as directory:
        path = Path(directory) / "preview.daskscope"
        if args.scheduler:
            _record_scheduler(args.scheduler, path, args.seconds)
        else:
            _record_sample(path)
        size, recording = path.stat().st_size, daskscope.open_recording(path)
        names = args.table or [name for name in recording if recording[name].rows]
        unknown = [name for name in names if name not in recording]
        if unknown:
            raise DaskscopeError(f"There is no table {unknown[0]!r}. Choose from: {', '.join(recording)}.")
        _print(recording, names, args.rows or None, as_json=args.json)
    rows = sum(recording[name].rows for name in recording)
    write_message(f"{rows:,} rows, {size:,} bytes. Nothing was sent.", "daskscope preview")
    return 0


def _record_scheduler(address: str, path: Path, seconds: float) -> None:
    try:
        with (
            distributed.Client(address, timeout="10s", set_as_default=False) as client,
            daskscope.record(path, client=client),
        ):
            time.sleep(seconds)
    except OSError as error:
        raise DaskscopeError(f"The scheduler {address} cannot be reached ({error}).") from None


def _record_sample(path: Path) -> None:
    """Record the first steps of the demo's workload on a local cluster, with the current configuration."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    steps = runpy.run_path(str(WORKLOAD), run_name="preview")["STEPS"]
    silent = {"silence_logs": logging.CRITICAL, "dashboard_address": None}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1 GiB", **silent) as cluster,
        distributed.Client(cluster) as client,
        daskscope.record(path, client=client),
    ):
        for title, step in steps[:2]:
            write_message(title, "daskscope preview")
            step(client)


def _print(recording: Recording, names: list[str], limit: int | None, *, as_json: bool) -> None:
    if as_json:
        tables = {}
        for name in names:
            table = recording[name]
            rows = islice(table.records(*table), limit)
            tables[name] = {"rows": table.rows, "first": [dict(zip(table, row, strict=True)) for row in rows]}
        write(json.dumps(tables, indent=2, default=str) + "\n")
        return
    for name in names:
        write(f"\n{name}: {recording[name].rows:,} rows of {recording[name].definition.row}\n")
        show_table(recording[name], limit, as_json=False)
