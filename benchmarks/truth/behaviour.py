"""What tasks of generated programs do, timed by themselves. Imports little: every worker process imports it.

A task is a list of steps. Each step takes a known time by construction, and measures itself: wall time, CPU time of its thread, and
how long it waited for a lock. A line per execution is appended to a file that daskscope never reads.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

#: Beginning of the names of modules that are imported by tasks.
MODULES = "late_"
#: Locks and memory that a worker process has so far.
_locks: dict[str, threading.Lock] = {}
_kept: list[bytearray] = []


@dataclass(frozen=True)
class Step:
    """One thing that a task does: its kind, seconds, a variant of the code, and where it is done."""

    kind: str
    seconds: float = 0.0
    variant: int = 0
    #: Name of a lock, port of a server, or number of bytes.
    at: str = ""


@dataclass(frozen=True)
class Work:
    """A task: its number in the program, its steps, the bytes of its result, and where it writes its times."""

    number: int
    steps: tuple[Step, ...]
    directory: str
    nbytes: int = 0


class PlannedError(Exception):
    """An error that the program raises on purpose."""


# ---------------------------------------------------------------- code that uses a core

#: What a core takes for a product of two matrices of 500 × 500.
MULTIPLY_S = 0.008


def _until(cpu_s: float, once: Callable[[], object]) -> None:
    """Repeat something until this thread has used its CPU time."""
    stop = time.thread_time() + cpu_s
    while time.thread_time() < stop:
        once()


def _count() -> int:
    total = 0
    for number in range(20_000):
        total += number & 3
    return total


def _group_words() -> dict[str, int]:
    words: dict[str, int] = {}
    for number in range(5_000):
        word = f"w{number % 97}"
        words[word] = words.get(word, 0) + 1
    return words


def _squares() -> list[int]:
    return [number * number % 7 for number in range(10_000)]


def _collatz() -> int:
    number, steps = 837_799, 0
    while number != 1:
        number = number // 2 if number % 2 == 0 else 3 * number + 1
        steps += 1
    return steps


#: Loops of Python code.
LOOPS: tuple[Callable[[], object], ...] = (_count, _group_words, _squares, _collatz)


def _held(variant: int) -> Callable[[], object]:
    """Return native code that keeps the interpreter lock for 5 to 50 ms a call."""
    import re

    text = b"Lorem ipsum DOLOR sit amet " * 300_000
    words, numbers = text[:1_500_000].decode(), [n * 7_919 % 100_003 for n in range(100_000)]
    pattern = re.compile(r"d[a-z]+r|s.t", re.IGNORECASE)
    return (
        lambda: text.lower(),
        lambda: pattern.findall(words),
        lambda: sorted(numbers),
        lambda: json.dumps(numbers),
        lambda: sum(range(500_000)),
    )[variant % 5]


def _free(variant: int) -> Callable[[], object]:
    """Return native code that gives up the interpreter lock."""
    import hashlib
    import zlib

    import numpy as np

    block = os.urandom(1 << 16) * 32
    array = np.arange(200_000, dtype=np.float64)
    return (
        lambda: hashlib.sha256(block).digest(),
        lambda: zlib.compress(block[: 1 << 19], 1),
        lambda: np.sqrt(array) + array * 2.0,
        lambda: np.sort(array[::-1]),
    )[variant % 4]


def _multiply(cpu_s: float) -> None:
    """Multiply matrices with all threads of the library, as often as one core does in about this time."""
    import numpy as np

    matrix = np.random.default_rng(0).random((500, 500))
    for _ in range(max(1, round(cpu_s / MULTIPLY_S))):
        matrix @ matrix


def compute(kind: str, seconds: float, variant: int = 0) -> None:
    """Use a core for this CPU time."""
    if kind == "loop":
        _until(seconds, LOOPS[variant % len(LOOPS)])
    elif kind == "held":
        _until(seconds, _held(variant))
    elif kind == "free":
        _until(seconds, _free(variant))
    else:
        _multiply(seconds)


# ---------------------------------------------------------------- code that waits


def _read_late_file(step: Step, work: Work) -> None:
    """Read a pipe whose writer comes late, as a file on slow storage."""
    path = Path(work.directory) / f"pipe-{work.number}-{time.monotonic_ns()}"
    os.mkfifo(path)
    writer = threading.Timer(step.seconds, path.write_bytes, (b"data",))
    writer.start()
    path.read_bytes()
    writer.join()
    path.unlink()


def ask_server(port: str, seconds: float) -> bytes:
    """Ask a server that answers after some time."""
    from http.client import HTTPConnection

    connection = HTTPConnection("127.0.0.1", int(port), timeout=30)
    connection.request("GET", f"/{seconds:.3f}")
    return connection.getresponse().read()


def _run_program(seconds: float) -> None:
    import subprocess

    subprocess.run(["sleep", f"{seconds:.3f}"], check=True)


def _in_pool(step: Step) -> None:
    """Let two threads of a pool do it, as libraries with readers of their own."""
    from concurrent.futures import ThreadPoolExecutor

    do: Callable[[], object] = (
        lambda: compute("free", step.seconds / 2),
        lambda: ask_server(step.at, step.seconds),
        lambda: time.sleep(step.seconds),
    )[step.variant % 3]
    with ThreadPoolExecutor(2) as pool:
        for job in [pool.submit(do) for _ in range(2)]:
            job.result()


def _acquire(step: Step) -> contextlib.AbstractContextManager[Any]:
    """Return a lock of all workers, of this process, or a semaphore."""
    if step.variant % 3 == 0:
        from distributed import Lock

        return Lock(step.at)
    if step.variant % 3 == 1:
        from distributed import Semaphore

        return Semaphore(max_leases=1, name=step.at)
    return _locks.setdefault(step.at, threading.Lock())


#: A module that takes long to import, half of it computing.
SLOW_MODULE = """
import time
from benchmarks.truth.behaviour import compute

