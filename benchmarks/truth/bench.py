"""Score what daskscope says about programs that nobody tuned it for.

Rules may be developed on even seeds. Odd ones are only scored. Every program has a known answer (``program``), which its own timers
measure (``timers``). With a second run, either the advice is followed and the saving measured, or the number of workers is changed
and the prediction compared.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import daskscope
from benchmarks.accuracy_page import PROGRAMS, machine, write_section
from benchmarks.result import Result
from benchmarks.truth.program import Cause, Program, describe, make
from benchmarks.truth.running import Observed, neighbours, observe
from benchmarks.truth.score import Verdict, judge
from benchmarks.truth.timers import Execution, Timers
from daskscope.analysis.summary import extent
from daskscope.analysis.what_if.predict import what_if
from daskscope.insights.facts import Facts, Gain
from daskscope.insights.rules import findings

#: Odd seeds from 1.
SEEDS = range(1, 401, 2)
#: Odd seeds that are enough for the published score.
MIN_PUBLISHED = 100
#: Slack of a measured saving at both ends of its range, and of a prediction.
SLACK, SLACK_S, WITHIN = 0.1, 0.25, 0.15


@dataclass
class Scores:
    """Everything that was judged."""

    verdicts: dict[int, Verdict] = field(default_factory=dict)
    #: In the range, below it, above it, below half of its low end.
    savings: Counter[str] = field(default_factory=Counter)
    #: Predicted by actual; the actual time by the range for those with one; and refusals.
    ratios: list[float] = field(default_factory=list)
    in_range: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


def run(seeds: Iterable[int] = SEEDS, *, beside: int = 0, keep: str = "") -> list[Result]:
    """Run and judge programs; ``beside`` others that use a core each, and keep the recordings if a directory is given."""
    scores = Scores()
    for seed in seeds:
        began = time.monotonic()
        try:
            with neighbours(beside):
                score(seed, scores, keep)
        except KeyboardInterrupt:
            # What was scored in an hour is worth a report.
            print(f"    Interrupted at seed {seed}: the score is of those before.", file=sys.stderr)
            break
        # A program that cannot be judged must not end an hour of others.
        except Exception as error:  # noqa: BLE001
            scores.notes.append(f"{seed}: {describe(make(seed))}: {type(error).__name__}: {error}")
        _print(seed, scores, time.monotonic() - began)
    results = report(scores)
    if not beside and len(scores.verdicts) >= MIN_PUBLISHED and all(seed % 2 for seed in scores.verdicts):
        write_section(PROGRAMS, section(results, scores.notes))
    return results


def score(seed: int, scores: Scores, keep: str) -> None:
    """Run a program twice: as it is, and with its advice followed or with another number of workers."""
    program = make(seed)
    path = Path(keep) / f"{seed}.daskscope" if keep else None
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
    problem = observe(program, path)
    if path is not None:
        save_timers(path.with_suffix(".json"), problem.timers)
    scores.verdicts[seed] = judge(problem.timers, problem.recording)
    fixable = [cause for cause in program.causes if cause.has_twin]
    if fixable and seed % 4 < 2:
        _score_saving(seed, problem, fixable[0], scores)
    elif _is_predictable(program):
        _score_prediction(seed, problem, scores)


def _score_saving(seed: int, problem: Observed, cause: Cause, scores: Scores) -> None:
    gain = promised(problem, cause)
    if gain is None:
        return
    twin = observe(make(seed, fixed=cause.name))
    saved = problem.timers.run_s - twin.timers.run_s
    low, high = gain.wall_low_us / 1e6, gain.wall_high_us / 1e6
    if saved > high * (1 + SLACK) + SLACK_S:
        verdict = "above"
    elif saved >= low * (1 - SLACK) - SLACK_S:
        verdict = "in the range"
    else:
        verdict = "below half" if saved < low / 2 else "below"
    scores.savings[verdict] += 1
    if verdict != "in the range":
        scores.notes.append(f"{seed}: {cause.name}: saved {saved:.2f} s, promised {low:.2f} to {high:.2f} s")


def _is_predictable(program: Program) -> bool:
    """Return whether a prediction is about the whole run: it is about one computation, and about none that fails."""
    causes = {cause.name for cause in program.causes}
    is_lost = any(cause.is_fatal for cause in program.causes) or causes & {"killed worker", "missing resource"}
    return not is_lost and len({task.batch for task in program.tasks}) == 1


def promised(observed: Observed, cause: Cause) -> Gain | None:
    """Return the saving that the first finding about a cause promises.

    If all tasks sleep, the cause is only a part of what "off-cpu" is about, and the rest is not removed.
    """
    found = findings(Facts.of(observed.recording, *extent(observed.recording)))
    rules = cause.rules - ({"off-cpu"} if observed.timers.program.base == "sleep" else set())
    return next((one.gain for one in found if one.rule in rules and one.gain), None)


def _score_prediction(seed: int, problem: Observed, scores: Scores) -> None:
    program = problem.timers.program
    workers = {1: 2, 2: 1, 3: 2, 4: 2}[program.workers]
    found = what_if(problem.recording, workers=[workers])
    if not found.predictions:
        scores.in_range["refused"] += 1
        return
    other = observe(make(seed, workers=workers))
    # Like the prediction, from the arrival of a graph.
    sending_s = other.timers.graph_s if any(task.ballast for task in program.tasks) else 0.0
    predicted, took = found.predictions[0], other.timers.run_s - sending_s
    ratio = predicted.wall_us / 1e6 / took
    scores.ratios.append(ratio)
    is_in_range = predicted.wall_us / 1e6 / (1 + WITHIN) <= took <= predicted.max_wall_us / 1e6 / (1 - WITHIN)
    scores.in_range["in the range" if is_in_range else "outside"] += 1
    if abs(ratio - 1) > WITHIN:
        scores.notes.append(
            f"{seed}: {workers} instead of {program.workers} workers ({describe(program)}): predicted "
            f"{predicted.wall_us / 1e6:.2f} to {predicted.max_wall_us / 1e6:.2f} s, took {took:.2f} s"
        )


# ---------------------------------------------------------------- recordings to look at


def save_timers(path: Path, timers: Timers) -> None:
    """Keep the timers of a run beside its recording."""
    document = {
        "start": timers.start,
        "stop": timers.stop,
        "submitted": timers.submitted,
        "executions": [asdict(one) for one in timers.executions],
    }
    path.write_text(json.dumps(document))


def load(directory: Path, seed: int) -> Observed:
    """Return a kept recording and its timers."""
    document = json.loads((directory / f"{seed}.json").read_text())
    executions = tuple(Execution(**{**one, "steps": tuple(map(tuple, one["steps"]))}) for one in document["executions"])
    submitted = {int(number): when for number, when in document["submitted"].items()}
    timers = Timers(make(seed), executions, submitted, document["start"], document["stop"])
    return Observed(daskscope.open_recording(directory / f"{seed}.daskscope"), timers)


# ---------------------------------------------------------------- results

#: For the page: what a row is about, in the words of a reader.
TITLES = {
    "the cause stands first": "The first finding names a cause that was put in",
    "a wrong cause stands first": "The first finding names something that was not there",
    "runs with a false figure": "Runs with a figure or share that differs from the timers",
    "savings in their range": "The measured saving is in the promised range",
    "below half of the low end": "It is less than half of the low end",
    "predictions within 15 %": "Predicted times within 15 % of the measured ones",
    "predictions with the truth in their range": "The measured time is in the predicted range",
    "predictions refused": "Predictions refused, with the reason",
}


def section(results: list[Result], notes: list[str]) -> str:
    """Return the section of the docs: the score, rules that were wrong, causes that were not named, and other misses."""
    short = {one.what.removeprefix("truth: "): one for one in results}
    programs = short["programs"].figure
    rows = [
        f"| {title} | {short[what].figure} | {short[what].bar} |" for what, title in TITLES.items() if what in short
    ]
    wrong = _listed(short, "precision of ")
    unnamed = _listed(short, "recall of ")
    seeds = [
        f"{title}: {short[what].note}"
        for title, what in (
            ("Seeds whose first finding was another one", "the cause stands first"),
            ("a wrong one", "a wrong cause stands first"),
            ("with a false figure", "runs with a false figure"),
            ("predicted by measured time", "predictions within 15 %"),
        )
        if what in short and short[what].note
    ]
    lines = [
        "`scripts/bench truth` makes programs from a seed: a cluster, a graph of tasks, and none, one or two of 26 causes of lost",
        "time. Tasks time themselves, and every statement is compared with these timers. Rules are developed on even seeds only.",
        "The program then runs again, with its advice followed or with another number of workers.",
        "",
        f"The score of {programs} odd seeds, made after the last change of a rule ({time.strftime('%Y-%m-%d')}, {machine()}):",
        "",
        "| | result | bar |",
        "|---|---:|---:|",
        *rows,
        "",
        f"Rules that spoke without a cause: {wrong or 'none'}.",
        f"Causes that were not always named, if they took a tenth of the time: {unnamed or 'none'}.",
        "",
        f"{'; '.join(seeds)}.",
        "",
        *(f"- {note}" for note in notes),
    ]
    return "\n".join(lines).replace("\n\n\n", "\n\n")


def _listed(results: dict[str, Result], prefix: str) -> str:
    """Return the results whose counts are not full, as text: ``gil (3 of 4)``."""
    found = {what.removeprefix(prefix): one.figure for what, one in results.items() if what.startswith(prefix)}
    return ", ".join(f"{name} ({figure})" for name, figure in found.items() if len({*figure.split(" of ")}) > 1)


def _print(seed: int, scores: Scores, took_s: float) -> None:
    verdict = scores.verdicts.get(seed)
    said = verdict.first if verdict else "BROKEN"
    print(f"    {seed} ({took_s:.0f} s) {describe(make(seed))}: {said}", file=sys.stderr, flush=True)
    if verdict and verdict.first in ("wrong", "missed"):
        print(f"        {verdict.text}", file=sys.stderr, flush=True)
    for line in verdict.false if verdict else []:
        print(f"        false: {line}", file=sys.stderr, flush=True)
    for note in scores.notes[-2:]:
        if note.startswith(f"{seed}:"):
            print(f"        {note}", file=sys.stderr, flush=True)


def report(scores: Scores) -> list[Result]:
    """Return the score, and precision and recall of each rule."""
    verdicts = scores.verdicts
    due = [v for v in verdicts.values() if v.first in ("right", "missed") or (v.first == "wrong" and v.due)]
    right = sum(v.first == "right" for v in due)
    wrong = [seed for seed, v in verdicts.items() if v.first == "wrong"]
    missed = [seed for seed, v in verdicts.items() if v.first == "missed"]
    false = {seed: v.false for seed, v in verdicts.items() if v.false}
    results = [
        _share("truth: the cause stands first", right, len(due), 0.9, f"{missed}"),
        _most("truth: a wrong cause stands first", len(wrong), len(verdicts), 0.02, f"{wrong}"),
        Result("truth: runs with a false figure", f"{len(false)} of {len(verdicts)}", "0", not false, str(list(false))),
    ]
    judged = sum(scores.savings.values())
    if judged:
        results += [
            _share("truth: savings in their range", scores.savings["in the range"], judged, 0.8),
            Result(
                "truth: below half of the low end",
                str(scores.savings["below half"]),
                "0",
                not scores.savings["below half"],
            ),
        ]
    if scores.ratios:
        near = sum(abs(ratio - 1) <= WITHIN for ratio in scores.ratios)
        quantiles = statistics.quantiles(scores.ratios, n=10) if len(scores.ratios) > 1 else [math.nan] * 9
        spread = f"10 %: {quantiles[0]:.2f}, median {statistics.median(scores.ratios):.2f}, 90 %: {quantiles[8]:.2f}"
        results += [
            _share("truth: predictions within 15 %", near, len(scores.ratios), 0.8, spread),
            Result(
                "truth: predictions with the truth in their range",
                f"{scores.in_range['in the range']} of {len(scores.ratios)}",
            ),
            Result("truth: predictions refused", str(scores.in_range["refused"])),
        ]
    return [
        *results,
        *_rules(verdicts.values()),
        Result("truth: programs", str(len(verdicts)), note="\n    ".join(scores.notes)),
    ]


def _share(what: str, count: int, of: int, bar: float, note: str = "") -> Result:
    return Result(what, f"{count} of {of}", f"≥ {bar:.0%}", of > 0 and count >= bar * of, note)


def _most(what: str, count: int, of: int, bar: float, note: str = "") -> Result:
    return Result(what, f"{count} of {of}", f"≤ {bar:.0%}", count <= bar * of, note)


def _rules(verdicts: Iterable[Verdict]) -> list[Result]:
    """Return the precision of every rule that spoke, and the recall of every cause."""
    said, right, due, named = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for verdict in verdicts:
        for rule, is_right in verdict.said.items():
            said[rule] += 1
            right[rule] += is_right
        for cause, is_named in verdict.due.items():
            due[cause] += 1
            named[cause] += is_named
    precision = [
        Result(
            f"truth: precision of {rule}", f"{right[rule]} of {said[rule]}", "≥ 90%", right[rule] >= 0.9 * said[rule]
        )
        for rule in sorted(said)
    ]
    return precision + [Result(f"truth: recall of {cause}", f"{named[cause]} of {due[cause]}") for cause in sorted(due)]
