"""Why is that cluster still running? The answer in one sentence, and what it rests on.

Dask's own idle clock does not start while any task is queued, processing or cannot run: a single task that asks for a
resource nobody has keeps a cluster alive for ever, and nothing says so. This does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from daskscope import units

#: Clocks that differ by less are not spoken of: a batch may take as long to arrive.
CLOCKS_DIFFER_US = 5_000_000
#: A recorder says every ten seconds that a cluster is there, and may be late once.
QUIET_US = 25_000_000


@dataclass(frozen=True)
class Explanation:
    """The answer, the evidence line by line, and what could be done."""

    answer: str
    evidence: tuple[str, ...]
    advice: tuple[str, ...]


def explain(
    run: Mapping[str, Any], clients: Sequence[Mapping[str, Any]], state: str, per_hour: float, now_us: int
) -> Explanation:
    """The explanation of a run; ``run`` and ``clients`` are rows of the catalog, ``now_us`` is on the scheduler's clock."""
    if state == "finished":
        return _finished(run, now_us)
    if state == "lost":
        quiet = units.duration(max(0, now_us - run["seen_us"]))
        return Explanation(
            f"It may not be running: nothing was heard of it for {quiet}. Its scheduler was killed, or cannot reach this server.",
            (f"last sign of life {units.moment(run['seen_us'])}", *_had(run), *_clock(run)),
            ("Look whether its scheduler's process or machine is still there.",),
        )
    # Dask lists what nobody waits for under a client of its own; it is there even when it holds nothing.
    present = [client for client in clients if not client["disconnect_us"]]
    connected = [client for client in present if client["client"] != "fire-and-forget" or client["held_keys"]]
    evidence = [
        *_silence(run, now_us),
        *_tasks(run),
        *_clients(connected, now_us),
        *_idleness(run, now_us),
        *_clock(run),
    ]
    if per_hour > 0:
        evidence.append(f"it costs about {units.dollars(per_hour)} an hour")
    return Explanation(_answer(run, now_us), tuple(evidence), tuple(_advice(run, connected)))


def _silence(run: Mapping[str, Any], now_us: int) -> list[str]:
    quiet = now_us - run["seen_us"]
    return [f"nothing was heard of it for {units.duration(quiet)}: it may be gone"] if quiet > QUIET_US else []


def _finished(run: Mapping[str, Any], now_us: int) -> Explanation:
    past = units.ago(max(0, now_us - run["end_us"]))
    when = "just now" if past == "now" else past
    evidence = (_life(run), *_had(run), *_clock(run))
    if run["end_reason"] == "recording ended":
        # Somebody unregistered it: it was there when we last looked.
        answer = (
            f"Its recording was ended {when}. The cluster itself may still be there: it was not closed while we looked."
        )
        return Explanation(answer, evidence, ("Register it again, or look whether its scheduler is still there.",))
    closed = "was closed" if run["end_reason"] in ("", "closed") else f"ended ({run['end_reason']})"
    return Explanation(f"It {closed} {when}{_closer(run)}, and costs nothing any more.", evidence, ())


def _closer(run: Mapping[str, Any]) -> str:
    """Who or what closed a cluster, where that is known: it may have been its client, its owner or its machine."""
    if run["close_us"]:
        return " because somebody asked this server to"
    timeout_us = run["idle_timeout_s"] * 1e6
    if timeout_us and run["idle_since_us"] and run["end_us"] - run["idle_since_us"] >= timeout_us:
        return f" by its idle-timeout of {units.duration(timeout_us)}"
    return ""


def _life(run: Mapping[str, Any]) -> str:
    ended = f"ended {units.moment(run['end_us'])}"
    ran = run["end_us"] - run["start_us"] if run["start_us"] else 0
    return f"{ended}, after {units.duration(ran)}" if ran > 0 else ended


def _had(run: Mapping[str, Any]) -> list[str]:
    """What a cluster that is over had at once, at most."""
    if not run["peak_workers"]:
        return []
    memory = f" and {units.nbytes(run['peak_memory_limit'])} of memory" if run["peak_memory_limit"] else ""
    threads = _count(run["peak_threads"], "thread")
    return [f"it had {_count(run['peak_workers'], 'worker')} with {threads}{memory}"]


