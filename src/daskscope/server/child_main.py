"""The main function of a process that does one job for the server: read the job, limit itself, and write the result.

The job is a line of standard input, the result is standard output. The process ends if the server does: its standard input is then
closed.
"""

from __future__ import annotations

import math
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import msgspec

Job = TypeVar("Job")

MIN_FREE_NBYTES = 33 * 1024 * 1024


def run_job(kind: type[Job], do: Callable[[Job], object], memory_of: Callable[[Job], int]) -> None:
    """Read a job, do it with a limit on the memory, write its result, and end the process."""
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=kind)
    threading.Thread(target=_end_with_server, daemon=True).start()
    limit_memory(memory_of(job))
    sys.stdout.buffer.write(msgspec.json.encode(do(job)))
    sys.stdout.buffer.flush()
    # The thread that reads standard input would keep the interpreter from ending.
    os._exit(0)


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


def _end_with_server() -> None:
    sys.stdin.buffer.read()
    os._exit(1)
