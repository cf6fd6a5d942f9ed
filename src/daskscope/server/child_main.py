"""The main function of a process that does one job for the server: read the job, limit itself, and write the result.

The job is a line of standard input, the result is standard output. The process ends if the server does: its standard input is then
closed.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

import msgspec

Job = TypeVar("Job")

#: Added to the process's priority number: batches of other clusters go first.
NICE = 10


def run_job(
    kind: type[Job],
    do: Callable[[Job], object],
    memory_of: Callable[[Job], int],
    nice_of: Callable[[Job], int] = lambda _: NICE,
) -> None:
    """Read a job, do it with a limit on the memory, write its result, and end the process."""
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=kind)
    threading.Thread(target=_end_with_server, daemon=True).start()
    if os.name == "posix":
        os.nice(nice_of(job))
    limit_memory(memory_of(job))
    sys.stdout.buffer.write(msgspec.json.encode(do(job)))
    sys.stdout.buffer.flush()
    # The thread that reads standard input would keep the interpreter from ending.
    os._exit(0)


def limit_memory(nbytes: int) -> None:
    """Limit the memory of this process.

    Not its address space: pyarrow reserves gigabytes of that and uses little. Linux counts private writable pages as data; other
    systems have no such limit.
    """
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (nbytes, nbytes))


def _end_with_server() -> None:
    sys.stdin.buffer.read()
    os._exit(1)