def _clock(run: Mapping[str, Any]) -> list[str]:
    offset = run["clock_offset_us"]
    if abs(offset) <= CLOCKS_DIFFER_US:
        return []
    return [f"its clock is {units.duration(abs(offset))} {'behind' if offset > 0 else 'ahead of'} this server's"]


def _answer(run: Mapping[str, Any], now_us: int) -> str:
    busy = run["tasks_processing"] + run["tasks_queued"]
    if busy:
        return f"It is working: {_count(run['tasks_processing'], 'task')} running or assigned, {run['tasks_queued']:,} queued."
    if run["tasks_unrunnable"]:
        return (
            f"{_count(run['tasks_unrunnable'], 'task')} cannot run{_needs(run)}, and Dask's idle clock does not start while "
            "such a task waits."
        )
    if not run["idle_since_us"]:
        return "No task runs or waits at this moment, and Dask does not call it idle yet: it just finished something."
    idle = f"It has been idle for {units.duration(max(0, now_us - run['idle_since_us']))}"
    if not run["idle_timeout_s"]:
        return f"{idle}, and no idle-timeout is set: it runs until somebody closes it."
    left = run["idle_since_us"] + int(run["idle_timeout_s"] * 1e6) - now_us
    if left > 0:
        return f"{idle}; its idle-timeout ends it in {units.duration(left)}."
    return f"{idle}, longer than its idle-timeout: it should be ending."


def _tasks(run: Mapping[str, Any]) -> list[str]:
    lines = [
        f"{_count(run['tasks_processing'], 'task')} running or assigned, {run['tasks_queued']:,} queued, "
        f"{run['tasks_unrunnable']:,} that cannot run"
    ]
    if run["tasks_unrunnable"] and _needs(run):
        lines.append(f"tasks that cannot run{_needs(run)}")
    lines.append(f"{_count(run['workers'], 'worker')} with {_count(run['threads'], 'thread')}")
    return lines


def _needs(run: Mapping[str, Any]) -> str:
    try:
        needs = json.loads(run["unrunnable_needs"] or "{}")
    except (ValueError, RecursionError):
        needs = {}
    if not isinstance(needs, dict) or not needs:
        return ""
    return ": they ask for " + ", ".join(f"{name} ({count})" for name, count in list(needs.items())[:5])


def _clients(connected: Sequence[Mapping[str, Any]], now_us: int) -> list[str]:
    if not connected:
        return ["no client is connected"]
    lines = []
    for client in connected[:5]:
        seen = units.duration(max(0, now_us - client["last_seen_us"])) if client["last_seen_us"] else "an unknown time"
        held = units.nbytes(client["held_nbytes"]) if client["held_nbytes"] >= 0 else "an unknown amount"
        lines.append(
            f"client {client['client']}: last seen {seen} ago, holds {_count(client['held_keys'], 'result')} ({held})"
        )
    if len(connected) > 5:
        lines.append(f"{len(connected) - 5:,} more clients are connected")
    return lines


def _idleness(run: Mapping[str, Any], now_us: int) -> list[str]:
    lines = []
    if run["idle_since_us"]:
        lines.append(f"idle since {units.moment(run['idle_since_us'])}")
    elif run["last_work_us"]:
        lines.append(f"last task finished {units.duration(max(0, now_us - run['last_work_us']))} ago")
    timeout = run["idle_timeout_s"]
    lines.append(f"idle-timeout: {units.duration(timeout * 1e6)}" if timeout else "no idle-timeout is set")
    return lines


def _advice(run: Mapping[str, Any], connected: Sequence[Mapping[str, Any]]) -> list[str]:
    advice = []
    if run["tasks_unrunnable"] and not run["tasks_processing"]:
        advice.append(
            "Add a worker with what these tasks ask for, or cancel them; distributed.scheduler.no-workers-timeout ends such waits."
        )
    if not run["idle_timeout_s"]:
        advice.append("Set distributed.scheduler.idle-timeout, for example to 20 minutes.")
    if any(client["held_keys"] for client in connected) and not run["tasks_processing"]:
        advice.append("Results are held by clients that are connected: delete the futures, or close the clients.")
    return advice


def _count(n: int, noun: str) -> str:
    return units.counted(n, noun)
