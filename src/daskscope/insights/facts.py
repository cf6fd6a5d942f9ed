"""Input of the rules and the headline (``Facts``), a rule (``Rule``), and its output (``Finding``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from daskscope import units
from daskscope.analysis.coffea import CoffeaRun, coffea_runs
from daskscope.analysis.columns.bins import Bins
from daskscope.analysis.columns.grouping import sums, where
from daskscope.analysis.cost import recorded_cost
from daskscope.analysis.failures import Failure, failures
from daskscope.analysis.summary import Prefix, inside_block, is_open, prefixes
from daskscope.analysis.time.breakdown import Breakdown, breakdown
from daskscope.analysis.time.critical_path import CriticalPath, critical_path
from daskscope.analysis.time.waiting import SampledWaits, cpu_share, sampled_waits
from daskscope.analysis.what_if.savings import Change, LongestReplay, baseline
from daskscope.analysis.workers import Worker, workers
from daskscope.model.recording import Recording

#: Waiting or idle time is worth a finding if it is at least this share of thread time and this long.
MIN_SHARE = 0.05
MIN_US = 1_000_000
#: In a short run, what takes this share of the time is worth a finding, from 50 samples on.
LARGE_SHARE, SHORT_US = 0.1, 500_000
MAX_TEXT = 200
#: Tasks of a prefix with more CPU time than this share of their duration need a core each, not only a thread.
COMPUTING = 0.5

#: For each reason to be idle: the explanation.
IDLE = {
    "nothing submitted": "nothing was submitted",
    "large graph": "a graph was built, sent or unpacked",
    "too few tasks": "too few tasks could run in parallel",
    "not started": "their tasks had been assigned but not started",
    "queued": "tasks were waiting at the scheduler",
    "elsewhere": "tasks were waiting at other workers",
    "paused": "workers were paused to save memory",
    "starting": "workers had just joined",
    "cannot run": "the remaining tasks need a worker that does not exist",
    "unknown": "no task ran, and the recording does not say why",
}
#: What a thread waits for inside of a task, by reason of ``analysis.time.waiting``.
WAITING = {
    "core": "for a CPU core",
    "gil": "for Python's global interpreter lock",
    "lock": "for locks and queues",
    "network": "for the network",
    "file": "for files",
    "subprocess": "for subprocesses",
    "native": "for threads of libraries",
    "blocked": "asleep or in native code",
}


@dataclass(frozen=True)
class Gain:
    """An estimated saving. It is an upper bound: no more can be saved than was spent."""

    us: int
    #: run (wall time) or threads (thread time)
    of: str
    #: Share of that total.
    share: float
    #: What was added up.
    how: str
    #: The same as wall time: if it is spread evenly over the threads, and if all of it delays the end of the run. The longest chain
    #: of dependencies stays in any case, and no more is saved than in a replay of the run with the change.
    wall_low_us: int = 0
    wall_high_us: int = 0
    #: Dollars that the cluster costs in the most wall time saved; 0 if the recording has no prices.
    cost_high: float = 0.0


#: The size in the evidence of a memory kill, as ``format_bytes`` of Dask writes it. Recordings may have any text there.
KILLED_AT = re.compile(r"killed it at ([0-9]{1,9}(?:\.[0-9]{1,3})? (?:[kMGTP]i?)?B)\b")

#: A rule takes 0.1 ms per prefix for 20,000 tasks. A recording may have as many prefixes as tasks.
MAX_PREFIXES = 200


@dataclass(frozen=True)
class Finding:
    """A fact, its evidence, a suggestion, and where and when to look."""

    #: lost worker, error, data movement, overhead, straggler, waiting, idle, incomplete
    kind: str
    title: str
    evidence: str
    advice: str
    view: str
    start_us: int
    stop_us: int
    #: Estimated saving; None if the recording does not show it.
    gain: Gain | None = None
    #: Order: 0 ended the run, 1 certain, 2 measured, 3 measured without a known cause.
    rank: int = 2
    #: ID of the rule that found it.
    rule: str = ""


@dataclass(frozen=True)
class Facts:
    """The input of the rules and of the headline, computed once per document."""

    recording: Recording
    split: Breakdown
    prefixes: tuple[Prefix, ...]
    workers: tuple[Worker, ...]
    errors: tuple[Failure, ...]
    start_us: int
    stop_us: int
    #: Whether the recording stops before the cluster ends, and is not a block of work that ended.
    is_open: bool = False

    @property
    def longest_prefixes(self) -> tuple[Prefix, ...]:
        """The prefixes with the longest compute time. Rules that look at all tasks of each prefix use only these."""
        return self.prefixes[:MAX_PREFIXES]

    @cached_property
    def coffea(self) -> tuple[CoffeaRun, ...]:
        """The runs of coffea."""
        return coffea_runs(self.recording)

    @classmethod
    def of(cls, recording: Recording, start_us: int, stop_us: int) -> Facts:
        """Compute the facts of a recording between two times."""
        recording = inside_block(recording)
        split = breakdown(recording, Bins.over(start_us, stop_us))
        found = workers(recording, stop_us)
        errors = failures(recording)
        return cls(recording, split, prefixes(recording), found, errors, start_us, stop_us, is_open(recording))

    def finding(
        self,
        kind: str,
        title: str,
        evidence: str,
        advice: str,
        view: str,
        saved: Gain | None = None,
        rank: int = 2,
    ) -> Finding:
        """Return a finding about the whole run."""
        return Finding(kind, title, evidence, advice, view, self.start_us, self.stop_us, saved, rank)

    def is_relevant(self, us: int) -> bool:
        """Return whether a part of thread time is worth a finding."""
        return us >= MIN_US and us >= MIN_SHARE * self.split.thread_us

    def is_large(self, us: int) -> bool:
        """Return whether a part of thread time is worth a finding although it is short."""
        return us >= SHORT_US and us >= LARGE_SHARE * self.split.thread_us

    @cached_property
    def path(self) -> CriticalPath:
        """The critical path of the longest computation."""
        return critical_path(self.recording)

    @property
    def run_us(self) -> int:
        return self.stop_us - self.start_us

    @property
    def max_saving_us(self) -> int:
        """The wall time beyond the longest chain of dependencies: no change of the cluster saves more."""
        return max(0, self.run_us - (self.path.bound_us if self.path.known else 0))

    @cached_property
    def replayed(self) -> LongestReplay | None:
        """The replay of the longest computation, if it is small enough and like the run."""
        return baseline(self.recording)

    @cached_property
    def cost_per_us(self) -> float:
        """Dollars that the cluster costs in a microsecond, on average; 0 if the recording has no prices."""
        cost = recorded_cost(self.recording, self.start_us, self.stop_us, self.split.compute_us)
        return cost.total / self.run_us if cost and self.run_us else 0.0

    def thread_time(self, us: int, how: str, change: Change | None = None) -> Gain | None:
        """Return a saving as a share of thread time, by shorter tasks. A replay with the change bounds the wall time."""
        low = us * self.run_us // self.split.thread_us if self.split.thread_us else 0
        return self._bounded(gain(us, self.split.thread_us, "threads", how, low, min(us, self.run_us)), change)

    def useful_us(self, prefix: Prefix) -> int:
        """Return the compute time of a prefix whose results were used. The rest is wasted whatever the code does."""
        return max(0, prefix.total_us - self._failed_us.get(prefix.prefix, 0) - prefix.recomputed_us)

    @cached_property
    def _failed_us(self) -> dict[str, int]:
        """The time of executions that raised, by prefix."""
        tasks = self.recording["tasks"]
        names, rows = tasks.strings("prefix"), np.flatnonzero(where(tasks.strings("status"), "error", "retried"))
        lengths = np.maximum(tasks["stop_us"][rows] - tasks["start_us"][rows], 0)
        found = sums(names.codes[rows], lengths, len(names.values))
        return dict(zip(map(str, names.values), found.tolist(), strict=True))

    @cached_property
    def sampled_waits(self) -> SampledWaits:
        """The sampled waiting time of tasks by stack."""
        return sampled_waits(self.recording)

    def idle_time(self, us: int, how: str) -> Gain | None:
        """Return a saving as a share of thread time, by less idle time: tasks and their longest chain stay as long as they are."""
        found = self.thread_time(us, how)
        if found is None:
            return None
        low, high = (min(wall_us, self.max_saving_us) for wall_us in (found.wall_low_us, found.wall_high_us))
        return replace(found, wall_low_us=low, wall_high_us=high, cost_high=high * self.cost_per_us)

    def wall_time(self, us: int, how: str, change: Change | None = None, low_us: int | None = None) -> Gain | None:
        """Return a saving as a share of the run. A replay bounds it; ``low_us`` is its low end, if it is a range."""
        return self._bounded(gain(us, self.run_us, "run", how, us if low_us is None else low_us, us), change)

    @cached_property
    def cores(self) -> int:
        """The cores that the workers may use on all their hosts; 0 if the recording does not say."""
        hosts = {worker.worker: worker.host or worker.worker for worker in self.workers}
        cores: dict[str, int] = {}
        for worker, count, of_host in self.recording["processes"].records("worker", "cores", "host_cores"):
            host = hosts.get(worker, worker)
            cores[host] = max(cores.get(host, 0), count or of_host)
        return sum(cores.values())

    @cached_property
    def other_cpu_us(self) -> int:
        """The CPU time of other programs on the hosts of workers, as far as it was sampled."""
        hosts = {worker.worker: worker.host or worker.worker for worker in self.workers}
        # Every worker reads the whole host.
        readings: dict[tuple[str, str], int] = {}
        for worker, of_host in self.recording["processes"].records("worker", "host_cpu_us"):
            place = hosts.get(worker, worker), worker
            readings[place] = readings.get(place, 0) + of_host
        by_host: dict[str, int] = {}
        for (host, _), us in readings.items():
            by_host[host] = max(by_host.get(host, 0), us)
        return max(0, sum(by_host.values()) - self.own_cpu_us)

    @cached_property
    def own_cpu_us(self) -> int:
        """The CPU time of the workers' processes, as far as it was sampled. Workers that share a process all read the same."""
        readings: dict[str, int] = {}
        for worker, cpu in self.recording["processes"].records("worker", "cpu_us"):
            readings[worker] = readings.get(worker, 0) + cpu
        processes: dict[tuple[str, int | str], int] = {}
        for worker, host, pid in self.recording["workers"].records("worker", "host", "pid"):
            process = (host, pid or worker)
            processes[process] = max(processes.get(process, 0), readings.pop(worker, 0))
        return sum(processes.values()) + sum(readings.values())

    def limited_by_cores(self, found: Gain) -> Gain:
        """Return a saving of waits for cores as wall time: tasks need as much CPU time without them.

        Fewer threads need it, too, and may save nothing. If other programs took most of the CPU time, what they took is saved
        at least.
        """
        if not self.cores:
            return found
        most_us = max(0, self.run_us - self.split.split["cpu"] // self.cores)
        high = min(found.wall_high_us, most_us)
        by_others = self.other_cpu_us // self.cores if self.other_cpu_us > self.own_cpu_us else 0
        low = min(found.wall_low_us, high, by_others)
        return replace(found, wall_low_us=low, wall_high_us=high, cost_high=high * self.cost_per_us)

    def sharing_threads(self, prefix: str, start_us: int, stop_us: int) -> int:
        """Return how many threads could have shared the work of tasks of a prefix that ran between two times."""
        threads = sum(
            w.threads for w in self.workers if w.start_us <= start_us and (not w.end_us or w.end_us >= stop_us)
        )
        names = self.recording["tasks"].strings("prefix")
        computing = dict(zip(names.values.tolist(), cpu_share(self.recording, names).tolist(), strict=True))
        if self.cores and computing.get(prefix, 0.0) >= COMPUTING:
            threads = min(threads, self.cores)
        return max(1, threads)

    def _bounded(self, found: Gain | None, change: Change | None) -> Gain | None:
        if found is None:
            return None
        low, high = found.wall_low_us, found.wall_high_us
        if change is not None and self.replayed is not None:
            least, most = self.replayed.saving_us(change, self.run_us)
            low, high = min(low, least), min(high, most)
        return replace(found, wall_low_us=min(low, high), wall_high_us=high, cost_high=high * self.cost_per_us)


@dataclass(frozen=True)
class Rule:
    """One rule. ``check`` yields findings, and nothing if it is unsure."""

    id: str
    title: str
    #: Why it matters.
    why: str
    #: When the rule speaks, with the source of each number.
    when: str
    check: Callable[[Facts], Iterator[Finding]]


def at_least(share: float, of: str, us: int = MIN_US) -> str:
    """Return a lower limit in words, for ``Rule.when``: a share of something, and a time."""
    return f"{100 * share:g} % of {of} and {us / 1e6:g} s"


#: The limit of ``Facts.is_relevant`` in words.
RELEVANT = at_least(MIN_SHARE, "thread time")
#: The limit of ``Facts.is_relevant`` or ``Facts.is_large``.
RELEVANT_OR_LARGE = f"{RELEVANT}, or {100 * LARGE_SHARE:g} % and {SHORT_US / 1e6:g} s"


def gain(us: int, total_us: int, of: str, how: str, low_us: int = 0, high_us: int = 0) -> Gain | None:
    """Return a saving as a share of a total; None if either is zero."""
    if us <= 0 or total_us <= 0:
        return None
    return Gain(min(us, total_us), of, min(us, total_us) / total_us, how, max(0, low_us), max(0, high_us))


def sentence(parts: Sequence[str]) -> str:
    """Return parts as one sentence; empty if there are none."""
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


class Raised(Protocol):
    """An exception and its cause, of a recording or of a catalog."""

    @property
    def type(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def cause_type(self) -> str: ...
    @property
    def cause_message(self) -> str: ...


class Lost(Protocol):
    """A lost worker, of a recording or of a catalog."""

    @property
    def server_id(self) -> str: ...
    @property
    def worker(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def verdict(self) -> str: ...
    @property
    def evidence(self) -> str: ...
    @property
    def memory_limit(self) -> int: ...
    @property
    def peak_memory(self) -> int: ...


def error_line(failure: Raised) -> str:
    """Return an error in one line: the type and message of its cause."""
    type_, message = failure.cause_type or failure.type, failure.cause_message or failure.message
    text = " ".join(message.split())
    text = text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
    return f"{type_ or 'Unnamed error'}: {text}" if text else type_ or "Unnamed error"


def describe_losses(lost: Sequence[Lost]) -> str:
    """Return how workers were lost, as a sentence without its full stop."""
    verdicts = {worker.verdict for worker in lost}
    verdict = verdicts.pop() if len(verdicts) == 1 else ""
    if len(lost) > 1:
        how = "were killed for exceeding their memory limit" if verdict == "memory kill" else "were lost"
        return f"{units.count(len(lost))} workers {how}"
    (worker,) = lost
    name = f"Worker {worker.name or worker.worker or worker.server_id}"
    if verdict == "memory kill":
        # Importing dask takes 0.3 s of CPU time, which each process that builds a document would spend.
        from dask.utils import parse_bytes

        # Samples are seconds apart and may have missed the peak; the nanny says at which size it killed the worker.
        killed_at = KILLED_AT.search(worker.evidence)
        peak = max(worker.peak_memory, parse_bytes(killed_at[1]) if killed_at else 0)
        if 0 < worker.memory_limit <= 2 * peak:
            return f"{name} was killed at {units.percent(peak / worker.memory_limit)} of its memory limit"
        return f"{name} was killed for exceeding its memory limit"
    return f"{name} lost its connection" if verdict == "lost connection" else f"{name} was lost"
