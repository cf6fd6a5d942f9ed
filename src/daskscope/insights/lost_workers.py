"""Workers were lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from daskscope import units
from daskscope.analysis.grouping import where
from daskscope.analysis.workers import LOST, Worker
from daskscope.insights.facts import Facts, Finding, Rule, describe_losses, sentence
from daskscope.model.recording import Recording

#: Executions that end this close to the end of their worker ended with it.
SHORT_US = 10_000


def check(facts: Facts) -> Iterator[Finding]:
    for verdict, advice in LOST.items():
        lost = [worker for worker in facts.workers if worker.verdict == verdict]
        if not lost:
            continue
        recomputed_us = sum(worker.recomputed_us for worker in lost)
        results = sum(max(0, worker.lost_count) for worker in lost)
        parts = [lost[0].evidence] if lost[0].evidence else []
        recomputed, whose = sum(worker.recomputed for worker in lost), "it" if len(lost) == 1 else "them"
        parts += (
            [f"{units.counted(results, 'result')} lost with {whose}, {units.count(recomputed)} recomputed"]
            if results
            else []
        )
        parts += [f"{units.duration(recomputed_us)} of compute time was wasted"] if recomputed_us else []
        parts += _suspects(facts.recording, lost)
        ends = [worker.end_us for worker in lost if worker.end_us]
        first, last = min(ends, default=facts.start_us), max(ends, default=facts.stop_us)
        saved = facts.thread_time(
            recomputed_us,
            f"compute time of results that were lost with the worker{'' if len(lost) == 1 else 's'} and recomputed",
        )
        yield Finding("lost worker", describe_losses(lost), sentence(parts), advice, "workers", first, last, saved, 1)


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


RULE = Rule(
    "lost-workers",
    "Workers were lost",
    "Results that were only on a lost worker are recomputed, and the task that killed it may kill the next one.",
    "Always. Workers that were retired or closed are not lost.",
    check,
)
