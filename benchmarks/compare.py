"""Compare recorded runs of identical code, and of code with one slowed prefix, and count the right answers.

Runs of both codes are recorded in turn; sets of five repeats are drawn from them at random. The work of the slowed prefix is known,
because the benchmark itself does it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

from benchmarks.compare_workload import COMPUTING, WAITING, record_pool
from benchmarks.result import Result
from daskscope.analysis.compare.changes import Changes, compare_runs
from daskscope.analysis.compare.measurements import Measured, measure
from daskscope.analysis.summary import extent
from daskscope.wire.file import read_recording

RUNS, REPEATS, PAIRS = 30, 5, 40
#: How much longer the slowed prefixes take.
FACTOR = 1.2
NEEDED = 38


def run() -> list[Result]:
    """Record the runs and compare them."""
    with tempfile.TemporaryDirectory(prefix="daskscope-bench-") as directory:
        recorded = record_pool(Path(directory), RUNS, FACTOR)
        pools = {name: [_measured(path) for path in paths] for name, paths in recorded.items()}
    random, same = Random(1), pools[""]
    equal, others, found = 0, 0, dict.fromkeys((COMPUTING, WAITING), 0)
    for _ in range(PAIRS):
        drawn = random.sample(same, 2 * REPEATS)
        equal += not compare_runs(drawn[:REPEATS], drawn[REPEATS:]).is_shown
        for name in found:
            named = _slower_or_faster(compare_runs(drawn[:REPEATS], random.sample(pools[name], REPEATS)))
            found[name] += name in named
            others += bool(named - {name})
    blocks = [same[start : start + REPEATS] for start in range(0, RUNS, REPEATS)]
    pairs = [(first, second) for at, first in enumerate(blocks) for second in blocks[at + 1 :]]
    apart = sum(not compare_runs(first, second).is_shown for first, second in pairs)
    bar = f"≥ {NEEDED} of {PAIRS}"
    return [
        Result("identical code, no difference shown", f"{equal} of {PAIRS}", bar, equal >= NEEDED, _noise(same)),
        *(
            Result(f"{what} 20 % longer, named", f"{found[name]} of {PAIRS}", bar, found[name] >= NEEDED)
            for name, what in ((COMPUTING, "a prefix that computes"), (WAITING, "a prefix that sleeps"))
        ),
        Result("another prefix named beside it", f"{others} of {2 * PAIRS}"),
        Result(
            "identical code at different times, no difference shown", f"{apart} of {len(pairs)}", note="not in turn"
        ),
    ]


def _measured(path: Path) -> Measured:
    recording = read_recording(path)
    return measure(recording, *extent(recording))


def _slower_or_faster(changes: Changes) -> set[str]:
    return {prefix.prefix for prefix in changes.prefixes if prefix.verdict in ("slower", "faster")}


def _noise(runs: list[Measured]) -> str:
    """Return how much the machine varied: the range of the total time."""
    walls = sorted(run.wall_us / 1e6 for run in runs)
    return f"total time {walls[0]:.2f} to {walls[-1]:.2f} s"
