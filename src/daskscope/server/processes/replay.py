"""Replay one computation in a process of its own, with a limit on its memory and time.

A replay is Python code: in a thread of the server it would hold the interpreter lock for seconds, and delay the batches of every
cluster. Small computations are replayed in the server: starting a process takes a second.
"""

from __future__ import annotations

import logging
import os
from contextlib import closing
from typing import Literal

import msgspec

from daskscope import units
from daskscope.analysis.cost import Prices
from daskscope.analysis.what_if.predict import Options, WhatIf, what_if
from daskscope.errors import DaskscopeError
from daskscope.server.processes.child import ENVIRONMENT, ChildProcesses, run_job
from daskscope.server.rendering import JobError, Subject, describe_error, open_archive, raise_again, read
from daskscope.server.settings import Storage
from daskscope.storage.base.archive import Archive
from daskscope.storage.runs.read import Amount

logger = logging.getLogger("daskscope.server")

MODULE = "daskscope.server.processes.replay"
#: Computations with more tasks are replayed in a process of their own. A replay takes up to 24 µs of CPU time per task and number
#: of workers: eight of them, each as a range, hold the interpreter lock of the server for 0.8 s.
MAX_TASKS_HERE = 2_000
#: Memory of a replay, per task; and of a process without any. A tree of 100,000 tasks takes 35 MB. The rest is for tasks with many
#: dependencies, and for the profile, which is read with them.
TASK_NBYTES, PROCESS_NBYTES = 10_000, 512 * 1024 * 1024
#: The most tasks that the server replays take 20 s, and a busy machine and a slow object store get the rest.
REPLAY_S = 90.0
TOO_MUCH = "Its replay took too much time or memory."


class WhatIfJob(msgspec.Struct, frozen=True):
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
    memory_nbytes: int = 0
    storage: Storage | None = None


class WhatIfReply(msgspec.Struct, frozen=True):
    """The predictions, or the error."""

    found: WhatIf | None = None
    error: Literal["", "too large"] | JobError = ""
    detail: str = ""


class ReplayFailed(DaskscopeError):
    """The computation was not replayed. The message can be shown to anyone."""


class TooLarge(DaskscopeError):
    """The computation needs too much memory or time, or has too many executions."""


def answer(archive: Archive, job: WhatIfJob, limit: Amount | None = None) -> WhatIf:
    """Read the computation of a job, and replay it. Raise ``RunTooLarge`` if there is more to read than a limit."""
    recording, _, _ = read(archive, Subject(job.account, job.run, "", job.computation), limit)
    # The number of tasks in the catalog is the recorder's word for it.
    count = recording["tasks"].rows
    if count * max(1.0, 1 / job.options.chunks) > job.max_executions:
        raise TooLarge(f"This computation has {units.count(count)} executions.")
    return what_if(
        recording,
        workers=job.workers,
        threads=job.threads,
        options=job.options,
        computation=job.computation,
        prices=job.prices,
    )


def answer_in_process(processes: ChildProcesses, job: WhatIfJob) -> WhatIf:
    """Replay the computation of a job in another process."""
    ended = processes.run(MODULE, job, REPLAY_S, {**os.environ, **ENVIRONMENT})
    if ended is None:
        raise ReplayFailed("The server is shutting down. Try again in a minute.")
    try:
        reply = msgspec.json.decode(ended[0], type=WhatIfReply)
    except msgspec.DecodeError:
        # Killed by the system or by the time limit.
        logger.warning("the replay of a computation ended with status %d", ended[1])
        raise TooLarge(TOO_MUCH) from None
    if reply.found is not None:
        return reply.found
    raise_again(reply.error, reply.detail)
    if reply.error in ("too large", "memory"):
        raise TooLarge(reply.detail if reply.error == "too large" else TOO_MUCH)
    logger.error("a computation cannot be replayed: %s", reply.detail)
    raise ReplayFailed("This computation cannot be replayed. The server's log says why.")


def _reply(job: WhatIfJob) -> WhatIfReply:
    assert job.storage is not None
    try:
        with closing(open_archive(job.storage)) as archive:
            return WhatIfReply(answer(archive, job))
    except TooLarge as error:
        return WhatIfReply(error="too large", detail=str(error))
    except Exception as error:  # noqa: BLE001 (the server raises or logs it)
        kind, detail = describe_error(error)
        return WhatIfReply(error=kind, detail=detail)


if __name__ == "__main__":
    run_job(WhatIfJob, _reply, lambda job: job.memory_nbytes)
