"""Record a workload worth looking at on a cluster of its own, and show the recording."""

from __future__ import annotations

import argparse
import logging
import runpy
import sys
from pathlib import Path

import distributed

import daskscope
from daskscope.analysis.summary import summarise
from daskscope.cli.output import open_output
from daskscope.cli.show_sections import show_summary
from daskscope.report.document import report_page
from daskscope.wire.file import read_recording

WORKLOAD = Path(__file__).with_name("demo_workload.py")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output", default="demo.daskscope", metavar="PATH", help="where the recording goes (default: %(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    # What Dask has to say about the task that fails and the worker that dies is in the recording.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    silent = {"silence_logs": logging.CRITICAL, "dashboard_address": None}
    # Under a name of its own: Dask takes everything called dask… for a library and would not show its code.
    steps = runpy.run_path(str(WORKLOAD), run_name="demo")["STEPS"]
    _say("starting a cluster of 3 workers")
    with distributed.LocalCluster(n_workers=3, threads_per_worker=2, memory_limit="1 GiB", **silent) as cluster:
        with distributed.Client(cluster) as client, daskscope.record(args.output, client=client, name="demo"):
            for number, (title, step) in enumerate(steps, 1):
                _say(f"{number}/{len(steps)} {title}")
                step(client)
        _say("done")
    show_summary(summarise(read_recording(args.output)), open_output(), top=10)
    path = Path(args.output)
    report = path.with_suffix(".html")
    report.write_bytes(report_page(read_recording(path), title=path.stem))
    _say(f"recorded in {path} ({path.stat().st_size / 1e3:.0f} kB). Look at it again with: daskscope show {path}")
    _say(f"the report is {report.resolve()} ({report.stat().st_size / 1e3:.0f} kB). Open it in a browser.")
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"daskscope demo: {text}\n")
    sys.stderr.flush()
