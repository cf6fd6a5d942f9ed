"""Rules about tasks that wait while they run: for a core, a lock, storage, the network, or other threads and programs."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope import units
from daskscope.analysis.what_if.savings import without_waiting
from daskscope.insights.facts import RELEVANT, Facts, Finding, Rule
from daskscope.model.recording import Recording

WHEN = f"From {RELEVANT}: less is within the error of the samples."


def _waiting_finding(
    facts: Facts, reason: str, what: str, advice: str, *, more: str = "", rank: int = 2
) -> Iterator[Finding]:
    """Yield the finding for a reason to wait, if it is worth one. ``more`` is added to the evidence."""
    split, us = facts.split, facts.split.waiting_us.get(reason, 0)
    if facts.is_relevant(us):
        title = f"Tasks {what} for {units.percent(us / split.compute_us)} of their run time"
        evidence = f"{units.duration(us)} of {units.duration(split.compute_us)} of compute time.{more}"
        change = without_waiting(facts.recording, reason)
        saved = facts.thread_time(us, f"compute time in which tasks {what}", change)
        yield facts.finding("waiting", title, evidence, advice, "profile", saved, rank)


def _waiting_rule(id: str, title: str, why: str, reason: str, what: str, advice: str) -> Rule:
    """Return the rule about a reason to wait; ``what`` is what tasks did, for the title of the finding."""
    return Rule(id, title, why, WHEN, lambda facts: _waiting_finding(facts, reason, what, advice))


def _busy_hosts(facts: Facts) -> Iterator[Finding]:
    advice = (
        "More threads want to run than the host has cores. Use fewer worker threads per host, or look for other "
        "programs on it."
    )
    yield from _waiting_finding(facts, "core", "waited for a CPU core", advice, more=_host_load(facts.recording))


def _host_load(recording: Recording) -> str:
    """Return how busy the hosts of the workers were, as a sentence."""
    table = recording["processes"]
    capacity = float((table["wall_us"] * table["host_cores"]).sum())
    if not capacity:
        return ""
    return f" The hosts were {units.percent(min(1.0, float(table['host_cpu_us'].sum()) / capacity))} busy."


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
    unseen = "They were too short to be sampled, so the cause is not known."
    yield from _waiting_finding(facts, "unknown", "were off-CPU", unseen, rank=3)


OFF_CPU = Rule(
    "off-cpu",
    "Tasks are off-CPU, and the cause is not known",
    "A thread that sleeps or is blocked does nothing else meanwhile. It is listed last, because there may be "
    "nothing to change.",
    WHEN,
    _off_cpu,
)
