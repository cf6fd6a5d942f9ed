"""Measure following a running cluster: our live view beside Dask's own task stream page, in the same Chromium.

The cluster is a scheduler and two workers in processes of their own. Every task returns when it ended, by the clock that the
browser also uses. A task is shown in the first frame after it was drawn, on both pages.
"""

from __future__ import annotations

import http.client
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask.config
import distributed
import numpy as np
import psutil

from benchmarks import synthetic
from benchmarks.ingest import START
from benchmarks.report import CHROMIUM, FLAGS
from benchmarks.result import Result, at_most
from daskscope import analytics
from daskscope.collector.delivery.pace import HANDOVER_S, WORKING_S, Pace
from daskscope.model.recording import Lists
from daskscope.testing import make_frames
from daskscope.wire.encode import encode_body, seal
from daskscope.wire.file import columns_of_rows, frames_of_table

TASKS = 20_000
TASK_S = 0.004
WINDOW = {"width": 1280, "height": 900}
#: Tasks of the large run before it is followed, and per second then.
MANY = 1_000_000
RATE = 100
FOLLOW_S = 30

#: Notes each drawing of our live view with the number of executions it shows, in the frame after it.
OURS = """
window.draws = [];
new PerformanceObserver((list) => {
  for (const mark of list.getEntriesByName("daskscope-live-drawn"))
    requestAnimationFrame(() => window.draws.push([Date.now(), mark.detail]));
}).observe({ type: "mark" });
window.applied = [];
new PerformanceObserver((list) => {
  for (const one of list.getEntriesByName("daskscope-live-increment")) window.applied.push(one.duration);
}).observe({ type: "measure" });
"""
#: Notes each key in the data of Dask's task stream, in the frame after it was first seen: Bokeh has drawn it then.
DASKS = """() => {
  const models = [...Bokeh.documents].flatMap((doc) => [...doc._all_models.values()]);
  const source = models.find((model) => model.data && model.get_array && model.data.start && model.data.key);
  window.seen = new Map();
  window.known = new Set();
  const look = () => {
    const keys = source.get_array("key");
    const found = [];
    for (let i = keys.length - 1; i >= 0 && !window.known.has(keys[i]); i--) found.push(keys[i]);
    for (const key of found) window.known.add(key);
    requestAnimationFrame(() => {
      for (const key of found) window.seen.set(key, Date.now());
      look();
    });
  };
  look();
}"""


def work(number: int) -> tuple[int, float]:
    """Take a few milliseconds; return when it ended."""
    time.sleep(TASK_S)
    return number, time.time()


@dataclass
class Cluster:
    """A scheduler in a process of its own, and a client."""

    client: distributed.Client
    scheduler: psutil.Process
    dashboard: str


