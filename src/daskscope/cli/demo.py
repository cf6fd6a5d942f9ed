"""Run a workload worth looking at on a cluster of its own, record it, and show it: here, and at a server of its own."""

from __future__ import annotations

import argparse
import importlib.util
import logging
import runpy
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dask.config
import distributed

import daskscope
from daskscope import analytics
from daskscope.analysis.summary import summarise
from daskscope.cli.output import on_terminal, open_output
from daskscope.cli.show_sections import show_summary
from daskscope.client.reports import upload_file
from daskscope.report.document import report_page
from daskscope.server.settings import Settings
from daskscope.wire.file import read_recording

WORKLOAD = Path(__file__).with_name("demo_workload.py")
START = "import sys; from daskscope.cli.main import main; sys.exit(main(sys.argv[1:]))"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output", default="demo.daskscope", metavar="PATH", help="where the recording goes (default: %(default)s)"
    )
    parser.add_argument(
        "--serve",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="keep the server running until Ctrl-C (default: on a terminal)",
    )


def run(args: argparse.Namespace) -> int:
    # What Dask has to say about the task that fails and the worker that dies is in the recording.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    path = Path(args.output)
    data = path.with_name(f"{path.stem}-server")
    with _server(data) as (server, url):
        addresses = _work(path, url)
        _show(path)
        if server is not None and addresses is not None:
            _keep(server, data, addresses, serve=on_terminal() if args.serve is None else args.serve)
    return 0


def _work(path: Path, url: str) -> tuple[str, str] | None:
    """Run and record the workload; the addresses of its report and of its cluster at the server, where there is one."""
    silent = {"silence_logs": logging.CRITICAL, "dashboard_address": None}
    # Under a name of its own: Dask takes everything called dask… for a library and would not show its code.
    steps = runpy.run_path(str(WORKLOAD), run_name="demo")["STEPS"]
    _say("starting a cluster of 3 workers")
    with (
        dask.config.set({"daskscope.server": url or None, "daskscope.name": "demo"}),
        distributed.LocalCluster(n_workers=3, threads_per_worker=2, memory_limit="1 GiB", **silent) as cluster,
        distributed.Client(cluster) as client,
    ):
        if url:
            analytics.register(client)
        with daskscope.record(path, client=client, name="demo"):
            for number, (title, step) in enumerate(steps, 1):
                _say(f"{number}/{len(steps)} {title}")
                step(client)
        _say("done")
        if not url:
            return None
        sent = upload_file(path, title="demo")
        page = f"{url}/local/clusters/{client.scheduler_info()['id']}"
    return str(sent["url"]), page


def _show(path: Path) -> None:
    recording = read_recording(path)
    show_summary(summarise(recording), open_output(), top=10)
    report = path.with_suffix(".html")
    report.write_bytes(report_page(recording, title=path.stem))
    _say(f"recorded in {path} ({path.stat().st_size / 1e3:.0f} kB). Look at it again with: daskscope show {path}")
    _say(f"the report is {report.resolve()} ({report.stat().st_size / 1e3:.0f} kB). Open it in a browser.")


@contextmanager
def _server(data: Path) -> Iterator[tuple[subprocess.Popen[str] | None, str]]:
    """A server of its own, and its address; none where what it needs is not installed."""
    if any(importlib.util.find_spec(name) is None for name in ("uvicorn", "starlette", "sqlalchemy", "pyarrow")):
        _say("for a server as well: pip install 'daskscope[server]'")
        yield None, ""
        return
    command = [sys.executable, "-c", START, "serve", "--port", str(_port()), "--data", str(data)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(30)


def _port() -> int:
    """The port a server has by default, so that the addresses hold when it is started again; any, where it is taken."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", Settings.port))
        except OSError:
            return 0
    return Settings.port


def _keep(server: subprocess.Popen[str], data: Path, addresses: tuple[str, str], *, serve: bool) -> None:
    report, page = addresses
    _say(f"the server has the report, too: {report}")
    if not serve:
        _say(f"start the server again with: daskscope serve --data {data}")
    else:
        _say("the server runs until you press Ctrl-C")
    _say(f"everything about the cluster: {page}")
    if serve:
        try:
            server.wait()
        except KeyboardInterrupt:
            pass


def _say(text: str) -> None:
    sys.stderr.write(f"daskscope demo: {text}\n")
    sys.stderr.flush()
