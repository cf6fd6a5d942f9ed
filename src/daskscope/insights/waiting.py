"""Rules about tasks that wait while they run: for a core, a lock, storage, the network, or other threads and programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from daskscope import units
from daskscope.analysis.profiles import hottest_line
from daskscope.analysis.time.waiting import coroutines
from daskscope.analysis.what_if.savings import without_waiting
from daskscope.insights.facts import RELEVANT_OR_LARGE, Facts, Finding, Rule

#: Ten times the interval between samples: a longer task is not too short to be sampled.
LONG_US = 100_000
WHEN = f"From {RELEVANT_OR_LARGE}: less is within the error of the samples."


def _waiting_finding(
    facts: Facts, reason: str, what: str, advice: str, *, more: str = "", rank: int = 2
) -> Iterator[Finding]:
    """Yield the finding for a reason to wait, if it is worth one. ``more`` is added to the evidence."""
    split, us = facts.split, facts.split.waiting_us.get(reason, 0)
    if facts.is_relevant(us) or facts.is_large(us):
        title = f"Tasks {what} for {units.percent(us / split.compute_us)} of their run time"
        evidence = (
            f"{units.duration(us)} of {units.duration(split.compute_us)} of compute time.{_place(facts, reason)}{more}"
        )
        change = without_waiting(facts.recording, reason)
        saved = facts.thread_time(us, f"compute time in which tasks {what}", change)
        if reason == "core" and saved:
            saved = facts.limited_by_cores(saved)
        yield facts.finding("waiting", title, evidence, advice, "profile", saved, rank)


def _place(facts: Facts, reason: str) -> str:
    """Return the line in which most of the wait was sampled, as a sentence; empty if no line has half of it."""
    waits = facts.sampled_waits
    found = hottest_line(facts.recording["profiles"], waits.rows, waits.of(reason))
    return (
        f" {units.percent(found.share)} of it at {found}, in {found.function}." if found and found.share >= 0.5 else ""
    )


def _waiting_rule(id: str, title: str, why: str, reason: str, what: str, advice: str) -> Rule:
    """Return the rule about a reason to wait; ``what`` is what tasks did, for the title of the finding."""
    return Rule(id, title, why, WHEN, lambda facts: _waiting_finding(facts, reason, what, advice))


def _busy_hosts(facts: Facts) -> Iterator[Finding]:
    advice = (
        "More threads want to run than the host has cores. Use fewer worker threads per host, or look for other "
        "programs on it."
    )
    load = host_load(facts)
    more = f" {load.sentence}" if load else ""
    yield from _waiting_finding(facts, "core", "waited for a CPU core", advice, more=more)


#: Share of the CPU time of hosts from which other programs are mentioned.
OTHER_PROGRAMS = 0.2


@dataclass(frozen=True)
class HostLoad:
    """How busy the hosts of the workers were, as a share of their cores, and as a sentence."""

    share: float
    sentence: str
    #: Share of other programs in the CPU time that was used.
    others: float


def host_load(facts: Facts) -> HostLoad | None:
    """Return how busy the hosts of the workers were, and how much of that other programs used; None if it is not known."""
    table = facts.recording["processes"]
    capacity = float((table["wall_us"] * table["host_cores"]).sum())
    if not capacity:
        return None
    share = min(1.0, float(table["host_cpu_us"].sum()) / capacity)
    others = facts.other_cpu_us / max(1, facts.other_cpu_us + facts.own_cpu_us)
    more = f" {units.percent(others)} of that was other programs than workers." if others >= OTHER_PROGRAMS else ""
    return HostLoad(share, f"The hosts were {units.percent(share)} busy.{more}", others)


#: Hosts that are busier than this have no core left for an event loop, if tasks waited for a core for half of their time.
FULL_HOST = 0.95


def full_hosts(facts: Facts) -> HostLoad | None:
    """Return how busy the hosts were if event loops had to wait for a core, as far as waits of tasks show that."""
    load, waits = host_load(facts), facts.split.waiting_us.get("core", 0)
    return load if load and load.share >= FULL_HOST and 0 < facts.split.compute_us <= 2 * waits else None


BUSY_HOSTS = Rule(
    "busy-hosts",
    "Tasks wait for a CPU core",
    "More threads want to run than the host has cores, because of other programs or of too many worker threads.",
    WHEN,
    _busy_hosts,
)
GIL = _waiting_rule(
    "gil",
    "Tasks wait for the global interpreter lock",
    "One thread of a process runs Python code at a time. More threads then make tasks slower, not faster.",
    "gil",
    "waited for Python's global interpreter lock (GIL)",
    "Use more worker processes with fewer threads each, or libraries that release the GIL.",
)
LOCKS = _waiting_rule(
    "locks",
    "Tasks wait for locks, events or queues",
    "A lock makes tasks run one after the other, whatever the number of threads.",
    "lock",
    "waited for locks, events or queues",
    "The profile shows which. Hold locks for a shorter time, or avoid them.",
)
NETWORK_READS = _waiting_rule(
    "network-reads",
    "Tasks wait for the network",
    "A thread that waits for a server does nothing else meanwhile, and its core is paid for.",
    "network",
    "waited for the network",
    "Read larger pieces at a time, use more threads per worker, or run the cluster closer to the data.",
)
FILE_READS = _waiting_rule(
    "file-reads",
    "Tasks wait for files",
    "A thread that waits for a disk does nothing else meanwhile, and its core is paid for.",
    "file",
    "waited for files",
    "Use faster storage or larger reads. More threads per worker can read in parallel.",
)
SUBPROCESSES = _waiting_rule(
    "subprocesses",
    "Tasks wait for programs they started",
    "A program beside the worker uses cores that Dask does not count.",
    "subprocess",
    "waited for programs they had started",
    "The profile shows where they are started.",
)
LIBRARY_THREADS = _waiting_rule(
    "library-threads",
    "Tasks wait for threads of a library",
    "BLAS and similar libraries start a thread per core, in every thread of Dask: more threads than cores.",
    "native",
    "waited for threads of a library, such as BLAS, or for threads they had started",
    "These threads use cores that Dask does not count. Set OMP_NUM_THREADS=1 on workers, give each worker one thread, "
    "or compute in the task's own thread.",
)


def _off_cpu(facts: Facts) -> Iterator[Finding]:
    seen = "The profile shows the lines in which they waited."
    yield from _waiting_finding(facts, "blocked", "slept or were blocked in native code", seen, rank=3)
    yield from _waiting_finding(facts, "unknown", "were off-CPU", _why_unseen(facts), rank=3)


def _why_unseen(facts: Facts) -> str:
    """Return why nothing is known about tasks that were off-CPU, by the prefix with the most time among those without samples."""
    tasks, profiles = facts.recording["tasks"], facts.recording["profiles"]
    sampled = set(profiles.strings("prefix").take(np.flatnonzero(profiles["wall_us"] > 0)).to_numpy().tolist())
    unseen = next((one for one in facts.prefixes if one.prefix not in sampled), None)
    if unseen is None or not tasks.rows:
        return "The profile has too few samples of them to tell the cause."
    if unseen.prefix in coroutines(facts.recording):
        return (
            f"{unseen.prefix or 'Unnamed'} tasks are coroutines. They wait on the event loop, where they need no core, but a "
            "worker runs no more of them at a time than it has threads. Give workers more threads."
        )
    if unseen.p50_us >= LONG_US:
        return f"No stack of {unseen.prefix or 'unnamed'} tasks was sampled, so the cause is not known."
    return "They were too short to be sampled, so the cause is not known."


OFF_CPU = Rule(
    "off-cpu",
    "Tasks are off-CPU, and the cause is not known",
    "A thread that sleeps or is blocked does nothing else meanwhile. It is listed last, because there may be "
    "nothing to change.",
    WHEN,
    _off_cpu,
)
