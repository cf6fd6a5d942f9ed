"""Rules about failures: tasks that failed, retries, lost workers, results that were recomputed, and gaps in the recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from daskscope import units
from daskscope.analysis.columns.grouping import where
from daskscope.analysis.failures import Failure, retried_tasks
from daskscope.analysis.summary import completeness, describe_gap, recording_gaps
from daskscope.analysis.workers import LOST, Worker
from daskscope.insights.facts import RELEVANT, Facts, Finding, Gain, Rule, describe_losses, error_line, sentence
from daskscope.model.recording import Recording

#: Errors listed one by one.
MAX_ERRORS = 3
WITH_TRACEBACK = "The last lines of the traceback show what failed and where."
WITHOUT_TRACEBACK = "No traceback was recorded, so the message is all there is. The logs of its worker may say more."


def _error_finding(failure: Failure, evidence: str, advice: str, saved: Gain | None = None, rank: int = 2) -> Finding:
    """Return a finding about an error group."""
    first, last = failure.first_us, failure.last_us
    return Finding("error", error_line(failure), evidence, advice, "errors", first, last, saved, rank)


def _failed_prefixes(failure: Failure) -> str:
    return ", ".join(prefix for prefix in failure.prefixes if prefix) or "unnamed tasks"


def _were_retried(count: int) -> str:
    return f"{units.counted(count, 'failure')} {'was' if count == 1 else 'were'} retried"


def _shares_prefix(facts: Facts, failure: Failure) -> bool:
    """Return whether tasks of the same prefixes also failed with another error."""
    return any(other is not failure and {*other.prefixes} & {*failure.prefixes} for other in facts.errors)


def describe_retries(facts: Facts, failure: Failure) -> str:
    """Return how the retries of an error group ended, as a sentence without its full stop; empty if that is not known."""
    # The recording counts each error, but does not say which execution failed with which.
    found = None if _shares_prefix(facts, failure) else retried_tasks(facts.recording, failure.prefixes)
    if found is None:
        return ""
    retried, succeeded = found
    if succeeded == retried:
        return "all retries succeeded"
    return f"{units.count(succeeded)} of {units.counted(retried, 'retried task')} succeeded"


def _failed_tasks(facts: Facts) -> Iterator[Finding]:
    """Yield errors that were not retried. They cost the result, which cannot be put in numbers."""
    for failure in facts.errors[:MAX_ERRORS]:
        advice = WITH_TRACEBACK if failure.traceback else WITHOUT_TRACEBACK
        if final := failure.count - failure.retried:
            retried = f"; {_were_retried(failure.retried)}" if failure.retried else ""
            others = f"; {units.counted(failure.dependents, 'dependent')} could not run" if failure.dependents else ""
            evidence = f"{units.counted(final, 'task')} failed in {_failed_prefixes(failure)}{retried}{others}."
            yield _error_finding(failure, evidence, advice, rank=0)


FAILED_TASKS = Rule(
    "failed-tasks",
    "Tasks failed for good",
    "A failed task and everything that depends on it have no result.",
    "Always; the three most frequent error groups are listed.",
    _failed_tasks,
)


#: Retries per task that failed for good.
MIN_RETRIES = 1.0


def _retries_in_vain(facts: Facts) -> Iterator[Finding]:
    advice = "Every attempt fails with the same error, so retries only delay it. Leave out retries= until it is fixed."
    for failure in facts.errors[:MAX_ERRORS]:
        final = failure.count - failure.retried
        if final and failure.retried >= MIN_RETRIES * final and not _has_success(facts, failure):
            retries = units.counted(failure.retried, "retry", "retries")
            evidence = f"{retries} did not prevent {units.counted(final, 'final failure')}: {error_line(failure)}."
            title = f"Retries of {_failed_prefixes(failure)} never succeeded"
            yield Finding("retries", title, evidence, advice, "errors", failure.first_us, failure.last_us, rank=1)


def _has_success(facts: Facts, failure: Failure) -> bool:
    """Return whether a task of these prefixes succeeded after a retry."""
    tasks = facts.recording["tasks"]
    mine, status = where(tasks.strings("prefix"), *failure.prefixes), tasks.strings("status")
    keys = tasks.strings("key")
    retried = set(keys.take(np.flatnonzero(mine & where(status, "retried"))).to_numpy().tolist())
    return not retried.isdisjoint(keys.take(np.flatnonzero(mine & where(status, "ok"))).to_numpy().tolist())


RETRIES_IN_VAIN = Rule(
    "retries-in-vain",
    "Retries never succeed",
    "Retries help against unreliable resources. An error in the code or in its input comes back every time.",
    "Every task that failed for good was retried at least once on average, and no retry of its prefix succeeded.",
    _retries_in_vain,
)


def _retried_failures(facts: Facts) -> Iterator[Finding]:
    advice = "If the error recurs, look for an unreliable resource such as storage or the network."
    for failure in facts.errors[:MAX_ERRORS]:
        if failure.count == failure.retried:
            wasted = 0 if _shares_prefix(facts, failure) else _retried_us(facts.recording, failure.prefixes)
            saved = facts.thread_time(wasted, "compute time of the executions that failed and were retried")
            ended = describe_retries(facts, failure)
            evidence = f"{_were_retried(failure.count)} in {_failed_prefixes(failure)}{f'; {ended}' if ended else ''}."
            yield _error_finding(failure, evidence, advice, saved)


def _retried_us(recording: Recording, names: Sequence[str]) -> int:
    tasks = recording["tasks"]
    rows = where(tasks.strings("status"), "retried") & where(tasks.strings("prefix"), *names)
    return int(np.maximum(tasks["stop_us"] - tasks["start_us"], 0)[rows].sum())


RETRIED_FAILURES = Rule(
    "retried-failures",
    "All failures of an error group were retried",
    "The time of the failed attempts is lost, and the next retry may fail.",
    "Always; the three most frequent error groups are listed. Whether the retries succeeded is part of the evidence.",
    _retried_failures,
)


# ---------------------------------------------------------------- workers

#: Executions that end this close to the end of their worker ended with it.
NEAR_END_US = 10_000


def _lost_workers(facts: Facts) -> Iterator[Finding]:
    for verdict, advice in LOST.items():
        lost = [worker for worker in facts.workers if worker.verdict == verdict]
        if not lost:
            continue
        recomputed_us = sum(worker.recomputed_us for worker in lost)
        results = sum(max(0, worker.lost_count) for worker in lost)
        parts = [lost[0].evidence] if lost[0].evidence else []
        recomputed, whose = sum(worker.recomputed for worker in lost), "it" if len(lost) == 1 else "them"
        parts += (
            # To compute a lost result again may need results that had been released.
            [f"{units.counted(results, 'result')} lost with {whose}, {units.count(recomputed)} recomputed"]
            if results
            else []
        )
        killed_us = _killed_us(facts.recording, lost)
        parts += _wasted(recomputed_us, killed_us)
        parts += _suspects(facts.recording, lost)
        ends = [worker.end_us for worker in lost if worker.end_us]
        first, last = min(ends, default=facts.start_us), max(ends, default=facts.stop_us)
        saved = facts.thread_time(
            recomputed_us + killed_us,
            f"compute time of tasks and results that were lost with the worker{'' if len(lost) == 1 else 's'}",
        )
        yield Finding("lost worker", describe_losses(lost), sentence(parts), advice, "workers", first, last, saved, 1)


def _killed_us(recording: Recording, lost: Sequence[Worker]) -> int:
    """Return the time of executions that ended with their worker."""
    tasks = recording["tasks"]
    rows = where(tasks.strings("status"), "killed") & where(tasks.strings("worker"), *(w.worker for w in lost))
    return int(np.maximum(tasks["stop_us"] - tasks["start_us"], 0)[rows].sum())


def _wasted(recomputed_us: int, killed_us: int) -> list[str]:
    """Return the compute time that a loss cost, in the same sum as the thread time on the page."""
    if not recomputed_us + killed_us:
        return []
    both = f": {units.duration(recomputed_us)} for lost results, {units.duration(killed_us)} in tasks that were killed"
    total = units.duration(recomputed_us + killed_us)
    return [f"{total} of compute time was wasted{both if recomputed_us and killed_us else ''}"]


def _suspects(recording: Recording, lost: Sequence[Worker]) -> list[str]:
    """Return which tasks the lost workers were executing when they died."""
    tasks = recording["tasks"]
    died = where(tasks.strings("status"), "killed", "error") & where(tasks.strings("worker"), *(w.worker for w in lost))
    rows = np.flatnonzero(died)
    ends = np.array(sorted({worker.end_us for worker in lost}), dtype=np.int64)
    after = np.searchsorted(ends, tasks["stop_us"][rows] - NEAR_END_US)
    near = (after < len(ends)) & (ends[np.minimum(after, len(ends) - 1)] < tasks["stop_us"][rows] + NEAR_END_US)
    names = Counter(tasks.strings("prefix").take(rows[near]).to_numpy().tolist())
    if not names:
        return []
    listed = ", ".join(f"{name or 'unnamed'} ({units.count(count)})" for name, count in names.most_common(3))
    return [f"executing at that moment: {listed}"]


LOST_WORKERS = Rule(
    "lost-workers",
    "Workers were lost",
    "Results that were only on a lost worker are recomputed, and the task that killed it may kill the next one.",
    "Always. Workers that were retired or closed are not lost.",
    _lost_workers,
)


def _recomputed_results(facts: Facts) -> Iterator[Finding]:
    left = [worker for worker in facts.workers if worker.recomputed and worker.verdict not in LOST]
    us = sum(worker.recomputed_us for worker in left)
    if not facts.is_relevant(us):
        return
    count = sum(worker.recomputed for worker in left)
    yield facts.finding(
        "workers",
        f"{units.counted(count, 'result')} {'was' if count == 1 else 'were'} recomputed after {_whose(len(left))} left",
        f"{units.duration(us)} of compute time was wasted. {left[0].name or left[0].worker} left: "
        f"{left[0].evidence or left[0].verdict}.",
        "Retire workers, so that their results are moved first: client.retire_workers(), cluster.scale(), or --lifetime with "
        "--lifetime-stagger for batch jobs that end.",
        "workers",
        facts.thread_time(us, "compute time of results that were recomputed"),
    )


def _whose(workers: int) -> str:
    return "a worker" if workers == 1 else units.counted(workers, "worker")


RECOMPUTED_RESULTS = Rule(
    "recomputed-results",
    "Results are recomputed after their workers were closed",
    "A worker that is closed without being retired takes its results with it.",
    f"From {RELEVANT}. Results of workers that were lost are part of that finding.",
    _recomputed_results,
)


# ---------------------------------------------------------------- recording


def _incomplete_recording(facts: Facts) -> Iterator[Finding]:
    yield from _dropped(facts)
    yield from _gaps(facts)


def _dropped(facts: Facts) -> Iterator[Finding]:
    parts = [part for part in completeness(facts.recording) if part.dropped]
    if parts:
        dropped = sum(part.dropped for part in parts)
        title = f"{units.counted(dropped, 'row')} {'was' if dropped == 1 else 'were'} dropped"
        evidence = sentence([part.share(part.dropped) for part in parts])
        advice = "Totals of computations and task groups are exact. Views of individual rows are incomplete."
        yield facts.finding("incomplete", title, evidence, advice, "overview", rank=3)


def _gaps(facts: Facts) -> Iterator[Finding]:
    gaps = recording_gaps(facts.recording)
    if gaps:
        title = f"Nothing was recorded for {units.duration(sum(stop - start for start, stop in gaps))}"
        advice = "Recording was ended and started again. The time between counts as idle."
        evidence = sentence([describe_gap(*gap) for gap in gaps])
        yield facts.finding("incomplete", title, evidence, advice, "overview", rank=3)


INCOMPLETE_RECORDING = Rule(
    "incomplete-recording",
    "The recording is incomplete",
    "Rows that were dropped are missing in tables and charts. Totals are exact.",
    "Always.",
    _incomplete_recording,
)
