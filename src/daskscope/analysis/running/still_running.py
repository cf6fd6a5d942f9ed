"""Explain why a cluster is still running: one sentence, and the evidence for it.

Dask's idle timer does not start while a task is queued, processing or unrunnable. A single task that requests a resource no
worker has keeps a cluster alive indefinitely, and Dask does not report it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from daskscope import units
from daskscope.model.states import LIVE_STATES, RunState
from daskscope.model.untrusted import parse_object

#: Smaller clock differences are not reported: a batch may take as long to arrive.
CLOCK_TOLERANCE_US = 5_000_000
#: The recorder of an idle cluster sends a message every 30 s at most, and one of them may be late.
QUIET_US = 45_000_000
#: Tasks that wait this long while nothing runs are stuck.
STALLED_US = 10_000_000
#: Tasks that run for so long may be long, or wait for each other: nothing says that they make progress.
NO_PROGRESS_US = 20_000_000
NO_TIMEOUT = "No idle-timeout is set"
#: Clients and resources listed by name.
MAX_LISTED = 5


@dataclass(frozen=True, slots=True)
class RunStatus:
    """What a server knows about a run at the moment; times are on the scheduler's clock, except ``received_us``."""

    start_us: int = 0
    seen_us: int = 0
    received_us: int = 0
    end_us: int = 0
    end_reason: str = ""
    close_us: int = 0
    clock_offset_us: int = 0
    idle_since_us: int = 0
    idle_timeout_s: float = 0.0
    last_work_us: int = 0
    tasks_processing: int = 0
    tasks_queued: int = 0
    tasks_unrunnable: int = 0
    unrunnable_needs: str = ""
    workers: int = 0
    threads: int = 0
    tasks_executing: int = 0
    workers_paused: int = 0
    stalled_since_us: int = 0
    peak_workers: int = 0
    peak_threads: int = 0
    peak_memory_limit: int = 0


@dataclass(frozen=True, slots=True)
class ClientStatus:
    """A client of a run."""

    client: str
    connect_us: int = 0
    disconnect_us: int = 0
    last_seen_us: int = 0
    held_keys: int = 0
    held_nbytes: int = 0


@dataclass(frozen=True)
class Explanation:
    """The answer in one sentence, the evidence line by line, and suggestions."""

    answer: str
    evidence: tuple[str, ...]
    advice: tuple[str, ...]


def explain(
    run: RunStatus,
    clients: Sequence[ClientStatus],
    state: RunState,
    per_hour: float,
    now_us: int,
    quiet_us: int = QUIET_US,
) -> Explanation:
    """Explain the state of a run; ``now_us`` is on the scheduler's clock. A silence beyond ``quiet_us`` is unusual."""
    if state == "lost":
        quiet = units.duration(_silent_us(run, now_us))
        return Explanation(
            f"Probably not running: its last message came {quiet} ago. The scheduler was killed or cannot reach this server.",
            (f"last message {units.moment(run.seen_us)}", *_peak(run), *_clock(run)),
            ("Check whether the scheduler's process and machine are still up.",),
        )
    if state not in LIVE_STATES:
        return _ended(run, now_us)
    # Dask lists fire-and-forget tasks under a client of its own, which exists even when it holds nothing.
    present = [client for client in clients if not client.disconnect_us]
    connected = [client for client in present if client.client != "fire-and-forget" or client.held_keys]
    silent_us = _silent_us(run, now_us)
    silence = [f"no message for {units.duration(silent_us)}: the scheduler may be gone"] if silent_us > quiet_us else []
    evidence = [
        *silence,
        *_tasks(run),
        *_clients(connected, now_us),
        *_idleness(run, now_us),
        *_clock(run),
    ]
    if per_hour > 0:
        evidence.append(f"costs {units.about_dollars(per_hour)} per hour")
    answer = " ".join([_answer(run, now_us), *(f"But {line}." for line in silence)])
    return Explanation(answer, tuple(evidence), tuple(_advice(run, connected, now_us)))


def _silent_us(run: RunStatus, now_us: int) -> int:
    """Return the time since the last message arrived. The rows in it can be older: an idle cluster sends them after 30 s."""
    offset_us = run.clock_offset_us
    heard_us = max(run.seen_us, run.received_us - offset_us) if offset_us else run.seen_us
    return max(0, now_us - heard_us)


