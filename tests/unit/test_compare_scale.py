"""Comparisons of recordings with very many names: linear in their number, bounded in what they list."""

from __future__ import annotations

import tracemalloc
from collections import UserDict
from collections.abc import Mapping, ValuesView

from daskscope.analysis.compare.changes import MAX_LISTED, compare_runs
from daskscope.analysis.compare.comparison import Comparison, compare_parts, notes
from daskscope.analysis.compare.measurements import Measured, PrefixTimes
from daskscope.testing import make_recording
from daskscope.wire.file import Row

T = 1_700_000_000_000_000
MANY = 3_000


class Counted(UserDict[str, PrefixTimes]):
    """Prefixes that count how often all of them are looked at."""

    passes = 0

    def values(self) -> ValuesView[PrefixTimes]:
        self.passes += 1
        return super().values()


def a_run(prefixes: Mapping[str, int]) -> tuple[Measured, Counted]:
    found = Counted({name: PrefixTimes(1, us, us, us, us, 8, us) for name, us in prefixes.items()})
    run = Measured(
        source="run", start_us=T, wall_us=1_000_000, prefixes=found, thread_us={}, spans_us={}, memory=(),
        peak_memory=0, transferred=0, workers=1, threads=1, errors=0,
        versions={f"package-{n}": str(len(prefixes)) for n in range(MAX_LISTED + 1)},
        code=("\n".join(map(str, range(6_000))),),
    )  # fmt: skip
    return run, found


def test_the_sum_of_all_prefixes_is_made_once_per_run() -> None:
    runs = [a_run({f"p{n}": 1_000 + n for n in range(MANY)}) for _ in range(2)]
    compare_runs([runs[0][0]], [runs[1][0]])
    assert [prefixes.passes for _, prefixes in runs] == [1, 1]


def test_only_the_prefixes_that_changed_most_are_listed_and_a_note_says_so() -> None:
    usual = {f"p{n}": 1_000 for n in range(MANY)}
    # One prefix is large enough to be tested, and did not change.
    before, after = a_run({**usual, "large": 10**6}), a_run({**usual, "large": 10**6, "p7": 2_000, "new": 5_000})
    found = compare_runs([before[0]], [after[0]])
    assert len(found.prefixes) == MAX_LISTED
    assert [prefix.prefix for prefix in found.prefixes[:2]] == ["new", "p7"]
    assert "large" in {prefix.prefix for prefix in found.prefixes}
    assert notes(found)[:3] == (
        "Only 1,000 of 3,002 task prefixes are listed.",
        "Only 1,000 of 1,001 packages are listed.",
        "Only the first 5,000 lines of code are compared.",
    )


def test_a_deep_stack_takes_memory_for_each_frame_and_not_for_each_pair_of_frames() -> None:
    depth = 5_000
    profile: Row = {
        "start_us": T, "stop_us": T + 1_000, "worker": "w", "prefix": "inc", "kind": "compute", "count": 5,
        "stack": [f"f.py\tg{n}\t1" for n in range(depth)],
    }  # fmt: skip
    task: Row = {"key": "inc-1", "prefix": "inc", "worker": "w", "status": "ok", "start_us": T, "stop_us": T + 1_000}
    recording = make_recording({"profiles": [profile], "tasks": [task]})
    tracemalloc.start()
    try:
        found: Comparison = compare_parts([(recording, T, T + 1_000)], [(recording, T, T + 1_000)])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found.flame.nodes) == depth
    # Paths of all nodes would take 100 MB.
    assert peak < 25_000_000
