"""The story of a run in plain sentences: what happened, where the time went, what failed, what to change, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from daskscope import units
from daskscope.analysis.cost import recorded_cost
from daskscope.analysis.facts import Facts, Finding, describe_losses, error_line
from daskscope.analysis.outcome import outcome
from daskscope.analysis.summary import summarise
from daskscope.analysis.time.critical_path import CriticalPath
from daskscope.analysis.workers import LOST
from daskscope.insights.failures import describe_retries
from daskscope.insights.rules import findings
from daskscope.model.states import RunState

MAX_PREFIXES = 3
MAX_ERRORS = 3
MAX_FINDINGS = 5
#: Kinds of findings that the other paragraphs tell already.
TOLD = frozenset({"error", "lost worker", "incomplete"})


@dataclass(frozen=True)
class Paragraph:
    """A heading and its sentences."""

    heading: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Story:
    """A run, told in paragraphs."""

    source: str
    state: RunState
    paragraphs: tuple[Paragraph, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return asdict(self)


def tell(facts: Facts) -> Story:
    """Tell the story of a run. Paragraphs without anything to say are left out."""
    ended = outcome(facts)
    told = (
        Paragraph("Outcome", (ended.headline, ended.reason, *_size(facts))),
        Paragraph("Time", tuple(_time(facts))),
        Paragraph("Failures", tuple(_failures(facts))),
        Paragraph("Suggestions", tuple(_suggestions(findings(facts)))),
        Paragraph("Completeness", (summarise(facts.recording).statement,)),
    )
    return Story(facts.recording.source, ended.state, tuple(part for part in told if part.sentences))


def _size(facts: Facts) -> Iterator[str]:
    tasks = facts.recording["tasks"].rows
    if not tasks:
        return
    computations = facts.recording["computations"].rows
    of = f" of {units.counted(computations, 'computation')}" if computations else ""
    workers = units.counted(len(facts.workers), "worker")
    threads = units.counted(sum(worker.threads for worker in facts.workers), "thread")
    yield f"{units.counted(tasks, 'execution')}{of} ran on {workers} with {threads} in total."
    cost = recorded_cost(facts.recording, facts.start_us, facts.stop_us, facts.split.compute_us)
    if cost is not None and cost.total > 0:
        share = units.percent(cost.idle / cost.total)
        yield f"It cost {units.about_dollars(cost.total)}, {share} of it while threads did not compute."


def _time(facts: Facts) -> Iterator[str]:
    longest = [prefix for prefix in facts.prefixes if prefix.total_us > 0][:MAX_PREFIXES]
    total = sum(prefix.total_us for prefix in facts.prefixes)
    if longest:
        parts = [f"{p.prefix or 'unnamed tasks'} {units.percent(p.total_us / total)}" for p in longest]
        yield f"Compute time by task prefix: {', '.join(parts)} of {units.duration(total)}."
    path = facts.path
    if path.known and path.length_us:
        yield _path(path)
    peak = int(np.max([worker.peak_memory for worker in facts.workers], initial=0))
    if peak:
        yield f"The largest worker used {units.nbytes(peak)} of memory."


def _path(path: CriticalPath) -> str:
    """Return the critical path as a sentence."""
    waits = {
        "queued": path.queue_us,
        "waiting for transfers": path.transfer_us,
        "waiting for busy threads": path.busy_us,
        "scheduling": path.scheduler_us,
    }
    main = max(waits, key=waits.__getitem__)
    rest = f", and most of the rest {main}" if 2 * waits[main] > path.wait_us > 0.05 * path.length_us else ""
    computed = units.percent(path.compute_us / path.length_us)
    steps = units.counted(len(path.steps), "task")
    return (
        f"The critical path of the longest computation is {steps} and {units.duration(path.length_us)}: {computed} of it "
        f"computing{rest}."
    )


def _failures(facts: Facts) -> Iterator[str]:
    lost = [worker for worker in facts.workers if worker.verdict in LOST]
    if lost:
        yield f"{describe_losses(lost)}."
    for failure in facts.errors[:MAX_ERRORS]:
        final = failure.count - failure.retried
        ended = f"{units.counted(final, 'task')} failed" if final else describe_retries(facts, failure) or "all retried"
        where = ", ".join(prefix for prefix in failure.prefixes if prefix) or "unnamed tasks"
        yield f"{error_line(failure)} in {where}: {units.counted(failure.count, 'time')}, {ended}."
    others = len(facts.errors) - MAX_ERRORS
    if others > 0:
        yield f"{units.counted(others, 'other error group')} {'is' if others == 1 else 'are'} not listed."


def _suggestions(found: tuple[Finding, ...]) -> Iterator[str]:
    for finding in [one for one in found if one.kind not in TOLD][:MAX_FINDINGS]:
        saved = f" At most {_saving(finding)} could be saved.{_money(finding)}" if finding.gain else ""
        yield f"{finding.title}. {finding.evidence} {finding.advice}{saved}"


def _saving(finding: Finding) -> str:
    assert finding.gain is not None
    of = "the run" if finding.gain.of == "run" else "thread time"
    return f"{units.duration(finding.gain.us)} ({units.percent(finding.gain.share)} of {of})"


def _money(finding: Finding) -> str:
    """Return the price of the wall time that could be saved, as a sentence; empty if the recording has no prices."""
    if finding.gain is None or not finding.gain.cost_high:
        return ""
    wall = units.duration(finding.gain.wall_high_us)
    return f" As wall time, that is up to {wall}, or {units.about_dollars(finding.gain.cost_high)}."
