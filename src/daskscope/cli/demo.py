"""Run and record a sample workload, then show it in the terminal and the browser."""

from __future__ import annotations

import argparse
import logging
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dask.config
import distributed

import daskscope
from daskscope import analytics, units
from daskscope.analysis.summary import Summary, extent, summarise
from daskscope.cli.output import is_terminal, open_output, write, write_message
from daskscope.cli.show import EXPECTED, show_interpretation
from daskscope.client.local_server import split_secret, start, with_secret
from daskscope.client.server import upload_file
from daskscope.collector.scheduler.claims import REGISTER
from daskscope.errors import MissingExtra
from daskscope.insights.facts import Facts
from daskscope.report.document import report_page
from daskscope.wire.file import read_recording

OWNER = "demo"
#: Findings that are printed; the page has all of them.
MAX_FINDINGS = 3
WORKLOAD = Path(__file__).with_name("demo_workload.py")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output", default="demo.daskscope", metavar="PATH", help="recording to write (default: %(default)s)"
    )
    parser.add_argument(
        "--serve",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="keep the server running until Ctrl-C (default: only on a terminal)",
    )


def run(args: argparse.Namespace) -> int:
    # Dask logs the failing task and the killed worker. The recording shows both.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    path = Path(args.output)
    data = path.with_name(f"{path.stem}-server")
    serve = is_terminal() if args.serve is None else args.serve
    with _server(data) as (server, url):
        page = _run_workload(path, url)
        recording = read_recording(path)
        _report_path(path).write_bytes(report_page(recording, title=path.stem))
        show_interpretation(Facts.of(recording, *extent(recording)), open_output(), top=MAX_FINDINGS)
        next_step = _next_step(path, data if server else None, serve=serve)
        write(f"\n{_result(summarise(recording), path)}\n{page}\n{next_step}\n")
        sys.stdout.flush()
        if server is not None and serve:
            try:
                server.wait()
            except KeyboardInterrupt:
                pass
    return 0


def _run_workload(path: Path, url: str) -> str:
    """Run and record the workload. Return the URL of its page: on the server, or else of the report file."""
    silent = {"silence_logs": logging.CRITICAL, "dashboard_address": None}
    # Dask treats every module called dask… as a library and hides its code, so run the workload under another name.
    steps = runpy.run_path(str(WORKLOAD), run_name="demo")["STEPS"]
    _report_progress("starting a cluster of 3 workers")
    with (
        dask.config.set({"daskscope.server": url or None, "daskscope.name": "demo"}),
        distributed.LocalCluster(n_workers=3, threads_per_worker=2, memory_limit="1 GiB", **silent) as cluster,
        distributed.Client(cluster) as client,
    ):
        if url:
            # Not register(), which prints a link without the secret of the server.
            client.sync(analytics.start_recording, client, analytics.chosen_settings(), OWNER, REGISTER)
        with daskscope.record(path, client=client, name="demo"):
            for number, (title, step) in enumerate(steps, 1):
                _report_progress(f"step {number} of {len(steps)}: {title}")
                step(client)
        if not url:
            return _report_path(path).resolve().as_uri()
        upload_file(path, title="demo")
        base, secret = split_secret(url)
        return with_secret(f"{base}/local/clusters/{client.scheduler_info()['id']}", secret)


def _result(summary: Summary, path: Path) -> str:
    tasks = units.counted(sum(prefix.count for prefix in summary.prefixes), "task execution")
    failed = sum(prefix.errors for prefix in summary.prefixes)
    retried = sum(prefix.retries for prefix in summary.prefixes)
    lost = sum(worker.verdict not in EXPECTED for worker in summary.workers)
    outcome = f"{units.count(failed)} failed, {units.count(retried)} retried, {units.counted(lost, 'worker')} lost"
    return f"Recorded {tasks} ({outcome}) in {path} and {_report_path(path)}."


def _next_step(path: Path, data: Path | None, *, serve: bool) -> str:
    command = _command()
    show = f"{command} show {path}"
    if data is None:
        return f"Next: open that page, try `{show}`, or get the server with `pip install 'daskscope[server]'`."
    if serve:
        return f"Next: open that page, or try `{show}` in another terminal. Press Ctrl-C to stop the server."
    return (
        f"The server stops with this command; --serve keeps it running. Next: start it with "
        f"`{command} serve --data {data}` and open that page, or try `{show}`."
    )


@contextmanager
def _server(data: Path) -> Iterator[tuple[subprocess.Popen[str] | None, str]]:
    """Run a server and yield it with its URL; yield ``None`` where the server's packages are not installed."""
    try:
        _report_progress("starting a server")
        server = start(str(data))
    except MissingExtra:
        yield None, ""
        return
    try:
        yield server.process, server.url
    finally:
        server.close()


def _command() -> str:
    """Return how to call daskscope from the current directory: by its path where it is not on the PATH."""
    called = Path(sys.argv[0])
    if shutil.which("daskscope") or called.name != "daskscope":
        return "daskscope"
    return os.path.relpath(called)


def _report_path(path: Path) -> Path:
    return path.with_suffix(".html")


def _report_progress(text: str) -> None:
    write_message(text, "daskscope demo")
