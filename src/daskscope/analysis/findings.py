"""Facts worth knowing, each with its evidence, one thing to do and what that could save; a handful of plain rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from daskscope import units
from daskscope.analysis.breakdown import Breakdown
from daskscope.analysis.completeness import completeness
from daskscope.analysis.failures import Failure, failures
from daskscope.analysis.gains import Gain, alone_us, gain, short_gaps_us
from daskscope.analysis.grouping import percentile, where
from daskscope.analysis.prefixes import EXECUTED, Prefix, prefixes
from daskscope.analysis.summary import extent
from daskscope.analysis.workers import LOST, Worker, workers
from daskscope.model.recording import Recording

#: Failures that are told one by one.
MOST_FAILURES = 3
#: A part of thread time from which moving data is worth a word.
MUCH = 0.2
SHORT_US = 10_000
MANY_TASKS = 1_000
#: Times its median that the longest execution of a prefix takes, and the part of the run, to be called a straggler.
STRAGGLER = 10
STRAGGLER_PART = 0.1
TEXT_LIMIT = 200


@dataclass(frozen=True)
class Finding:
    """A fact, what proves it, what follows, and where and when to look."""

    #: lost worker, error, data movement, overhead, straggler, waiting, incomplete
    kind: str
    title: str
    evidence: str
    advice: str
    view: str
    start_us: int
    stop_us: int
    #: What could be saved at most; none where the recording does not say.
    gain: Gain | None = None


@dataclass(frozen=True)
class Facts:
    """What the rules look at."""

    recording: Recording
    split: Breakdown
    prefixes: tuple[Prefix, ...]
    start_us: int
    stop_us: int

    def whole(self, kind: str, title: str, evidence: str, advice: str, view: str, saved: Gain | None = None) -> Finding:
        """A finding about the whole run."""
        return Finding(kind, title, evidence, advice, view, self.start_us, self.stop_us, saved)

    def thread_time(self, us: int, how: str) -> Gain | None:
        return gain(us, self.split.thread_us, "threads", how)

    def wall_time(self, us: int, how: str) -> Gain | None:
        return gain(us, self.stop_us - self.start_us, "run", how)


def findings(
    recording: Recording, split: Breakdown, by_prefix: tuple[Prefix, ...] | None = None
) -> tuple[Finding, ...]:
    """Everything the rules find: the error that stood, then by the part of the run or of thread time that could be saved.

    ``by_prefix`` are its prefixes where the caller has them already.
    """
    start, stop = extent(recording)
    facts = Facts(recording, split, prefixes(recording) if by_prefix is None else by_prefix, start, stop)
    first, *others = (*_failed(facts), None)
    found = [*filter(None, others), *(finding for rule in RULES for finding in rule(facts))]
    found.sort(key=lambda finding: -finding.gain.share if finding.gain else 0)
    return (first, *found) if first else tuple(found)


def said(failure: Failure) -> str:
    """An error in one line: its cause and what it says."""
    type_, message = failure.cause_type or failure.type, failure.cause_message or failure.message
    text = " ".join(message.split())
    text = text if len(text) <= TEXT_LIMIT else f"{text[: TEXT_LIMIT - 1]}…"
    return f"{type_ or 'An error without a name'}: {text}" if text else type_ or "An error without a name"


def what_became(gone: Sequence[Worker]) -> str:
    """What became of workers that were lost for one reason, or of several."""
    verdicts = {worker.verdict for worker in gone}
    verdict = verdicts.pop() if len(verdicts) == 1 else ""
    if len(gone) > 1:
        how = {"memory kill": "were killed for their memory", "vanished": "vanished"}.get(verdict, "were lost")
        return f"{units.count(len(gone))} workers {how}"
    (worker,) = gone
    name = f"Worker {worker.name or worker.worker or worker.server_id}"
    if verdict == "memory kill":
        known = worker.memory_limit > 0 and worker.peak_memory > 0
        return f"{name} was killed at {_part(worker)} of its memory" if known else f"{name} was killed for its memory"
    return f"{name} vanished" if verdict == "vanished" else f"{name} lost its connection"


def _part(worker: Worker) -> str:
    return units.percent(worker.peak_memory / worker.memory_limit)


def _lost_workers(facts: Facts) -> Iterator[Finding]:
    if not where(facts.recording["workers"].strings("verdict"), *LOST).any():
        return
    lost = [worker for worker in workers(facts.recording, facts.stop_us) if worker.verdict in LOST]
    for verdict, advice in LOST.items():
        gone = [worker for worker in lost if worker.verdict == verdict]
        if not gone:
            continue
        again = sum(worker.recomputed_us for worker in gone)
        results = sum(max(0, worker.lost_count) for worker in gone)
        parts = [gone[0].evidence] if gone[0].evidence else []
        parts += [f"{units.counted(results, 'result')} had to be computed again"] if results else []
        parts += [f"{units.duration(again)} of computing was lost"] if again else []
        ends = [worker.end_us for worker in gone if worker.end_us]
        first, last = min(ends, default=facts.start_us), max(ends, default=facts.stop_us)
        saved = facts.thread_time(again, "computing whose results were lost with it and that ran again")
        yield Finding("lost worker", what_became(gone), _sentence(parts), advice, "workers", first, last, saved)


def _failed(facts: Facts) -> Iterator[Finding]:
    """Errors that stood: what they cost is the result, and that has no number."""
    advice = "Read the traceback: its last lines say what failed and where."
    for failure in failures(facts.recording)[:MOST_FAILURES]:
        if final := failure.count - failure.retried:
            yield _error(failure, f"{units.count(final)} of them for good", advice, None)


def _retried(facts: Facts) -> Iterator[Finding]:
    advice = "It went well in the end; if it comes back, look for what is not reliable there."
    found = failures(facts.recording)
    for failure in found[:MOST_FAILURES]:
        if failure.count == failure.retried:
            shared = any(other is not failure and {*other.prefixes} & {*failure.prefixes} for other in found)
            # Which execution failed with which error is not recorded, only how often each did.
            wasted = 0 if shared else _retried_us(facts.recording, failure.prefixes)
            saved = facts.thread_time(wasted, "computing of the executions that failed and ran again")
            yield _error(failure, "all of them tried again", advice, saved)


def _error(failure: Failure, ended: str, advice: str, saved: Gain | None) -> Finding:
    where_ = ", ".join(prefix for prefix in failure.prefixes if prefix) or "tasks without a name"
    evidence = f"{units.counted(failure.count, 'execution')} of {where_} failed, {ended}."
    return Finding("error", said(failure), evidence, advice, "errors", failure.first_us, failure.last_us, saved)


def _retried_us(recording: Recording, names: Sequence[str]) -> int:
    tasks = recording["tasks"]
    rows = where(tasks.strings("status"), "retried") & where(tasks.strings("prefix"), *names)
    return int(np.maximum(tasks["stop_us"] - tasks["start_us"], 0)[rows].sum())


def _moving(facts: Facts) -> Iterator[Finding]:
    advice = {
        "transfer": "Use larger chunks or fewer workers with more threads, so that inputs are on the worker already.",
        "disk": "Give workers more memory or make chunks smaller, so that results need not be spilled.",
    }
    words = {"transfer": "moving results between workers", "disk": "reading and writing spilled results"}
    for category, text in words.items():
        us = facts.split.split[category]
        if us > MUCH * facts.split.thread_us:
            share = units.percent(us / facts.split.thread_us)
            evidence = f"{units.duration(us)} of {units.duration(facts.split.thread_us)} of thread time."
            view = "bandwidth" if category == "transfer" else "memory"
            saved = facts.thread_time(us, f"all thread time spent {text}")
            yield facts.whole("data movement", f"Threads spent {share} {text}", evidence, advice[category], view, saved)


def _short_tasks(facts: Facts) -> Iterator[Finding]:
    tasks = facts.recording["tasks"]
    ran = where(tasks.strings("status"), *EXECUTED)
    lengths = np.sort((tasks["stop_us"] - tasks["start_us"])[ran])
    if len(lengths) > MANY_TASKS and percentile(lengths, 0.5) < SHORT_US:
        median = units.duration(max(0, percentile(lengths, 0.5)))
        title = f"Half of {units.counted(len(lengths), 'task')} took less than {units.duration(SHORT_US)}"
        evidence = f"The median is {median}; Dask itself needs up to 1 ms for each task, however short it is."
        advice = "Use larger chunks or partitions, or batch several calls."
        between = short_gaps_us(tasks, np.flatnonzero(ran), SHORT_US)
        saved = facts.thread_time(between, f"pauses under {units.duration(SHORT_US)} between two tasks of one thread")
        yield facts.whole("overhead", title, evidence, advice, "stream", saved)


def _stragglers(facts: Facts) -> Iterator[Finding]:
    run = facts.stop_us - facts.start_us
    for prefix in facts.prefixes:
        if prefix.max_us > STRAGGLER * prefix.p50_us > 0 and prefix.max_us > STRAGGLER_PART * run:
            row = _longest(facts.recording, prefix.prefix)
            tasks = facts.recording["tasks"]
            alone = alone_us(tasks["start_us"], tasks["stop_us"], row)
            saved = facts.wall_time(
                min(alone, prefix.max_us - prefix.p50_us),
                "time in which it alone computed, at most what it took beyond the median",
            )
            title = f"A task of {prefix.prefix or 'no name'} took {units.duration(prefix.max_us)}"
            evidence = (
                f"The median of {units.counted(prefix.count, 'task')} is {units.duration(prefix.p50_us)}; "
                f"this one took {units.percent(prefix.max_us / run) if run else 'all'} of the run."
            )
            advice = "Split its input, or divide the data evenly."
            start, stop = int(tasks["start_us"][row]), int(tasks["stop_us"][row])
            yield Finding("straggler", title, evidence, advice, "stream", start, stop, saved)


def _longest(recording: Recording, prefix: str) -> int:
    tasks = recording["tasks"]
    mine = np.flatnonzero(where(tasks.strings("prefix"), prefix) & where(tasks.strings("status"), *EXECUTED))
    return int(mine[np.argmax((tasks["stop_us"] - tasks["start_us"])[mine])])


def _waiting(facts: Facts) -> Iterator[Finding]:
    noncpu, compute = facts.split.split["noncpu"], facts.split.compute_us
    if noncpu * 2 > compute:
        title = f"Tasks waited {units.percent(noncpu / compute)} of the time they ran"
        evidence = (
            f"Of {units.duration(compute)} of computing, threads used the CPU for {units.duration(compute - noncpu)}."
        )
        advice = "They wait for storage, the network or the interpreter lock: the profile shows in which line."
        saved = facts.thread_time(noncpu, "all thread time in which tasks did not use the CPU")
        yield facts.whole("waiting", title, evidence, advice, "profile", saved)


def _incomplete(facts: Facts) -> Iterator[Finding]:
    parts = [part for part in completeness(facts.recording) if part.dropped]
    if parts:
        dropped = sum(part.dropped for part in parts)
        evidence = _sentence(
            [
                f"{units.count(p.dropped)} of {units.counted(p.rows + p.dropped + p.missing, 'row')} of {p.table}"
                for p in parts
            ]
        )
        advice = "Totals of computations and groups are exact; views of single rows show a part."
        yield facts.whole(
            "incomplete", f"{units.counted(dropped, 'row')} could not be kept", evidence, advice, "tables"
        )


def _sentence(parts: Sequence[str]) -> str:
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


RULES: tuple[Callable[[Facts], Iterator[Finding]], ...] = (
    _lost_workers,
    _retried,
    _stragglers,
    _moving,
    _waiting,
    _short_tasks,
    _incomplete,
)