compute("loop", {seconds} / 2)
time.sleep({seconds} / 2)
"""


def _load(step: Step, work: Work) -> None:
    """Import a module, which takes long the first time in a process; other threads that need it wait."""
    path = Path(work.directory) / f"{MODULES}{step.at}.py"
    if not path.exists():
        written = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        written.write_text(SLOW_MODULE.format(seconds=step.seconds))
        written.replace(path)
    if work.directory not in sys.path:
        sys.path.append(work.directory)
    importlib.invalidate_caches()
    importlib.import_module(path.stem)


def _keep(nbytes: int) -> None:
    block = bytearray(nbytes)
    block[::4096] = b"x" * len(block[::4096])
    _kept.append(block)


def load_modules(name: str) -> None:
    """Do in advance what tasks would do first."""
    sys.modules[f"{MODULES}{name}"] = ModuleType(f"{MODULES}{name}")


def _fail_first(step: Step, work: Work) -> None:
    path = Path(work.directory) / f"tried-{work.number}"
    if not path.exists():
        path.touch()
        raise PlannedError(f"the {step.at or 'storage'} did not answer")


def _do(step: Step, work: Work) -> float:
    """Do one step, and return how long it waited for a lock."""
    kind = step.kind
    if kind in ("loop", "held", "free", "blas"):
        compute(kind, step.seconds, step.variant)
    elif kind == "sleep":
        time.sleep(step.seconds)
    elif kind == "file":
        _read_late_file(step, work)
    elif kind == "http":
        ask_server(step.at, step.seconds)
    elif kind == "program":
        _run_program(step.seconds)
    elif kind == "pool":
        _in_pool(step)
    elif kind == "load":
        _load(step, work)
    elif kind == "keep":
        _keep(int(step.at))
    elif kind == "lock":
        began = time.perf_counter()
        with _acquire(step):
            waited = time.perf_counter() - began
            time.sleep(step.seconds)
        return waited
    elif kind == "fail first":
        _fail_first(step, work)
    elif kind == "fail":
        raise PlannedError("the input is wrong")
    else:
        raise ValueError(f"there is no step {kind!r}")
    return 0.0


# ---------------------------------------------------------------- tasks


class Log:
    """The times of one execution. The line is appended in one write, so that processes do not mix theirs."""

    def __init__(self, work: Work) -> None:
        self.work, self.start, self.cpu = work, time.time(), time.thread_time()
        self.steps: list[tuple[str, float, float, float]] = []

    def do(self, step: Step) -> None:
        wall, cpu, waited = time.perf_counter(), time.thread_time(), 0.0
        try:
            waited = _do(step, self.work)
        finally:
            self.steps.append((step.kind, time.perf_counter() - wall, time.thread_time() - cpu, waited))

    def write(self, ended: str) -> None:
        line = {
            "number": self.work.number,
            "start": self.start,
            "stop": time.time(),
            "cpu": time.thread_time() - self.cpu,
            "pid": os.getpid(),
            "thread": threading.get_ident(),
            "ended": ended,
            "steps": self.steps,
        }
        path = Path(self.work.directory) / "executions.jsonl"
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(handle, (json.dumps(line) + "\n").encode())
        finally:
            os.close(handle)


def run_task(work: Work, *_inputs: Any) -> bytes:
    """Do all steps, and return a result of the given size."""
    log = Log(work)
    for step in work.steps:
        if step.kind == "exit":
            _end_process(step, log)
            continue
        try:
            log.do(step)
        except PlannedError:
            log.write("error")
            raise
    result = os.urandom(1) * max(work.nbytes, 1)
    log.write("ok")
    return result


def _end_process(step: Step, log: Log) -> None:
    """End the worker process the first time this task runs."""
    path = Path(log.work.directory) / f"ended-{log.work.number}"
    if not path.exists():
        path.touch()
        log.do(Step("sleep", step.seconds))
        log.write("killed")
        os._exit(1)


async def run_async(work: Work, *_inputs: Any) -> bytes:
    """Do all steps on the event loop. Only sleeping is possible there."""
    log = Log(work)
    for step in work.steps:
        wall = time.perf_counter()
        await asyncio.sleep(step.seconds)
        log.steps.append(("sleep", time.perf_counter() - wall, 0.0, 0.0))
    log.write("ok")
    return b"done"


def run_nested(works: list[Work], prefix: str) -> int:
    """Submit tasks from a task, and wait for them."""
    from distributed import worker_client

    with worker_client() as client:
        return len(client.gather(client.map(run_task, works, key=[f"{prefix}-{work.number}" for work in works])))
