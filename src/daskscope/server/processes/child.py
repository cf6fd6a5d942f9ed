"""Processes that do one job each for the server: start them, and what they run.

A job is a line of standard input, a reply is standard output. A process ends if the server does: its standard input is then closed.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

#: Return whole columns to the system as soon as they are freed, and reuse what is smaller. The default allocators keep most of what
#: the reading of each column freed. With a threshold of 256 kB, a third of the time went into empty pages from the system.
#: OpenMP and OpenBLAS start no threads, which reserve memory.
ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": str(4 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(8 << 20),
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
_used = threading.local()

#: Added to the priority number of processes: requests of others go first.
NICE = 10
#: Lowers the priority before anything is imported: that takes 0.7 s of CPU time.
START = """
import os, runpy, sys
if os.name == "posix":
    os.nice(int(sys.argv.pop(1)))
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


def take_child_cpu_s() -> float:
    """Return the CPU seconds of processes that this thread ran since the last call. The account that asked for them is charged."""
    seconds: float = getattr(_used, "seconds", 0.0)
    _used.seconds = 0.0
    return seconds


class MemoryBudget:
    """Memory for work that needs much of it. Work that does not fit waits for other work to end.

    An account that has some gets no more than half of it: two queries of one account would keep all other accounts waiting.
    """

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self._used: Counter[int] = Counter()
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def reserve(self, nbytes: int, account: int) -> Iterator[None]:
        """Reserve memory for an account during a block. What needs more than there is runs alone."""
        amount = min(nbytes, self.nbytes)

        def has_room() -> bool:
            mine = self._used[account]
            return self._used.total() + amount <= self.nbytes and (not mine or mine + amount <= self.nbytes // 2)

        with self._changed:
            self._changed.wait_for(has_room)
            self._used[account] += amount
        try:
            yield
        finally:
            with self._changed:
                self._used[account] -= amount
                # Drop zeros: accounts come and go.
                self._used += Counter()
                self._changed.notify_all()


class Child:
    """A running process. Methods return nothing once it has ended."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._lock = threading.Lock()
        self._has_ended = False

    @property
    def status(self) -> int:
        """Return the exit status after the end."""
        return int(self._process.returncode or 0)

    def send(self, job: object) -> bool:
        """Send a job. Return whether the process is there to read it."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode(job) + b"\n")
            self._process.stdin.flush()
        except OSError:
            return False
        return True

    def read_line(self) -> bytes:
        """Return the next reply; empty if the process ended before it."""
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def read_all(self) -> bytes:
        """Return everything up to the end of the process."""
        assert self._process.stdout is not None
        return self._process.stdout.read()

    def kill(self) -> None:
        """End the process. One that has ended keeps its status."""
        with self._lock:
            if self._has_ended:
                return
            if sys.platform == "win32":
                self._process.kill()
            else:
                # Popen.kill would collect the status of an ended process, and with it the CPU time.
                os.kill(self._process.pid, signal.SIGKILL)

    def wait(self) -> None:
        """Wait for the end of the process."""
        if sys.platform == "win32":
            self._process.wait()
        else:
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)

    def close(self) -> float:
        """Kill the process, and return the CPU seconds that it used; 0 where the system does not say."""
        self.kill()
        self.wait()
        seconds = 0.0
        with self._lock:
            self._has_ended = True
            if sys.platform != "win32":
                _, status, usage = os.wait4(self._process.pid, 0)
                self._process.returncode = os.waitstatus_to_exitcode(status)
                seconds = usage.ru_utime + usage.ru_stime
        for pipe in (self._process.stdin, self._process.stdout):
            # What was not read by a process that ended cannot be flushed.
            with contextlib.suppress(OSError):
                assert pipe is not None
                pipe.close()
        return seconds


class ChildProcesses:
    """The running processes of one server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[Child] = set()
        self._closed = False

    @contextlib.contextmanager
    def start(
        self,
        module: str,
        timeout_s: float,
        environment: Mapping[str, str],
        directory: Path | None = None,
        nice: int = NICE,
    ) -> Iterator[Child | None]:
        """Run a module during a block, at most for ``timeout_s``; None if the server stops."""
        child = self._start([str(nice), module], environment, directory)
        if child is None:
            yield None
            return
        timer = threading.Timer(timeout_s, child.kill)
        timer.start()
        try:
            yield child
        finally:
            timer.cancel()
            _used.seconds = getattr(_used, "seconds", 0.0) + child.close()
            with self._lock:
                self._running.discard(child)

    def run(
        self,
        module: str,
        job: object,
        timeout_s: float,
        environment: Mapping[str, str],
        directory: Path | None = None,
        nice: int = NICE,
    ) -> tuple[bytes, int] | None:
        """Run a module with a job to its end; return its output and status, or None if the server stops."""
        with self.start(module, timeout_s, environment, directory, nice) as child:
            if child is None:
                return None
            # The pipe stays open: its end tells the process that the server is gone.
            text = child.read_all() if child.send(job) else b""
            child.wait()
        return None if self._closed else (text, child.status)

    def _start(self, arguments: list[str], environment: Mapping[str, str], directory: Path | None) -> Child | None:
        with self._lock:
            if self._closed:
                return None
            process = subprocess.Popen(
                [sys.executable, "-c", START, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=dict(environment),
                cwd=directory,
            )
            child = Child(process)
            self._running.add(child)
        return child

    def close(self) -> None:
        """End all processes, and start no more."""
        with self._lock:
            self._closed = True
            for child in self._running:
                child.kill()


MIN_FREE_NBYTES = 33 * 1024 * 1024


def reply_to_jobs(reply: Callable[[bytes], object]) -> None:
    """Reply to one job after another, until the server ends this process."""
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_lines, args=(lines,), daemon=True).start()
    while True:
        sys.stdout.buffer.write(msgspec.json.encode(reply(lines.get())) + b"\n")
        sys.stdout.buffer.flush()


def _read_lines(lines: queue.SimpleQueue[bytes]) -> None:
    for line in sys.stdin.buffer:
        lines.put(line)
    os._exit(1)


def limit_time(seconds: float) -> None:
    """Let the system end this process if it uses more CPU time than this from now on, or still does this job 10 s after that.

    A thread that cannot start for want of memory makes Python wait without end.
    """
    if sys.platform == "linux":
        import resource

        signal.alarm(math.ceil(seconds) + 10)
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + seconds), hard))


def limit_memory(nbytes: int) -> None:
    """Limit the memory of this process.

    Not its address space: pyarrow reserves gigabytes of that and uses little. Linux counts private writable pages as data; other
    systems have no such limit. Raise ``MemoryError`` if there is hardly any left: a small job would succeed with free parts of
    what the process has, or not, by chance.
    """
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (nbytes, nbytes))
        # More than malloc ever takes from its free parts. The pages are not touched, so this takes no memory.
        bytes(MIN_FREE_NBYTES)