def describe_state(run: RunStatus, state: RunState, now_us: int) -> str:
    """Return in a few words why a run is in its state; ``now_us`` is on the scheduler's clock."""
    if state == "lost":
        quiet = units.duration(_silent_us(run, now_us))
        return f"no message for {quiet}: it was killed, or it cannot reach this server"
    if state not in LIVE_STATES:
        return run.end_reason or "closed"
    if state == "idle":
        return "no task is running or waiting"
    if busy := run.tasks_processing + run.tasks_queued:
        return f"{units.counted(busy, 'task')} running or waiting"
    if run.tasks_unrunnable:
        return f"{units.counted(run.tasks_unrunnable, 'task')} cannot run: no worker has the required resources"
    return "it has just finished a task"


def _ended(run: RunStatus, now_us: int) -> Explanation:
    past = units.ago(max(0, now_us - run.end_us))
    when = "just now" if past == "now" else past
    evidence = (_lifetime(run), *_peak(run), *_clock(run))
    reason = run.end_reason
    if reason == "recording ended":
        # A user unregistered it while it was running.
        answer = f"Recording stopped {when}. The cluster may still be running: it was not closed before that."
        advice = "Register the cluster again, or check whether its scheduler is still running."
        return Explanation(answer, evidence, (advice,))
    ended = f"Closed {when}{_close_cause(run)}" if reason in ("", "closed") else f"Ended {when} ({reason})"
    return Explanation(f"{ended}.", evidence, ())


def _close_cause(run: RunStatus) -> str:
    """Return the cause that closed a cluster, if known: it may also have been its client, its owner or its machine."""
    if run.close_us:
        return " at the request of a user of this server"
    timeout_us = run.idle_timeout_s * 1e6
    if timeout_us and run.idle_since_us and run.end_us - run.idle_since_us >= timeout_us:
        return f" by its idle-timeout of {units.duration(timeout_us)}"
    return ""


def _lifetime(run: RunStatus) -> str:
    ended = f"ended {units.moment(run.end_us)}"
    ran = run.end_us - run.start_us if run.start_us else 0
    return f"{ended} after {units.duration(ran)}" if ran > 0 else ended


def _peak(run: RunStatus) -> list[str]:
    """Return the peak size of a cluster that has ended."""
    if not run.peak_workers:
        return []
    memory = f" and {units.nbytes(run.peak_memory_limit)} of memory" if run.peak_memory_limit else ""
    workers, threads = units.counted(run.peak_workers, "worker"), units.counted(run.peak_threads, "thread")
    return [f"{workers} with {threads}{memory} at peak"]


def _clock(run: RunStatus) -> list[str]:
    offset = run.clock_offset_us
    if abs(offset) <= CLOCK_TOLERANCE_US:
        return []
    return [
        f"the scheduler's clock is {units.duration(abs(offset))} {'behind' if offset > 0 else 'ahead of'} the server's"
    ]


#: Why no task of a cluster can run.
Obstacle = Literal["", "no workers", "paused", "stalled", "unrunnable"]


def find_obstacle(run: RunStatus, now_us: int) -> Obstacle:
    """Return why no task of a cluster can run although some wait; empty if some can."""
    pending = _pending(run)
    if pending and not run.workers:
        return "no workers"
    # Tasks that no worker may take are "unrunnable" while all workers are paused.
    if pending and _is_paused(run):
        return "paused"
    if _is_stalled(run, now_us):
        return "stalled"
    return "unrunnable" if run.tasks_unrunnable and pending == run.tasks_unrunnable else ""


def _answer(run: RunStatus, now_us: int) -> str:
    pending, obstacle = _pending(run), find_obstacle(run, now_us)
    if obstacle == "no workers":
        return f"{units.counted(pending, 'task')} waiting, but it has no workers."
    if obstacle == "paused":
        which = "Its only worker is" if run.workers == 1 else f"All {run.workers:,} workers are"
        return (
            f"{which} paused: their memory is nearly full, so no task starts. {units.counted(pending, 'task')} waiting."
        )
    if obstacle == "stalled":
        since = units.duration(now_us - run.stalled_since_us)
        return f"It is stuck: {_unfinished(run)}, but no worker has executed anything for {since}."
    if run.tasks_processing + run.tasks_queued:
        quiet_us = now_us - run.last_work_us if run.last_work_us else 0
        if quiet_us >= NO_PROGRESS_US:
            return f"No task has finished for {units.duration(quiet_us)}: {_unfinished(run)}."
        return f"It is working: {_unfinished(run)}."
    if obstacle == "unrunnable":
        return f"{_unrunnable(run)}."
    if not run.idle_since_us:
        limit = f"Its idle-timeout is {units.duration(run.idle_timeout_s * 1e6)}" if run.idle_timeout_s else NO_TIMEOUT
        return f"No tasks are processing or queued. Dask has not marked it idle yet, because a task finished just now. {limit}."
    idle = f"It has been idle for {units.duration(max(0, now_us - run.idle_since_us))}"
    if not run.idle_timeout_s:
        return f"{idle}, and no idle-timeout is set: it runs until someone closes it."
    left = run.idle_since_us + int(run.idle_timeout_s * 1e6) - now_us
    if left > 0:
        return f"{idle}. Its idle-timeout closes it in {units.duration(left)}."
    return f"{idle}, longer than its idle-timeout. It should close soon."