@contextmanager
def _cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        file = Path(directory) / "scheduler.json"
        here = {"cwd": str(Path.cwd()), "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
        scheduler = subprocess.Popen(
            [*command, "--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(file)], **here
        )  # type: ignore[call-overload]
        stack.callback(_end, scheduler)
        while not (file.exists() and file.stat().st_size):
            time.sleep(0.05)
        for _ in range(2):
            command = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file)]
            worker = subprocess.Popen([*command, "--nthreads", "2", "--no-dashboard", "--no-nanny"], **here)  # type: ignore[call-overload]
            stack.callback(_end, worker)
        client = stack.enter_context(distributed.Client(scheduler_file=str(file)))
        client.wait_for_workers(2)
        port = client.scheduler_info()["services"]["dashboard"]
        yield Cluster(client, psutil.Process(scheduler.pid), f"http://127.0.0.1:{port}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()


@contextmanager
def _server() -> Iterator[tuple[str, str, psutil.Process]]:
    """Yield the URL of a new server, its secret, and its process."""
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-c", START, "serve", "--port", "0", "--data", directory]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert process.stdout is not None
            url, _, secret = process.stdout.readline().strip().partition("/?secret=")
            yield url, secret, psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait(30)


@dataclass
class Watched:
    """What one run of the workload cost."""

    scheduler_us: float
    rate: float
    #: CPU seconds of the page's process, and of our server per second; seconds from the end of each task to its bar.
    page_s: float = 0.0
    server: float = 0.0
    lags: list[float] = field(default_factory=list)


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _renderers(browser: Any) -> list[psutil.Process]:
    found = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    return [psutil.Process(int(one["id"])) for one in found if one["type"] == "renderer"]


def _watch(variant: str, browser: Any, server: tuple[str, str, psutil.Process]) -> Watched:
    with _cluster() as cluster, browser.new_context(viewport=WINDOW) as context:
        url, secret, process = server
        page = context.new_page()
        if variant in ("recorder", "our page"):
            with dask.config.set({"daskscope.server": url}):
                place = str(analytics.register(cluster.client))
        cluster.client.gather(cluster.client.map(work, range(100), pure=False))
        if variant == "our page":
            page.add_init_script(OURS)
            page.goto(f"{place}?secret={secret}")
            page.wait_for_function("() => window.draws.some(([, count]) => count >= 100)", timeout=60_000)
            page.goto(f"{place}?window=30s")
            page.wait_for_function("() => window.draws.some(([, count]) => count >= 100)", timeout=60_000)
        elif variant == "Dask's page":
            page.goto(f"{cluster.dashboard}/individual-task-stream")
            page.wait_for_function(
                "() => window.Bokeh && Bokeh.documents.length > 0 && document.querySelector('.bk-Figure')"
            )
            time.sleep(2.0)
            page.evaluate(DASKS)
        renderers = _renderers(browser)
        before, page_before = _cpu_s(cluster.scheduler), sum(map(_cpu_s, renderers))
        began, served = time.time(), _cpu_s(process)
        futures = cluster.client.map(work, range(TASKS), pure=False)
        ended = {future.key: at for future, (_, at) in zip(futures, cluster.client.gather(futures), strict=True)}
        took = max(ended.values()) - began
        scheduler = (_cpu_s(cluster.scheduler) - before) / TASKS * 1e6
        time.sleep(4.0)
        served = (_cpu_s(process) - served) / (time.time() - began)
        watched = Watched(scheduler, TASKS / took, sum(map(_cpu_s, renderers)) - page_before, served)
        if variant == "our page":
            watched.lags = _our_lags(page.evaluate("window.draws"), list(ended.values()))
        elif variant == "Dask's page":
            seen = page.evaluate("[...window.seen]")
            watched.lags = [at / 1000 - ended[key] for key, at in seen if key in ended]
        return watched


def _our_lags(draws: list[tuple[float, int]], ended: list[float]) -> list[float]:
    """Return the lag of each task: the n-th task that ended is on the screen when a drawing shows n tasks."""
    first = 100
    counts = [count for _, count in draws]
    places = (bisect_left(counts, first + n + 1) for n in range(len(ended)))
    return [draws[place][0] / 1000 - at for place, at in zip(places, sorted(ended), strict=True) if place < len(draws)]


def run() -> list[Result]:
    from playwright.sync_api import sync_playwright

    with _server() as (url, secret, server), sync_playwright() as playwright:
        dask.config.set({"daskscope.token": ""})
        watched: dict[str, Watched] = {}
        for variant in ("neither", "recorder", "Dask's page", "our page"):
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            watched[variant] = _watch(variant, browser, (url, secret, server))
            browser.close()
            print(f"    {variant}: {watched[variant].rate:.0f} tasks/s", file=sys.stderr, flush=True)
        results = _compared(watched)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        results += _many(browser, url, secret, server)
        browser.close()
    return results


def _compared(watched: dict[str, Watched]) -> list[Result]:
    ours, dasks = watched["our page"], watched["Dask's page"]
    (a50, a95), (d50, d95) = (np.quantile(one.lags, (0.5, 0.95)).tolist() for one in (ours, dasks))
    costs = {name: one.scheduler_us for name, one in watched.items()}
    shown = f"{len(ours.lags):,} of {TASKS:,} tasks; Dask's page {len(dasks.lags):,}"
    return [
        at_most(
            "live: end of a task to its bar, median, over Dask's page",
            a50 / d50,
            1,
            "×",
            f"{a50:.2f} s and {d50:.2f} s; {shown}",
        ),
        at_most("live: the same, 95 %", a95 / d95, 1, "×", f"{a95:.2f} s and {d95:.2f} s"),
        at_most(
            "live: scheduler CPU with our page, over Dask's page",
            costs["our page"] / costs["Dask's page"],
            1,
            "×",
            "; ".join(f"{name} {us:.0f} µs a task" for name, us in costs.items()),
        ),
        at_most(
            "live: CPU of our page, over Dask's page",
            ours.page_s / dasks.page_s,
            1,
            "×",
            f"{ours.page_s:.1f} s and {dasks.page_s:.1f} s",
        ),
        Result(
            "live: CPU of the server while our page is open, of one core",
            f"{ours.server * 100:.1f} %",
            note=f"{watched['recorder'].server * 100:.1f} % without a page, at {ours.rate:.0f} tasks/s",
        ),
    ]


# ---------------------------------------------------------------- a large run


class LargeRun:
    """A simulated recorder of a cluster that has a million tasks already."""

    def __init__(self, url: str, secret: str) -> None:
        self.connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
        self.headers = {"Authorization": f"Bearer {secret}"}
        recording = synthetic.recording(MANY)
        tasks, now = recording["tasks"], time.time_ns() // 1000
        shift = now - int(tasks["stop_us"].max())
        for name in ("assigned_us", "start_us", "stop_us"):
            tasks.columns[name] = tasks[name] + shift
        for name in ("interval_start_us", "interval_stop_us"):
            intervals = tasks.lists(name)
            assert isinstance(intervals.flat, np.ndarray)
            tasks.columns[name] = Lists(intervals.offsets, intervals.flat + shift)
        cluster = {"cluster": "many", "name": "many", "start_us": int(tasks["start_us"].min()), "seen_us": now}
        frames = make_frames({"clusters": [cluster]}, cluster="many")
        frames += frames_of_table(recording["workers"], cluster="many", epoch=1, sequence=len(frames), kept=0)
        frames += frames_of_table(tasks, cluster="many", epoch=1, sequence=len(frames), kept=tasks.rows)
        for frame in frames:
            self.send(frame)
        self.kept, self.sequence = tasks.rows, len(frames)
        self.workers = [str(name) for name in recording["workers"]["worker"][:20]]

    def send(self, frame: bytes) -> None:
        try:
            self.connection.request("POST", "/api/v1/ingest", frame, self.headers)
            response = self.connection.getresponse()
        except (http.client.HTTPException, OSError):
            # Servers close idle connections.
            self.connection.close()
            self.connection.request("POST", "/api/v1/ingest", frame, self.headers)
            response = self.connection.getresponse()
        text = response.read()
        assert response.status == 200, text[:300]

    def post(self, rows: int) -> None:
        """Send executions that have just ended."""
        stop = time.time_ns() // 1000
        ended = [
            {"key": f"live-{self.kept + n}", "prefix": "live", "group": "live", "worker": self.workers[n % 20], "thread": 1,
             "status": "ok", "start_us": stop - 40_000, "stop_us": stop}
            for n in range(rows)
        ]  # fmt: skip
        self.kept += rows
        body = encode_body("tasks", columns_of_rows("tasks", ended))
        self.send(seal(body, cluster="many", epoch=1, sequence=self.sequence, kept=self.kept, dropped=0))
        self.sequence += 1

    def stream(self, server: psutil.Process, is_due: Callable[[float, int], bool]) -> float:
        """Send tasks at the rate, when a recorder would; return the CPU seconds of the server per second."""
        began = posted = time.monotonic()
        before, sent = _cpu_s(server), 0
        while (now := time.monotonic()) - began < FOLLOW_S:
            waiting = int((now - began) * RATE) - sent
            if is_due(now - posted, waiting):
                self.post(waiting)
                posted, sent = now, sent + waiting
            time.sleep(HANDOVER_S)
        return (_cpu_s(server) - before) / (time.monotonic() - began)


def _many(browser: Any, url: str, secret: str, server: psutil.Process) -> list[Result]:
    """Follow a run that has a million tasks already."""
    run = LargeRun(url, secret)
    alone = run.stream(server, lambda since_s, _: since_s >= WORKING_S)
    with browser.new_context(viewport=WINDOW) as context:
        page = context.new_page()
        page.add_init_script(OURS)
        opened = time.monotonic()
        page.goto(f"{url}/local/clusters/many?secret={secret}")
        page.wait_for_function("() => window.draws.some(([, count]) => count >= 100)", timeout=120_000)
        opened = time.monotonic() - opened
        followed = run.stream(server, Pace.is_handover_due)
        # The first one has ten minutes of tasks.
        first, *applied = page.evaluate("window.applied")
        memory = max(one.memory_info().rss for one in _renderers(browser)) / 1e6
    note = f"{len(applied)} increments; the first, of ten minutes, {first:.0f} ms, on the screen after {opened:.1f} s"
    return [
        at_most(
            f"live, {MANY:,} tasks so far: applying an increment, 95 %",
            float(np.quantile(applied, 0.95)),
            50,
            " ms",
            note,
        ),
        at_most(f"live, {MANY:,} tasks so far: memory of the page's process", memory, 300, " MB"),
        at_most(
            f"live, {MANY:,} tasks so far: CPU of the server for the page, of one core",
            (followed - alone) * 100,
            5,
            " %",
            f"{followed * 100:.1f} % with and {alone * 100:.1f} % without the page, at {RATE} tasks/s",
        ),
    ]
