"""Run a generated program on a real cluster, with its own timers and with a recorder."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from dask.delayed import delayed
from distributed import Client, LocalCluster, wait
from distributed import TimeoutError as DaskTimeoutError

import daskscope
from benchmarks.truth import behaviour
from benchmarks.truth.behaviour import Work
from benchmarks.truth.program import PORT, Planned, Program
from benchmarks.truth.timers import Timers
from daskscope.model.recording import Recording

#: A program that takes longer than this is broken. One whose tasks cannot run is given up after the shorter time.
LIMIT_S, GIVE_UP_S = 60.0, 3.0


@dataclass(frozen=True)
class Observed:
    """A run: what daskscope recorded, and what the program measured."""

    recording: Recording
    timers: Timers


def observe(program: Program, path: Path | None = None) -> Observed:
    """Run a program on a new cluster, and keep the recording if a path is given."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        port = stack.enter_context(late_server())
        cluster = LocalCluster(
            n_workers=program.workers,
            threads_per_worker=program.threads,
            dashboard_address=":0",
            memory_limit=0,
            silence_logs=50,
        )
        stack.enter_context(cluster)
        clients = [stack.enter_context(Client(cluster)) for _ in range(program.clients)]
        # Workers import what tasks need, except for what the program itself loads late.
        wait(clients[0].map(behaviour.compute, ["free"] * 20, [0.001] * 20, pure=False))
        for name in program.preload:
            clients[0].run(behaviour.load_modules, name)
        with (
            neighbours(program.neighbours),
            daskscope.record(path or directory / "run.daskscope", clients[0]) as recorded,
        ):
            start = time.time()
            submitted = Submission(program, clients, directory, port).run()
            stop = time.time()
        timers = Timers.read(program, directory, submitted, start, stop)
        return Observed(recorded.recording, timers)


class Submission:
    """The client of a program: it submits batch by batch, and waits."""

    def __init__(self, program: Program, clients: list[Any], directory: Path, port: int) -> None:
        self.program, self.clients, self.directory, self.port = program, clients, directory, port
        self.places = sorted(clients[0].scheduler_info(n_workers=-1)["workers"])
        self.futures: dict[int, Any] = {}
        self.submitted: dict[int, float] = {}

    def run(self) -> dict[int, float]:
        batches = sorted({task.batch for task in self.program.tasks})
        for batch in batches:
            if batch:
                time.sleep(self.program.pause_s)
            tasks = [task for task in self.program.tasks if task.batch == batch]
            (self._submit_graph if self.program.style == "graph" else self._submit_each)(tasks)
            self._wait(GIVE_UP_S if any(task.resource for task in tasks) else LIMIT_S)
        return self.submitted

    def _wait(self, limit_s: float) -> None:
        try:
            wait(list(self.futures.values()), timeout=limit_s)
        except (DaskTimeoutError, TimeoutError):
            if limit_s == LIMIT_S:
                raise
            self.clients[0].cancel(list(self.futures.values()))

    def _work(self, task: Planned) -> Work:
        steps = tuple(replace(step, at=str(self.port)) if step.at == PORT else step for step in task.steps)
        return Work(task.number, steps, str(self.directory), task.nbytes)

    def _submit_each(self, tasks: list[Planned]) -> None:
        nests: dict[int, list[Planned]] = {}
        for task in tasks:
            if task.nest is not None:
                nests.setdefault(task.nest, []).append(task)
                continue
            client = self.clients[task.number % len(self.clients)]
            options: dict[str, Any] = {"retries": task.retries, "key": f"{task.prefix}-{task.number}"}
            if task.worker is not None:
                options["workers"] = [self.places[task.worker % len(self.places)]]
            if task.resource:
                options["resources"] = {task.resource: 1}
            self.submitted[task.number] = time.time()
            inputs = [self.futures[number] for number in task.inputs]
            function = behaviour.run_async if self.program.is_async else behaviour.run_task
            self.futures[task.number] = client.submit(function, self._work(task), *inputs, **options)
        for nest, members in nests.items():
            works = [self._work(task) for task in members]
            now = time.time()
            self.submitted.update((task.number, now) for task in members)
            self.futures[-1 - nest] = self.clients[0].submit(
                behaviour.run_nested, works, members[0].prefix, key=f"submit-{nest}"
            )

    def _submit_graph(self, tasks: list[Planned]) -> None:
        made: dict[int, Any] = {}
        for task in tasks:
            inputs = [made.get(number, self.futures.get(number)) for number in task.inputs]
            ballast = [bytes(task.ballast)] if task.ballast else []
            made[task.number] = delayed(behaviour.run_task)(
                self._work(task), *inputs, *ballast, dask_key_name=f"{task.prefix}-{task.number}"
            )
        numbers = list(made)
        self.submitted.update(dict.fromkeys(numbers, time.time()))
        self.futures.update(zip(numbers, self.clients[0].compute([made[n] for n in numbers]), strict=True))


@contextmanager
def late_server() -> Iterator[int]:
    """Serve answers that come as late as the path says."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            time.sleep(float(self.path[1:]))
            self.send_response(200)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"done")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """Run programs that use a core each, for at most a minute."""
    code = "import time\nstop = time.time() + 60\nwhile time.time() < stop: pass"
    others = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            with contextlib.suppress(ProcessLookupError):
                other.kill()
            other.wait()
