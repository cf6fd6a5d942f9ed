"""Provoke each rule on a real cluster, and follow its advice: the rule speaks about the one, and about no twin.

A workload has the problem; its twin does the same work after following the advice. The gain is the time that the twin saved, by
the clock of the client, and compared with the wall time that the finding promised at most. ``--keep DIR`` writes the recordings,
which ``tests/unit/test_kept_recordings.py`` reads. A name of ``insight_cases`` records that program, about which a rule once
said something false; ``tests/unit/test_recorded_cases.py`` reads those.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import dask
from distributed import Client, LocalCluster, wait

import daskscope
from benchmarks import insight_tasks as tasks
from benchmarks.insight_cases import CASES
from benchmarks.insight_pairs import PAIRS, Pair, Side
from benchmarks.insight_reasons import REASONS
from benchmarks.kept_recordings import MAX_BYTES, keep
from benchmarks.result import Result, at_most
from daskscope.analysis.summary import extent
from daskscope.insights.facts import Facts, Finding
from daskscope.insights.rules import findings
from daskscope.model.recording import Recording


@dataclass(frozen=True)
class Run:
    """What was found about a run, and how long it took."""

    recording: Recording
    found: dict[str, Finding]
    seconds: float


def observe(side: Side) -> Run:
    """Run a workload on a new cluster and return what its recording says."""
    with (
        dask.config.set(side.config),
        tempfile.TemporaryDirectory() as directory,
        LocalCluster(
            n_workers=side.workers,
            threads_per_worker=side.threads,
            dashboard_address=":0",
            silence_logs=50,
            **{"memory_limit": 0, **side.options},
        ) as cluster,
        Client(cluster) as client,
    ):
        wait(client.map(tasks.nothing, range(-20, 0)))
        with daskscope.record(Path(directory) / "run.daskscope", client) as recorded:
            began = time.monotonic()
            side.work(client)
            seconds = time.monotonic() - began
        recording = recorded.recording
    made = findings(Facts.of(recording, *extent(recording)))
    return Run(recording, {finding.rule: finding for finding in reversed(made)}, seconds)


def run(only: Sequence[str] = (), directory: str = "") -> list[Result]:
    """Observe all pairs, or those of some rules and cases; write the recordings if a directory is given."""
    missed: list[str] = []
    wrong: list[str] = []
    broken: list[str] = []
    large: list[str] = []
    pairs = [pair for pair in PAIRS if not only or pair.rule in only]
    for name in sorted(CASES.keys() & set(only)):
        one = observe(CASES[name])
        print(f"    {name}: {one.seconds:.2f} s; {', '.join(one.found) or 'no findings'}", file=sys.stderr, flush=True)
        if directory and keep(one.recording, Path(directory), name).stat().st_size > MAX_BYTES:
            large.append(name)
    for pair in pairs:
        problem, twin = observe(pair.problem), observe(pair.twin)
        if directory:
            for name, one in ((pair.rule, problem), (f"{pair.rule}.twin", twin)):
                path = keep(one.recording, Path(directory), name)
                large += [name] if path.stat().st_size > MAX_BYTES else []
        finding = problem.found.get(pair.rule)
        missed += [] if finding else [pair.rule]
        unexpected = twin.found.keys() - REASONS.get(f"{pair.rule}.twin", {}).keys()
        wrong += [f"{rule} about the twin of {pair.rule}" for rule in sorted(unexpected)]
        broken += _broken_promise(pair, problem, twin)
        _print(pair, problem, twin)
    gains = sum(pair.has_gain for pair in pairs)
    return [
        at_most("insights: rules that miss their workload", len(missed), 0, f" of {len(pairs)}", ", ".join(missed)),
        at_most("insights: findings about twins without a reason", len(wrong), 0, "", "; ".join(wrong)),
        at_most(
            "insights: advice that saved nothing, or more than promised",
            len(broken),
            0,
            f" of {gains}",
            "; ".join(broken),
        ),
        *([at_most("insights: recordings above 60 kB", len(large), 0, "", ", ".join(large))] if directory else []),
    ]


def _promised_s(pair: Pair, problem: Run) -> float:
    finding = problem.found.get(pair.rule)
    return finding.gain.wall_high_us / 1e6 if finding and finding.gain else 0.0


def _broken_promise(pair: Pair, problem: Run, twin: Run) -> list[str]:
    saved, promised = problem.seconds - twin.seconds, _promised_s(pair, problem)
    if not pair.has_gain or pair.rule not in problem.found or 0 <= saved <= 1.15 * promised + 0.3:
        return []
    return [f"{pair.rule} (saved {saved:.2f} s, promised at most {promised:.2f} s)"]


def _print(pair: Pair, problem: Run, twin: Run) -> None:
    others, of_twin = (", ".join(sorted(one.found.keys() - {pair.rule})) or "none" for one in (problem, twin))
    print(
        f"    {pair.rule}: {'found' if pair.rule in problem.found else 'MISSED'}; {problem.seconds:.2f} s, "
        f"twin {twin.seconds:.2f} s, promised at most {_promised_s(pair, problem):.2f} s; others: {others}; twin: {of_twin}",
        file=sys.stderr,
        flush=True,
    )
