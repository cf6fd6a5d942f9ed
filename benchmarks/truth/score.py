"""Compare what daskscope says about a generated program with what the program measured."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from benchmarks.truth.program import Cause
from benchmarks.truth.timers import COMPUTING, Timers
from daskscope.analysis.summary import extent
from daskscope.insights.facts import Facts, Finding
from daskscope.insights.rules import findings
from daskscope.insights.story import outcome
from daskscope.model.recording import Recording

#: A figure is false if it differs by more than this share of the truth and this share of the whole.
TOLERANCE, OF_THE_WHOLE = 0.15, 0.05
#: What a task takes outside of its timers: it writes them to a file, and Dask calls it. Where another thread holds the interpreter
#: lock, it waits for up to one switch interval of 5 ms before and after them.
UNTIMED_S, UNTIMED_WITH_GIL_S = 0.0003, 0.01
#: A cause below this share of the time need not be named.
MIN_SHARE = 0.1
#: Causes within this factor are equally large: either may stand first.
ALIKE = 1.5
#: A finding is true if at least this part of what it claims was measured.
TRUE_PART = 0.5
#: Points of the shares in the headline, besides what tasks take outside of their timers.
POINTS = 5.0

#: The shares of the headline by their words. Parts that round to nothing are left out of it.
SHARES = {
    name: re.compile(rf"[<>]?([\d.]+) % {words}")
    for name, words in {
        "computing": "of the time computing",
        "waiting": "waiting in tasks",
        "moving data": "on (?:transfers|disk|serialization)",
        "wasted": "on failed",
        "idle": "idle",
    }.items()
}


@dataclass
class Verdict:
    """The verdict about one run."""

    #: right, wrong, missed, or quiet (nothing to say, and nothing false was said first)
    first: str
    text: str
    #: Rules that spoke, and whether they were right.
    said: dict[str, bool]
    #: Causes that were large enough, and whether one of their rules spoke.
    due: dict[str, bool]
    false: list[str] = field(default_factory=list)


def truths(timers: Timers) -> dict[str, float]:
    """Return the measured seconds by rule. Rules that say the same of one measured time share it."""
    program = timers.program
    computing = COMPUTING - {"blas"}
    reading = any(step.kind == "pool" and step.variant == 1 for task in program.tasks for step in task.steps)
    pool = timers.off_cpu_s({"pool", "blas"})
    short = timers.off_cpu_s({*computing, "load"})
    idle = timers.idle
    found = {
        "locks": timers.wall_s("waited for a lock"),
        "network-reads": timers.off_cpu_s({"http"}) + (pool if reading else 0.0),
        "file-reads": timers.off_cpu_s({"file"}),
        "subprocesses": timers.off_cpu_s({"program"}),
        "library-threads": pool,
        # It does not claim to know the cause.
        "off-cpu": timers.compute_s - timers.cpu_s,
        "gil": short if program.threads > 1 else 0.0,
        # BLAS threads of several worker threads wait for cores, too.
        "busy-hosts": short + timers.off_cpu_s({"blas"}),
        "python-loops": timers.wall_s("loop") + timers.wall_s("load"),
        "too-few-tasks": idle["few"],
        "nothing-submitted": idle["nothing"],
        "retried-failures": timers.failed_s,
        "lost-workers": timers.wasted_s,
        "warm-up": timers.wall_s("load"),
        "stragglers": timers.alone_s,
        "serial-sections": timers.alone_s,
        "large-graphs": timers.graph_s,
    }
    waits = ("slow-starts", "scheduler-queue", "unbalanced-work", "pinned-work", "unexplained-idle")
    # While a task cannot run, the whole cluster waits for it.
    return found | dict.fromkeys(waits, idle["ready"]) | {"unrunnable-tasks": idle["ready"] + idle["few"]}


#: Rules whose saving is a time of the run, not of its threads.
OF_RUN = frozenset({"stragglers", "serial-sections", "large-graphs"})


def untimed_s(timers: Timers) -> float:
    """Return the time of all executions outside of their timers."""
    has_gil = timers.program.threads > 1 and timers.wall_s("held") + timers.wall_s("loop") > 0
    return (UNTIMED_WITH_GIL_S if has_gil else UNTIMED_S) * len(timers.executions)


def asked_s(timers: Timers) -> float:
    """Return the time that the server was asked to take, at least. Threads may wait for a core or a lock after its answer."""
    steps = {task.number: task.steps for task in timers.program.tasks}
    return sum(
        step.seconds
        for one in timers.executions
        for step in (steps[one.number] if one.ended == "ok" else ())
        if step.kind == "http" or (step.kind == "pool" and step.variant == 1)
    )


#: Rules whose figure is the measured time itself, so that too little is as false as too much.
EXACT = frozenset({"locks", "network-reads", "file-reads", "subprocesses", "nothing-submitted", "retried-failures"})


def judge(timers: Timers, recording: Recording) -> Verdict:
    """Return the verdict about a recorded run."""
    facts = Facts.of(recording, *extent(recording))
    found = findings(facts)
    true_s = truths(timers)
    shares = {rule: s / (timers.run_s if rule in OF_RUN else timers.thread_s) for rule, s in true_s.items()}
    sizes = {cause: _size(cause, shares) for cause in timers.program.causes}
    due = {cause: size for cause, size in sizes.items() if size >= MIN_SHARE}
    said: dict[str, bool] = {}
    for finding in found:
        said[finding.rule] = said.get(finding.rule, False) or _is_true(finding, true_s, timers.program.causes)
    first = next((finding for finding in found if finding.rule != "incomplete-recording"), None)
    false = _false_figures(found, true_s, timers) + _false_headline(outcome(facts).reason, timers)
    return Verdict(
        _first(first, shares, due, said),
        f"{outcome(facts).headline} {outcome(facts).reason} | " + " | ".join(_line(f) for f in found[:3]),
        said,
        {cause.name: any(rule in said for rule in cause.rules) for cause in due},
        false,
    )


def _line(finding: Finding) -> str:
    saved = finding.gain
    price = f" [{saved.us / 1e6:.2f} s = {saved.share:.0%} of {saved.of}]" if saved else ""
    return f"{finding.rule}: {finding.title}{price}"


def _size(cause: Cause, shares: dict[str, float]) -> float:
    """Return the measured share of a cause; 1 if it has to be named whatever it costs, or has no measured time."""
    measured = [shares[rule] for rule in cause.rules if rule in shares]
    return 1.0 if cause.is_fatal or not measured else max(measured)


def _is_true(finding: Finding, true_s: dict[str, float], causes: tuple[Cause, ...]) -> bool:
    """Return whether a finding names a cause that was put in, or a time that was measured."""
    if finding.rule not in true_s:
        return any(finding.rule in cause.rules for cause in causes)
    claimed = finding.gain.us / 1e6 if finding.gain else 0.0
    if finding.rule in OF_RUN and finding.gain is None:
        return True
    return true_s[finding.rule] > 0.0 and true_s[finding.rule] >= TRUE_PART * claimed


def _first(first: Finding | None, shares: dict[str, float], due: dict[Cause, float], said: dict[str, bool]) -> str:
    """Judge the first finding. Any measured cause that is as large as the largest one that was put in may stand there."""
    if first is None:
        return "missed" if due else "quiet"
    if not said[first.rule]:
        return "wrong"
    if not due:
        return "quiet"
    largest = max(due.values())
    wanted = {rule for cause, size in due.items() if size * ALIKE >= largest for rule in cause.rules}
    wanted |= {rule for rule, share in shares.items() if share * ALIKE >= largest and rule != "off-cpu"}
    return "right" if first.rule in wanted else "missed"


def _false_figures(found: tuple[Finding, ...], true_s: dict[str, float], timers: Timers) -> list[str]:
    claimed: dict[str, float] = {}
    for finding in found:
        if finding.gain:
            claimed[finding.rule] = claimed.get(finding.rule, 0.0) + finding.gain.us / 1e6
    false = []
    for rule, value in claimed.items():
        if rule not in true_s:
            continue
        truth = true_s[rule]
        whole = timers.run_s if rule in OF_RUN else timers.thread_s
        least = min(truth, asked_s(timers)) if rule == "network-reads" else truth
        allowed = TOLERANCE * truth + OF_THE_WHOLE * whole + untimed_s(timers)
        if value > truth + allowed or (rule in EXACT and value < least - allowed):
            false.append(f"{rule}: {value:.2f} s, measured {truth:.2f} s")
    return false


def headline_shares(reason: str) -> dict[str, float] | None:
    """Return the shares that the headline names; None if it names none. A headline in other words is an error of the score."""
    if "Threads spent" not in reason:
        return None
    found = {name: pattern.search(reason) for name, pattern in SHARES.items()}
    if not found["computing"] or not found["idle"]:
        raise ValueError(f"The headline has other words: {reason}")
    return {name: float(match[1]) if match else 0.0 for name, match in found.items()}


def _false_headline(reason: str, timers: Timers) -> list[str]:
    said = headline_shares(reason)
    if said is None or any(cause.name == "killed worker" for cause in timers.program.causes):
        return []
    good = [one for one in timers.executions if one.ended == "ok"]
    cpu, wall = sum(one.cpu for one in good), sum(one.wall for one in good)
    whole = timers.thread_s
    allowed = POINTS + 100 * untimed_s(timers) / whole
    truth = {
        "computing": (said["computing"], cpu / whole),
        "waiting": (said["waiting"], (wall - cpu) / whole),
        "wasted": (said["wasted"], (timers.compute_s - wall) / whole),
        "idle or moving data": (said["idle"] + said["moving data"], 1.0 - timers.compute_s / whole),
    }
    return [
        f"headline, {name}: {value:g} %, measured {100 * share:.1f} %"
        for name, (value, share) in truth.items()
        if abs(value - 100 * share) > allowed
    ]
