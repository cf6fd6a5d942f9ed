"""Findings: facts worth knowing about a run, each with evidence, one suggestion and the estimated saving.

``Facts`` are computed once per run. Each rule in ``RULES`` looks at them and yields findings.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from daskscope import units
from daskscope.analysis.bins import Bins
from daskscope.analysis.breakdown import Breakdown, breakdown
from daskscope.analysis.coffea import CoffeaRun, coffea_runs
from daskscope.analysis.executions import EXECUTED
from daskscope.analysis.failures import Failure, failures
from daskscope.analysis.grouping import percentile, where
from daskscope.analysis.intervals import short_gaps_us, union_us
from daskscope.analysis.prefixes import Prefix, prefixes
from daskscope.analysis.summary import completeness, describe_gap, is_open, recording_gaps
from daskscope.analysis.workers import LOST, Worker, workers
from daskscope.model.recording import Recording
from daskscope.model.table import Array, Table

#: Errors listed one by one.
MAX_ERRORS = 3
#: Share of thread time above which transfers or disk are worth a finding.
DATA_SHARE = 0.2
#: Waiting or idle time is worth a finding if it is at least this share of thread time and this long.
MIN_SHARE = 0.05
MIN_US = 1_000_000
SHORT_US = 10_000
MANY_TASKS = 1_000
#: A straggler takes more than 10 times the median of its prefix, and more than 10 % of the run.
STRAGGLER_RATIO = 10
STRAGGLER_SHARE = 0.1
MAX_TEXT = 200


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

    @cached_property
    def coffea(self) -> tuple[CoffeaRun, ...]:
        """The runs of coffea."""
        return coffea_runs(self.recording)

    @classmethod
    def of(cls, recording: Recording, start_us: int, stop_us: int) -> Facts:
        """Compute the facts of a recording between two times."""
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

    def thread_time(self, us: int, how: str) -> Gain | None:
        """Return a saving as a share of thread time."""
        return gain(us, self.split.thread_us, "threads", how)

    def wall_time(self, us: int, how: str) -> Gain | None:
        """Return a saving as a share of the run."""
        return gain(us, self.stop_us - self.start_us, "run", how)


def gain(us: int, total_us: int, of: str, how: str) -> Gain | None:
    """Return a saving as a share of a total; None if either is zero."""
    if us <= 0 or total_us <= 0:
        return None
    return Gain(min(us, total_us), of, min(us, total_us) / total_us, how)


def error_line(failure: Failure) -> str:
    """Return an error in one line: the type and message of its cause."""
    type_, message = failure.cause_type or failure.type, failure.cause_message or failure.message
    text = " ".join(message.split())
    text = text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
    return f"{type_ or 'Unnamed error'}: {text}" if text else type_ or "Unnamed error"


def describe_losses(lost: Sequence[Worker]) -> str:
    """Return how workers were lost, as a sentence without its full stop."""
    verdicts = {worker.verdict for worker in lost}
    verdict = verdicts.pop() if len(verdicts) == 1 else ""
    if len(lost) > 1:
        how = "were killed for exceeding their memory limit" if verdict == "memory kill" else "were lost"
        return f"{units.count(len(lost))} workers {how}"
    (worker,) = lost
    name = f"Worker {worker.name or worker.worker or worker.server_id}"
    if verdict == "memory kill":
        # Samples are seconds apart and may have missed the peak; the nanny says at which size it killed the worker.
        killed_at = re.search(r"killed it at (\d+) bytes", worker.evidence)
        peak = max(worker.peak_memory, int(killed_at[1]) if killed_at else 0)
        if 0 < worker.memory_limit <= 2 * peak:
            return f"{name} was killed at {units.percent(peak / worker.memory_limit)} of its memory limit"
        return f"{name} was killed for exceeding its memory limit"
    return f"{name} lost its connection" if verdict == "lost connection" else f"{name} was lost"


def _lost_workers(facts: Facts) -> Iterator[Finding]:
    for verdict, advice in LOST.items():
        lost = [worker for worker in facts.workers if worker.verdict == verdict]
        if not lost:
            continue
        recomputed_us = sum(worker.recomputed_us for worker in lost)
        results = sum(max(0, worker.lost_count) for worker in lost)
        parts = [lost[0].evidence] if lost[0].evidence else []
        recomputed = sum(worker.recomputed for worker in lost)
        parts += (
            [f"{units.counted(results, 'result')} lost with it, {units.count(recomputed)} recomputed"]
            if results
            else []
        )
        parts += [f"{units.duration(recomputed_us)} of compute time was wasted"] if recomputed_us else []
        parts += _suspects(facts.recording, lost)
        ends = [worker.end_us for worker in lost if worker.end_us]
        first, last = min(ends, default=facts.start_us), max(ends, default=facts.stop_us)
        saved = facts.thread_time(
            recomputed_us, "compute time of results that were lost with the worker and recomputed"
        )
        yield Finding("lost worker", describe_losses(lost), _sentence(parts), advice, "workers", first, last, saved, 1)


def _suspects(recording: Recording, lost: Sequence[Worker]) -> list[str]:
    """Return which tasks the lost workers were executing when they died."""
    tasks = recording["tasks"]
    died = where(tasks.strings("status"), "killed", "error") & where(tasks.strings("worker"), *(w.worker for w in lost))
    rows = np.flatnonzero(died)
    ends = np.array(sorted({worker.end_us for worker in lost}), dtype=np.int64)
    after = np.searchsorted(ends, tasks["stop_us"][rows] - SHORT_US)
    near = (after < len(ends)) & (ends[np.minimum(after, len(ends) - 1)] < tasks["stop_us"][rows] + SHORT_US)
    names = Counter(tasks.strings("prefix").take(rows[near]).to_numpy().tolist())
    if not names:
        return []
    listed = ", ".join(f"{name or 'unnamed'} ({units.count(count)})" for name, count in names.most_common(3))
    return [f"executing at that moment: {listed}"]


def _final_errors(facts: Facts) -> Iterator[Finding]:
    """Yield errors that were not retried. They cost the result, which cannot be put in numbers."""
    advice = "The last lines of the traceback show what failed and where."
    for failure in facts.errors[:MAX_ERRORS]:
        if final := failure.count - failure.retried:
            retried = f"; {_failures(failure.retried)} retried" if failure.retried else ""
            others = f"; {units.counted(failure.dependents, 'dependent')} could not run" if failure.dependents else ""
            evidence = f"{units.counted(final, 'task')} failed in {_prefixes(failure)}{retried}{others}."
            yield replace(_error(failure, evidence, advice), rank=0)


def _retried_errors(facts: Facts) -> Iterator[Finding]:
    advice = (
        "The retries succeeded. If the error recurs, look for an unreliable resource such as storage or the network."
    )
    for failure in facts.errors[:MAX_ERRORS]:
        if failure.count == failure.retried:
            shared = any(other is not failure and {*other.prefixes} & {*failure.prefixes} for other in facts.errors)
            # The recording counts each error, but does not say which execution failed with which.
            wasted = 0 if shared else _retried_us(facts.recording, failure.prefixes)
            saved = facts.thread_time(wasted, "compute time of the executions that failed and were retried")
            yield _error(failure, f"{_failures(failure.count)} retried in {_prefixes(failure)}.", advice, saved)


def _failures(count: int) -> str:
    return f"{units.counted(count, 'failure')} {'was' if count == 1 else 'were'}"


def _prefixes(failure: Failure) -> str:
    return ", ".join(prefix for prefix in failure.prefixes if prefix) or "unnamed tasks"


def _error(failure: Failure, evidence: str, advice: str, saved: Gain | None = None) -> Finding:
    return Finding("error", error_line(failure), evidence, advice, "errors", failure.first_us, failure.last_us, saved)


def _retried_us(recording: Recording, names: Sequence[str]) -> int:
    tasks = recording["tasks"]
    rows = where(tasks.strings("status"), "retried") & where(tasks.strings("prefix"), *names)
    return int(np.maximum(tasks["stop_us"] - tasks["start_us"], 0)[rows].sum())


def _data_movement(facts: Facts) -> Iterator[Finding]:
    advice = {
        "transfer": "Use larger chunks, or fewer workers with more threads each, so that more inputs are already local.",
        "disk": "Give workers more memory or use smaller chunks, so that results need not be spilled.",
    }
    activities = {"transfer": "on transfers between workers", "disk": "reading and writing spilled results"}
    for category, activity in activities.items():
        us = facts.split.split[category]
        if us > DATA_SHARE * facts.split.thread_us:
            title = f"Threads spent {units.percent(us / facts.split.thread_us)} of their time {activity}"
            evidence = f"{units.duration(us)} of {units.duration(facts.split.thread_us)} of thread time."
            view = "bandwidth" if category == "transfer" else "memory"
            saved = facts.thread_time(us, f"all thread time spent {activity}")
            yield facts.finding("data movement", title, evidence, advice[category], view, saved)


def _short_tasks(facts: Facts) -> Iterator[Finding]:
    tasks = facts.recording["tasks"]
    ran = where(tasks.strings("status"), *EXECUTED)
    lengths = np.sort((tasks["stop_us"] - tasks["start_us"])[ran])
    if len(lengths) > MANY_TASKS and percentile(lengths, 0.5) < SHORT_US:
        median = units.duration(max(0, percentile(lengths, 0.5)))
        title = f"Half of {units.counted(len(lengths), 'task')} took less than {units.duration(SHORT_US)}"
        evidence = f"The median is {median}. Dask's own overhead is up to 1 ms per task, however short the task is."
        advice = "Use larger chunks or partitions, or batch several calls into one task."
        gaps = short_gaps_us(tasks, np.flatnonzero(ran), SHORT_US)
        saved = facts.thread_time(gaps, f"pauses under {units.duration(SHORT_US)} between two tasks on the same thread")
        yield facts.finding("overhead", title, evidence, advice, "stream", saved)


def _stragglers(facts: Facts) -> Iterator[Finding]:
    run_us, tasks = facts.stop_us - facts.start_us, facts.recording["tasks"]
    durations = tasks["stop_us"] - tasks["start_us"]
    usual = where(tasks.strings("status"), *EXECUTED) & ~_first_on_worker(tasks)
    for prefix in facts.prefixes:
        rows = np.flatnonzero(usual & where(tasks.strings("prefix"), prefix.prefix))
        if not len(rows) or prefix.max_us <= max(STRAGGLER_RATIO * prefix.p50_us, STRAGGLER_SHARE * run_us):
            continue
        row = int(rows[np.argmax(durations[rows])])
        longest = int(durations[row])
        if longest > STRAGGLER_RATIO * prefix.p50_us > 0 and longest > STRAGGLER_SHARE * run_us:
            saved = facts.wall_time(
                min(alone_us(tasks["start_us"], tasks["stop_us"], row), longest - prefix.p50_us),
                "time in which no other task was computing, at most its duration beyond the median",
            )
            title = f"One {prefix.prefix or 'unnamed'} task took {units.duration(longest)}"
            evidence = (
                f"The median of {units.counted(prefix.count, 'task')} is {units.duration(prefix.p50_us)}. "
                f"This one took {units.percent(longest / run_us) if run_us else 'all'} of the run."
            )
            advice = "Split its input, or partition the data more evenly."
            start, stop = int(tasks["start_us"][row]), int(tasks["stop_us"][row])
            yield Finding("straggler", title, evidence, advice, "stream", start, stop, saved)


def _first_on_worker(tasks: Table) -> Array:
    """Return a mask of the first execution of each prefix on each worker: it imports modules and compiles code."""
    prefix, worker = tasks.strings("prefix"), tasks.strings("worker")
    groups = prefix.codes.astype(np.int64) * max(1, len(worker.values)) + worker.codes
    order = np.lexsort((tasks["start_us"], groups))
    _, firsts = np.unique(groups[order], return_index=True)
    found = np.zeros(tasks.rows, dtype=bool)
    # A worker with one execution of a prefix has no later one to compare it with: that one counts as usual.
    several = np.diff(firsts, append=tasks.rows) > 1
    found[order[firsts[several]]] = True
    return found


def alone_us(starts: Array, stops: Array, row: int) -> int:
    """Return for how long an execution was the only one computing."""
    start, stop = int(starts[row]), int(stops[row])
    others = np.delete(np.arange(len(starts)), row)
    return max(0, stop - start - union_us(np.maximum(starts[others], start), np.minimum(stops[others], stop)))


#: For each reason to wait: what tasks did, and a suggestion.
WAITING = {
    "core": (
        "waited for a CPU core",
        "More threads want to run than the host has cores. Use fewer worker threads per host, or look for other programs on it.",
    ),
    "gil": (
        "waited for Python's global interpreter lock (GIL)",
        "Use more worker processes with fewer threads each, or libraries that release the GIL.",
    ),
    "lock": (
        "waited for locks, events or queues",
        "The profile shows which. Hold locks for a shorter time, or avoid them.",
    ),
    "network": (
        "waited for the network",
        "Read larger pieces at a time, use more threads per worker, or run the cluster closer to the data.",
    ),
    "file": ("waited for files", "Use faster storage or larger reads. More threads per worker can read in parallel."),
    "subprocess": ("waited for programs they had started", "The profile shows where they are started."),
    "native": (
        "waited for threads of a library, such as BLAS, or for threads they had started",
        "These threads use cores that Dask does not count. Set OMP_NUM_THREADS=1 on workers, give each worker one thread, "
        "or compute in the task's own thread.",
    ),
    "blocked": ("slept or were blocked in native code", "The profile shows the lines in which they waited."),
    "unknown": ("were off-CPU", "They were too short to be sampled, so the cause is not known."),
}


def _waiting(facts: Facts) -> Iterator[Finding]:
    split = facts.split
    for reason, us in split.waiting_us.items():
        if facts.is_relevant(us):
            what, advice = WAITING[reason]
            title = f"Tasks {what} for {units.percent(us / split.compute_us)} of their run time"
            evidence = f"{units.duration(us)} of {units.duration(split.compute_us)} of compute time."
            if reason == "core":
                evidence += _host_load(facts.recording)
            saved = facts.thread_time(us, f"compute time in which tasks {what}")
            rank = 3 if reason in ("blocked", "unknown") else 2
            yield facts.finding("waiting", title, evidence, advice, "profile", saved, rank)


def _host_load(recording: Recording) -> str:
    """Return how busy the hosts of the workers were, as a sentence."""
    table = recording["processes"]
    capacity = float((table["wall_us"] * table["host_cores"]).sum())
    return (
        f" The hosts were {units.percent(min(1.0, float(table['host_cpu_us'].sum()) / capacity))} busy."
        if capacity
        else ""
    )


#: For each reason to be idle: the explanation, and a suggestion.
IDLE = {
    "nothing submitted": (
        "nothing was submitted",
        "The client was busy or waiting. Submit work without waiting for each result, or use a smaller cluster.",
    ),
    "too few tasks": (
        "too few tasks could run in parallel",
        "Split the work into more and smaller tasks, or use fewer threads.",
    ),
    "not started": (
        "their tasks had been assigned but not started",
        "Workers were busy fetching or deserializing inputs, or their event loops were blocked. Look at transfers and worker logs.",
    ),
    "queued": (
        "tasks were waiting at the scheduler",
        "The scheduler did not send them in time. Look at its CPU usage, and use fewer, larger tasks.",
    ),
    "elsewhere": (
        "tasks were waiting at other workers",
        "Restrictions or the location of data kept tasks on other workers. Remove restrictions, or spread the data.",
    ),
    "paused": (
        "workers were paused to save memory",
        "Use smaller chunks or workers with more memory, and keep fewer results in memory.",
    ),
    "starting": ("workers had just joined", "Start workers before submitting work, or keep them between computations."),
    "cannot run": (
        "the remaining tasks need a worker that does not exist",
        "Add a worker with the resources these tasks ask for, or cancel them.",
    ),
    "unknown": (
        "no task ran, and the recording does not say why",
        "The scheduler may have been busy with a graph, or the client with the next one. Look at the logs at that time.",
    ),
}


_IDLE_RANKS = {"cannot run": 1, "unknown": 3}


def _idle(facts: Facts) -> Iterator[Finding]:
    for reason, us in facts.split.idle.us.items():
        if facts.is_relevant(us):
            explanation, advice = IDLE[reason]
            title = f"Threads were idle for {units.percent(us / facts.split.thread_us)} of their time: {explanation}"
            evidence = f"{units.duration(us)} of {units.duration(facts.split.thread_us)} of thread time."
            saved = facts.thread_time(us, f"thread time in which {explanation}")
            yield facts.finding("idle", title, evidence, advice, "stream", saved, _IDLE_RANKS.get(reason, 2))
    us = facts.split.idle.no_workers_us
    if us >= MIN_US:
        title = f"Work waited {units.duration(us)} for a worker"
        evidence = f"{units.duration(us)} of {units.duration(facts.stop_us - facts.start_us)} passed without a worker."
        advice = "Check why workers did not start. Keep a minimum number of workers if the cluster scales by itself."
        yield facts.finding("idle", title, evidence, advice, "workers", facts.wall_time(us, "time without workers"), 1)


def _incomplete(facts: Facts) -> Iterator[Finding]:
    parts = [part for part in completeness(facts.recording) if part.dropped]
    if parts:
        dropped = sum(part.dropped for part in parts)
        title = f"{units.counted(dropped, 'row')} {'was' if dropped == 1 else 'were'} dropped"
        evidence = _sentence([part.share(part.dropped) for part in parts])
        advice = "Totals of computations and task groups are exact. Views of individual rows are incomplete."
        yield facts.finding("incomplete", title, evidence, advice, "tables", rank=3)


def _gaps(facts: Facts) -> Iterator[Finding]:
    gaps = recording_gaps(facts.recording)
    if gaps:
        title = f"Nothing was recorded for {units.duration(sum(stop - start for start, stop in gaps))}"
        advice = "Recording was ended and started again. The time between counts as idle."
        evidence = _sentence([describe_gap(*gap) for gap in gaps])
        yield facts.finding("incomplete", title, evidence, advice, "tables", rank=3)


def _sentence(parts: Sequence[str]) -> str:
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


RULES: tuple[Callable[[Facts], Iterator[Finding]], ...] = (
    _final_errors,
    _lost_workers,
    _retried_errors,
    _stragglers,
    _data_movement,
    _waiting,
    _idle,
    _short_tasks,
    _incomplete,
    _gaps,
)
