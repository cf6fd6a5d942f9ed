"""Replay one computation in a process of its own, with a limit on its memory and time.

A replay is Python code: in a thread of the server it would hold the interpreter lock for seconds, and delay the batches of every
cluster. Small computations are replayed in the server: starting a process takes a second.
"""

from __future__ import annotations

import msgspec

from daskscope import units
from daskscope.analysis.cost import Prices
from daskscope.analysis.what_if.predict import Options, WhatIf, what_if
from daskscope.server.build_document import Subject, read
from daskscope.server.processes.job import Job, Kind, Reply, Runner, TooLarge, do_job, raise_again
from daskscope.storage.base.archive import Archive
from daskscope.storage.runs.read import Amount

#: Computations with more tasks are replayed in a process of their own. A replay takes up to 24 µs of CPU time per task and number
#: of workers: eight of them, each as a range, hold the interpreter lock of the server for 0.8 s.
MAX_TASKS_HERE = 2_000
#: Memory of a replay, per task; and of a process without any. A tree of 100,000 tasks takes 35 MB. The rest is for tasks with many
#: dependencies, and for the profile, which is read with them.
TASK_NBYTES, PROCESS_NBYTES = 10_000, 512 * 1024 * 1024


class WhatIfRequest(msgspec.Struct, frozen=True):
    """A question about a stored computation."""

    account: int
    run: int
    computation: str
    workers: list[int] | None
    threads: int | None
    options: Options
    prices: Prices | None
    #: Computations with more executions are refused.
    max_executions: int


#: The most tasks that the server replays take 20 s, and a busy machine and a slow object store get the rest.
REPLAY = Kind("daskscope.server.processes.replay", Job[WhatIfRequest], Reply[WhatIf], 90.0)


def answer(archive: Archive, request: WhatIfRequest, limit: Amount | None = None) -> WhatIf:
    """Read a computation, and replay it. Raise ``RunTooLarge`` if there is more to read than a limit."""
    recording, _, _ = read(archive, Subject(request.account, request.run, "", request.computation), limit)
    # The number of tasks in the catalog is the recorder's word for it.
    count = recording["tasks"].rows
    if count * max(1.0, 1 / request.options.chunks) > request.max_executions:
        raise TooLarge(f"This computation has {units.count(count)} executions.")
    return what_if(
        recording,
        workers=request.workers,
        threads=request.threads,
        options=request.options,
        computation=request.computation,
        prices=request.prices,
    )


def answer_apart(runner: Runner, request: WhatIfRequest, memory_nbytes: int) -> WhatIf:
    """Read and replay a computation in another process."""
    reply = runner.run_job(REPLAY, request, [memory_nbytes], request.account)
    if reply.result is not None:
        return reply.result
    raise_again(reply, "this computation cannot be replayed")
    raise TooLarge("Its replay took too much time or memory.")


if __name__ == "__main__":
    do_job(REPLAY, answer)