def _pending(run: RunStatus) -> int:
    """Return the number of tasks that have not finished, runnable or not."""
    return run.tasks_processing + run.tasks_queued + run.tasks_unrunnable


def _is_paused(run: RunStatus) -> bool:
    """Return whether every worker is paused."""
    return 0 < run.workers <= run.workers_paused and not run.tasks_executing


def _is_stalled(run: RunStatus, now_us: int) -> bool:
    """Return whether tasks wait although threads are free and nothing runs."""
    return bool(run.stalled_since_us) and now_us - run.stalled_since_us >= STALLED_US and not _is_paused(run)


def _tasks(run: RunStatus) -> list[str]:
    lines = [_unfinished(run) if run.tasks_processing + run.tasks_queued else "no tasks processing or queued"]
    if run.tasks_unrunnable:
        lines += [_unrunnable(run), "Dask's idle timer does not start while such tasks wait"]
    return [*lines, f"{units.counted(run.workers, 'worker')} with {units.counted(run.threads, 'thread')}"]


def _unfinished(run: RunStatus) -> str:
    return f"{units.counted(run.tasks_processing, 'task')} processing, {run.tasks_queued:,} queued"


def _unrunnable(run: RunStatus) -> str:
    text, needs = f"{units.counted(run.tasks_unrunnable, 'task')} cannot run", list_needs(run)
    return f"{text}: no worker offers {needs}" if needs else text


def list_needs(run: RunStatus) -> str:
    """Return the demands of tasks that no worker can run, each with the number of tasks; empty if unknown."""
    needs = parse_object(run.unrunnable_needs)
    return ", ".join(f"{name} ({count})" for name, count in list(needs.items())[:MAX_LISTED])


def _clients(connected: Sequence[ClientStatus], now_us: int) -> list[str]:
    if not connected:
        return ["no client is connected"]
    lines = []
    for client in connected[:MAX_LISTED]:
        seen_us = client.last_seen_us
        seen = f"last seen {units.duration(max(0, now_us - seen_us))} ago" if seen_us else "last seen unknown"
        size = units.nbytes(client.held_nbytes) if client.held_nbytes >= 0 else "size unknown"
        lines.append(f"client {client.client}: {seen}, holds {units.counted(client.held_keys, 'result')} ({size})")
    if len(connected) > MAX_LISTED:
        lines.append(f"{units.counted(len(connected) - MAX_LISTED, 'more client')} connected")
    return lines


def _idleness(run: RunStatus, now_us: int) -> list[str]:
    lines = []
    if run.idle_since_us:
        lines.append(f"idle since {units.moment(run.idle_since_us)}")
    elif run.last_work_us:
        lines.append(f"last task finished {units.duration(max(0, now_us - run.last_work_us))} ago")
    timeout = run.idle_timeout_s
    lines.append(f"idle-timeout: {units.duration(timeout * 1e6)}" if timeout else "no idle-timeout is set")
    return lines


def _advice(run: RunStatus, connected: Sequence[ClientStatus], now_us: int) -> list[str]:
    advice = []
    pending, obstacle = _pending(run), find_obstacle(run, now_us)
    if obstacle == "no workers":
        advice.append(
            "Start workers, and check why none has joined: the job queue, quotas, or the address of the scheduler."
        )
    if obstacle == "paused":
        advice.append("Release results, use smaller chunks, or restart the cluster with more memory per worker.")
    if obstacle == "stalled":
        advice.append(
            "Tasks may wait for each other, or a worker may hang. Look at client.call_stack() and the worker logs. "
            "client.restart_workers() starts the work again on new processes."
        )
    if run.tasks_unrunnable and not run.tasks_processing and run.workers > run.workers_paused:
        advice.append(
            "Add a worker with the resources these tasks need, or cancel them. "
            "Set distributed.scheduler.no-workers-timeout to make such tasks fail."
        )
    if not run.idle_timeout_s and run.idle_since_us and not pending:
        advice.append("Set distributed.scheduler.idle-timeout, for example to 20 minutes.")
    if any(client.held_keys for client in connected) and not run.tasks_processing:
        advice.append("Connected clients hold results. Delete the futures, or close the clients.")
    return advice
