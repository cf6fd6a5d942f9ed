"""The headline of a report: how the run ended, how long it took, and why, in two sentences."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from daskscope import units
from daskscope.analysis.facts import IDLE, MIN_SHARE, Facts, describe_losses, error_line
from daskscope.analysis.summary import computation_states, find_block
from daskscope.analysis.time.breakdown import Breakdown
from daskscope.analysis.workers import LOST
from daskscope.model.recording import Recording
from daskscope.model.states import RunState

#: The headline mentions that there was time without work if it is more than this share of thread time.
PAUSE_SHARE = 0.02


@dataclass(frozen=True)
class Outcome:
    """How a run ended, and the reason."""

    state: RunState
    headline: str
    reason: str


NOTHING_RAN = "Nothing ran."


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
        return Outcome("failed", _headline(states, "failed", "failed", took), _error_reason(facts))
    if is_interrupted:
        return Outcome("interrupted", f"Interrupted after {took}.", _work_done(facts, is_empty=is_empty))
    if states["unfinished"]:
        return Outcome("unfinished", _headline(states, "unfinished", "did not finish", took), _unfinished_reason(facts))
    if states["interrupted"]:
        be = "were" if states["interrupted"] > 1 else "was"
        headline = _headline(states, "interrupted", f"{be} interrupted", took)
        return Outcome("interrupted", headline, _work_done(facts, is_empty=is_empty))
    return Outcome("finished", f"Finished in {took}.", _thread_time(facts.split))


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
    """Return how threads spent the time in which there was work."""
    if not found.thread_us:
        return "No thread time was recorded."
    pause_us = found.idle.us["nothing submitted"]
    worked_us = found.thread_us - pause_us
    if worked_us <= 0:
        return "No work was submitted while workers were connected."

    def share(*categories: str) -> str:
        return units.percent(sum(found.split[category] for category in categories) / worked_us)

    data = f"{share('serialize', 'disk', 'transfer')} on transfers, disk and serialization"
    wasted = f", {share('failed')} on failed, cancelled or recomputed work" if found.split["failed"] else ""
    idle = units.percent(max(0, found.split["idle"] - pause_us) / worked_us)
    during = "While there was work, threads" if pause_us > PAUSE_SHARE * found.thread_us else "Threads"
    spent = f"{during} spent {share('cpu', 'noncpu')} of the time computing, {data}{wasted}, and {idle} idle"
    return f"{spent}{_main_reason(found)}.{_beside(found)}"


def _beside(found: Breakdown) -> str:
    """Return what was computed beside the threads of workers, as a sentence; empty if it is little."""
    parts = {"seceded tasks": found.seceded_us, "actor calls": found.actors_beside_us}
    listed = [
        f"{name} computed for {units.duration(us)}" for name, us in parts.items() if us >= MIN_SHARE * found.thread_us
    ]
    return f" Beside them, {' and '.join(listed)}." if listed else ""


def _main_reason(found: Breakdown) -> str:
    """Return the main reason for idle time while there was work, if one explains most of it."""
    reasons = {reason: us for reason, us in found.idle.us.items() if reason != "nothing submitted"}
    main = max(reasons, key=reasons.__getitem__)
    if main == "unknown" or reasons[main] * 2 <= found.idle.with_work_us or reasons[main] < MIN_SHARE * found.thread_us:
        return ""
    return f": {IDLE[main]}"


def _has_final_errors(facts: Facts) -> bool:
    """Return whether a task failed and was not retried; used if no computation was recorded."""
    return any(failure.count > failure.retried for failure in facts.errors)


def _error_reason(facts: Facts) -> str:
    # Errors that were always retried did not end the run.
    final = [failure for failure in facts.errors if failure.count > failure.retried] or list(facts.errors)
    if not final:
        return "The error was not recorded."
    others = f" and {units.counted(len(final) - 1, 'other error')}" if len(final) > 1 else ""
    return f"{error_line(final[0])} ({units.counted(final[0].count, 'time')}){others}."


def _unfinished_reason(facts: Facts) -> str:
    lost = [worker for worker in facts.workers if worker.verdict in LOST]
    ended = "cluster" if find_block(facts.recording) is None else "block"
    return f"{describe_losses(lost)}." if lost else f"The {ended} ended before its tasks finished."
