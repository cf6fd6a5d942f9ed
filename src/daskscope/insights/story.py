"""A run in plain sentences: its outcome in two, and its story in paragraphs.

The outcome is the headline of a report: how the run ended, how long it took, and why. The story adds where the time went, what
failed, what to change, and how sure that is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from daskscope import units
from daskscope.analysis.columns.grouping import where
from daskscope.analysis.cost import recorded_cost
from daskscope.analysis.executions import recomputed_rows
from daskscope.analysis.summary import computation_states, find_block, summarise
from daskscope.analysis.time.breakdown import Breakdown
from daskscope.analysis.time.critical_path import CriticalPath
from daskscope.analysis.workers import LOST, Worker
from daskscope.insights.facts import IDLE, MIN_SHARE, WAITING, Facts, Finding, describe_losses, error_line, sentence
from daskscope.insights.failures import describe_retries
from daskscope.insights.rules import findings
from daskscope.model.recording import Completeness, Recording
from daskscope.model.states import RunState

#: Activities beside computing, in the words of the headline.
MOVED = {"transfer": "transfers", "disk": "disk", "serialize": "serialization"}
#: The headline mentions that there was time without work if it is more than this share of thread time.
PAUSE_SHARE = 0.02
NOTHING_RAN = "Nothing ran."
#: Characters of an error in the headline, which has two lines on a page. The whole text stands below it.
MAX_HEADLINE = 100
MAX_PREFIXES = 3
MAX_ERRORS = 3
MAX_FINDINGS = 5
#: Kinds of findings that the other paragraphs tell already.
TOLD = frozenset({"error", "lost worker", "incomplete"})


# ---------------------------------------------------------------- outcome


@dataclass(frozen=True)
class Outcome:
    """How a run ended, and the reason."""

    state: RunState
    headline: str
    reason: str


def outcome(facts: Facts) -> Outcome:
    """Return how a run ended, and how many of its rows are missing if the stored data is damaged."""
    found = _recorded_outcome(facts)
    recording = facts.recording
    if not recording.damage:
        return found
    parts = recording.completeness.values()
    missing, rows = sum(part.missing for part in parts), sum(part.rows for part in parts)
    how_many = f"{units.count(missing)} of {units.counted(missing + rows, 'row')}" if missing else "Some of its rows"
    lost = f"{how_many} cannot be read: {recording.damage[:1].lower()}{recording.damage[1:]}. Restore the file from a backup."
    if found.headline == NOTHING_RAN:
        return replace(found, headline="The rows of this run are missing.", reason=lost)
    return replace(found, reason=f"{lost} {found.reason}")


def _recorded_outcome(facts: Facts) -> Outcome:
    recording = facts.recording
    states = Counter(computation_states(recording, facts.stop_us))
    took = units.duration(facts.stop_us - facts.start_us)
    block = find_block(recording)
    is_interrupted = block is not None and block.is_interrupted
    is_empty = not recording["tasks"].rows and not recording["exceptions"].rows
    # A computation that ended during its first tasks did run, but recorded no execution.
    if is_empty and not is_interrupted and not any(states[state] for state in ("running", "unfinished", "interrupted")):
        return Outcome("finished", NOTHING_RAN, _why_nothing_ran(recording))
    if states["running"]:
        return Outcome("running", f"Still running after {took}.", _thread_time(facts.split))
    if facts.is_open and not (states["unfinished"] or states["failed"]):
        # A scheduler that was killed writes no end either, so say only what is known.
        headline = f"The cluster was running when last heard from, after {took}."
        return Outcome("running", headline, _thread_time(facts.split))
    if states["failed"] or (not states and _has_final_errors(facts)):
        return _failed_outcome(facts, _headline(states, "failed", "failed", took))
    if is_interrupted:
        return Outcome("interrupted", f"Interrupted after {took}.", _work_done(facts, is_empty=is_empty))
    if states["unfinished"]:
        return Outcome("unfinished", _headline(states, "unfinished", "did not finish", took), _unfinished_reason(facts))
    if states["interrupted"]:
        be = "were" if states["interrupted"] > 1 else "was"
        headline = _headline(states, "interrupted", f"{be} interrupted", took)
        return Outcome("interrupted", headline, _work_done(facts, is_empty=is_empty))
    lost = _lost_workers(facts)
    if lost:
        how = describe_losses(lost)
        headline = f"Finished in {took}, but {how[:1].lower()}{how[1:]}."
        return Outcome("finished", headline, _cause_and_price(facts, lost))
    return Outcome("finished", f"Finished in {took}.", _thread_time(facts.split))


def _lost_workers(facts: Facts) -> list[Worker]:
    """Return the workers that left unexpectedly."""
    return [worker for worker in facts.workers if worker.verdict in LOST]


def _cause_and_price(facts: Facts, lost: Sequence[Worker]) -> str:
    """Return sentences about why workers were lost, what was recomputed, and how long their threads were missing."""
    # The headline has the other cause.
    vanished = {worker.evidence for worker in lost if worker.evidence and worker.verdict != "memory kill"}
    cause = f"{sentence([vanished.pop()])} " if len(vanished) == 1 else ""
    # All of them, like the number of recomputed task runs on the page: recomputing a lost result may need released ones, too.
    tasks = facts.recording["tasks"].take(np.flatnonzero(recomputed_rows(facts.recording)))
    again, us = tasks.rows, int(np.maximum(tasks["stop_us"] - tasks["start_us"], 0).sum())
    be = "was" if again == 1 else "were"
    recomputed = (
        f"{units.counted(again, 'result')} {be} recomputed in {units.duration(us)} of compute time"
        if again
        else "No result was recomputed"
    )
    threads, missing_us = sum(worker.threads for worker in lost), _missing_us(facts, lost)
    missing = f"; {units.counted(threads, 'thread')} missing for {units.duration(missing_us)}" if missing_us else ""
    return f"{cause}{recomputed}{missing}."


def _missing_us(facts: Facts, lost: Sequence[Worker]) -> int:
    """Return the longest time from a loss until another worker joined, or until the end."""
    joins = sorted(worker.start_us for worker in facts.workers)
    missing = 0
    for end_us in sorted(worker.end_us for worker in lost if worker.end_us):
        # A worker replaces one other worker.
        joined = next((start_us for start_us in joins if start_us >= end_us), None)
        if joined is not None:
            joins.remove(joined)
        missing = max(missing, (facts.stop_us if joined is None else min(joined, facts.stop_us)) - end_us)
    return missing


def _headline(states: Counter[RunState], state: RunState, verb: str, took: str) -> str:
    total = sum(states.values())
    if total < 2 or states[state] == total:
        return f"{state.capitalize()} after {took}."
    return f"{units.count(states[state])} of {units.counted(total, 'computation')} {verb}."


def _work_done(facts: Facts, *, is_empty: bool) -> str:
    """Return sentences about the work before an interruption."""
    return "No task had finished." if is_empty else f"{_abandoned(facts.recording)}{_thread_time(facts.split)}"


def _abandoned(recording: Recording) -> str:
    """Return how many tasks never ran because no client wanted them any longer, as a sentence; empty if none."""
    count = int(np.maximum(recording["computations"]["abandoned"], 0).sum())
    return f"{units.counted(count, 'task')} never ran. " if count else ""


def _why_nothing_ran(recording: Recording) -> str:
    if not recording["workers"].rows:
        return "No worker joined during the recording."
    return "No task finished during the recording."


def _thread_time(found: Breakdown) -> str:
    """Return how threads spent their time. Shares are rounded like in the bar on the page, which has the same base."""
    if not found.thread_us:
        return "No thread time was recorded."
    pause_us = found.idle.us["nothing submitted"]
    if pause_us >= found.thread_us:
        return "No work was submitted while workers were connected."
    whole = dict(zip(found.split, units.whole_shares(list(found.split.values())), strict=True))

    def share(*categories: str) -> str:
        rounded = sum(whole[category] for category in categories)
        return f"{rounded} %" if rounded else units.percent(sum(found.split[c] for c in categories) / found.thread_us)

    parts = [f"{share('cpu')} of the time computing"]
    if found.split["noncpu"]:
        parts.append(f"{share('noncpu')} waiting in tasks{_main_wait(found)}")
    if moved := [category for category in MOVED if whole[category]]:
        parts.append(f"{share(*moved)} on {_enumerate([MOVED[category] for category in moved])}")
    if whole["failed"]:
        parts.append(f"{share('failed')} on failed, cancelled or recomputed work")
    parts.append(f"{share('idle')} idle")
    pause = units.percent(pause_us / found.thread_us)
    paused = f" Nothing was submitted for {pause} of the time." if pause_us > PAUSE_SHARE * found.thread_us else ""
    return f"Threads spent {_enumerate(parts)}{_main_reason(found)}.{paused}{_beside(found)}"


def _enumerate(texts: Sequence[str]) -> str:
    """Return “a”, “a and b” or “a, b, and c”."""
    return " and ".join(texts) if len(texts) < 3 else f"{', '.join(texts[:-1])}, and {texts[-1]}"


def _main_wait(found: Breakdown) -> str:
    """Return for what threads waited inside of tasks, if one reason explains most of a large share."""
    main = max(found.waiting_us, key=found.waiting_us.__getitem__, default="unknown")
    waited = found.waiting_us.get(main, 0)
    if main == "unknown" or 2 * waited <= sum(found.waiting_us.values()) or waited < MIN_SHARE * found.thread_us:
        return ""
    return f" ({WAITING[main]})"


def _beside(found: Breakdown) -> str:
    """Return a sentence about work beside the threads of workers; empty if it is little."""
    parts = {"seceded tasks": found.seceded_us, "actor calls": found.actors_beside_us}
    listed = [
        f"{name} computed for {units.duration(us)}" for name, us in parts.items() if us >= MIN_SHARE * found.thread_us
    ]
    return f" Beside them, {' and '.join(listed)}." if listed else ""


def _main_reason(found: Breakdown) -> str:
    """Return the main reason for idle time while there was work, if one explains most of all idle time."""
    reasons = {reason: us for reason, us in found.idle.us.items() if reason != "nothing submitted"}
    main = max(reasons, key=reasons.__getitem__)
    if main == "unknown" or reasons[main] * 2 <= found.idle_us or reasons[main] < MIN_SHARE * found.thread_us:
        return ""
    return f": {IDLE[main]}"


def _has_final_errors(facts: Facts) -> bool:
    """Return whether a task failed and was not retried; used if no computation was recorded."""
    return any(failure.count > failure.retried for failure in facts.errors)


def _failed_outcome(facts: Facts, headline: str) -> Outcome:
    """Return the outcome of a failed run: its most frequent error, where it was raised, and what did not run because of it."""
    # Errors that were always retried did not end the run.
    final = [failure for failure in facts.errors if failure.count > failure.retried] or list(facts.errors)
    if not final:
        return Outcome("failed", headline, "The error was not recorded.")
    first = final[0]
    line = error_line(first).rstrip(".")
    line = line if len(line) <= MAX_HEADLINE else f"{line[: MAX_HEADLINE - 1]}…"
    where = ", ".join(prefix for prefix in first.prefixes[:MAX_PREFIXES] if prefix) or "unnamed tasks"
    times = f" {units.counted(first.count, 'time')}" if first.count > 1 else ""
    on = f" on {units.counted(len(first.workers), 'worker')}" if len(first.workers) > 1 else ""
    sentences = [f"It was raised{times} in {where}{on}."]
    done, of = _finished_tasks(facts)
    if 0 < done < of:
        sentences.append(f"{units.count(done)} of {units.counted(of, 'task')} finished.")
    if first.dependents:
        sentences.append(f"{units.counted(first.dependents, 'dependent task')} could not run.")
    if len(final) > 1:
        others = len(final) - 1
        sentences.append(f"There {'is' if others == 1 else 'are'} {units.counted(others, 'other error')}.")
    return Outcome("failed", f"{headline.rstrip('.')}: {line}{'' if line.endswith('…') else '.'}", " ".join(sentences))


def _finished_tasks(facts: Facts) -> tuple[int, int]:
    """Return how many tasks of all computations finished, of how many; both 0 if that was not recorded.

    Dask also releases and forgets tasks that never ran, because another one failed. So only executions prove that tasks finished.
    """
    recording = facts.recording
    table, tasks = recording["computations"], recording["tasks"]
    of, erred, unfinished = (int(np.maximum(table[name], 0).sum()) for name in ("tasks", "erred", "unfinished"))
    rows = recording.completeness.get("tasks", Completeness())
    # Executions before the recording are unknown.
    if rows.dropped or rows.missing or table["start_us"].min(initial=facts.start_us) < facts.start_us:
        return 0, 0
    done = int(np.count_nonzero(where(tasks.strings("status"), "ok") & ~recomputed_rows(recording)))
    return max(0, min(done, of - erred - unfinished)), of


def _unfinished_reason(facts: Facts) -> str:
    lost = _lost_workers(facts)
    ended = "cluster" if find_block(facts.recording) is None else "block"
    return f"{describe_losses(lost)}." if lost else f"The {ended} ended before its tasks finished."


# ---------------------------------------------------------------- story


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
    lost = _lost_workers(facts)
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
