"""The first thing a reader wants to know: how it ended, how long it took, and why, in two sentences."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from daskscope import units
from daskscope.analysis.bins import Bins
from daskscope.analysis.breakdown import Breakdown, breakdown
from daskscope.analysis.failures import failures
from daskscope.analysis.findings import Finding as Finding
from daskscope.analysis.findings import findings as findings
from daskscope.analysis.findings import said, what_became
from daskscope.analysis.summary import extent
from daskscope.analysis.workers import LOST, workers
from daskscope.model.recording import Recording


@dataclass(frozen=True)
class Answer:
    """What happened, and the reason."""

    #: running, finished, erred, lost, idle
    status: str
    headline: str
    reason: str


def answer(recording: Recording, split: Breakdown | None = None) -> Answer:
    """How the run ended; ``split`` is its breakdown where the caller has it already."""
    start, stop = extent(recording)
    states = Counter(recording["computations"]["state"].tolist())
    took = units.duration(stop - start)
    nothing = not recording["tasks"].rows and not recording["exceptions"].rows
    # What was lost or given up while its first tasks ran has no execution, and did run.
    if nothing and not (states["running"] or states["lost"] or states["cancelled"]):
        return Answer("idle", "Nothing ran.", _why_nothing(recording))
    if states["running"]:
        return Answer("running", f"Still running after {took}.", _where_time_went(recording, split, start, stop))
    if states["lost"]:
        return Answer("lost", _headline(states, "lost", "Lost", took), _what_was_lost(recording, stop))
    if states["erred"] or (not states and _failed(recording)):
        return Answer("erred", _headline(states, "erred", "Failed", took), _what_failed(recording))
    if states["cancelled"] and not states["done"]:
        why = "None of its tasks had finished." if nothing else _where_time_went(recording, split, start, stop)
        return Answer("finished", f"Cancelled after {took}.", why)
    return Answer("finished", f"Finished in {took}.", _where_time_went(recording, split, start, stop))


def _headline(states: Counter[str], state: str, word: str, took: str) -> str:
    of = sum(states.values())
    if of < 2 or states[state] == of:
        return f"{word} after {took}."
    became = "failed" if state == "erred" else "were lost" if states[state] > 1 else "was lost"
    return f"{units.count(states[state])} of {units.counted(of, 'computation')} {became}."


def _why_nothing(recording: Recording) -> str:
    if not recording["workers"].rows:
        return "No worker joined while this was recorded."
    return "No task finished while this was recorded."


def _where_time_went(recording: Recording, split: Breakdown | None, start: int, stop: int) -> str:
    found = split or breakdown(recording, Bins.over(start, stop))
    if not found.thread_us:
        return "How busy its threads were is not known."

    def share(*categories: str) -> str:
        return units.percent(sum(found.split[category] for category in categories) / found.thread_us)

    moved = f"moved data {share('serialize', 'disk', 'transfer')}"
    lost = f", lost {share('failed')} to work that failed or ran again" if found.split["failed"] else ""
    return f"Threads computed {share('cpu', 'noncpu')} of the time, {moved}{lost} and stood idle {share('idle')}."


def _failed(recording: Recording) -> bool:
    """Whether anything failed for good, where no computation says so."""
    return any(failure.count > failure.retried for failure in failures(recording))


def _what_failed(recording: Recording) -> str:
    found = failures(recording)
    # What was tried again until it went well did not end anything.
    final = [failure for failure in found if failure.count > failure.retried] or list(found)
    if not final:
        return "What failed was not recorded."
    worst = final[0]
    others = f"; {units.counted(len(final) - 1, 'other error')}" if len(final) > 1 else ""
    return f"{said(worst)}, {units.counted(worst.count, 'time')}{others}."


def _what_was_lost(recording: Recording, stop: int) -> str:
    gone = [worker for worker in workers(recording, stop) if worker.verdict in LOST]
    if not gone:
        return "The cluster ended before its tasks did."
    return f"{what_became(gone)}."
