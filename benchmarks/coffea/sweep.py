"""Follow the advice on chunk sizes: run every size that is suggested, and compare its time with that of the present size.

Each size of a ladder is taken in turn as the present one. The rule for opening looks at one run, the rule for chunk sizes at the
run and one of the next size.
"""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import daskscope
from benchmarks.coffea import processors
from benchmarks.coffea.check import call, client, make_data
from daskscope.analysis.coffea import CoffeaRun, coffea_runs
from daskscope.analysis.summary import extent
from daskscope.insights.coffea import COFFEA_CHUNK_SIZE, COFFEA_OPENING
from daskscope.insights.facts import Facts

REPEATS = 3
#: Slower than this is harm; two runs of the same size differ by less (median of three) even on a busy machine.
HARMFUL = 0.9
_SIZE = re.compile(r"chunksize=([\d,]+)")


@dataclass
class Workload:
    """A processor, its files, and the sizes that are taken as present."""

    name: str
    processor: Any
    fileset: dict[str, list[str]]
    sizes: tuple[int, ...]
    workers: int
    #: Recordings by size.
    runs: dict[int, list[tuple[CoffeaRun, daskscope.Recording]]] = field(default_factory=dict)

    def measure(self, size: int) -> float:
        """Return the median time of a size in seconds."""
        if size not in self.runs:
            self.runs[size] = [self._run(size) for _ in range(REPEATS)]
        return median(run.wall_us for run, _ in self.runs[size]) / 1e6

    def _run(self, size: int) -> tuple[CoffeaRun, daskscope.Recording]:
        with client(workers=self.workers) as made:
            # The first chunk of a worker imports coffea.
            call(made, self.processor, self.fileset, chunksize=max(self.sizes))
            with daskscope.record("sweep.daskscope", made) as record:
                call(made, self.processor, self.fileset, chunksize=size)
            recording: daskscope.Recording = record.recording
        return coffea_runs(recording)[-1], recording

    def advice(self, size: int) -> Iterator[tuple[str, int]]:
        """Yield each rule that suggests another size, and the size."""
        run, recording = self.runs[size][0]
        facts = Facts.of(recording, *extent(recording))
        facts.__dict__["coffea"] = (run,)
        for finding in COFFEA_OPENING.check(facts):
            if found := _SIZE.search(finding.advice):
                yield "opening", int(found[1].replace(",", ""))
        others = [other for other in self.sizes if other != size]
        nearest = min(others, key=lambda other: abs(other - size))
        facts = replace(facts)
        facts.__dict__["coffea"] = (self.runs[nearest][0][0], run)
        for finding in COFFEA_CHUNK_SIZE.check(facts):
            if found := _SIZE.search(finding.advice):
                yield "chunk size", int(found[1].replace(",", ""))

    @cached_property
    def heading(self) -> str:
        return f"{self.name}, {self.workers} workers"


def workloads(directory: Path) -> list[Workload]:
    narrow, wide = make_data(directory)
    return [
        Workload("18 branches", processors.PairProcessor(), narrow, (10_000, 25_000, 50_000, 100_000, 200_000), 2),
        Workload("914 branches", processors.MuonProcessor(), wide, (10_000, 25_000, 50_000, 100_000), 2),
        Workload("emulated I/O", processors.SleepingProcessor(), narrow, (10_000, 25_000, 50_000, 100_000, 200_000), 6),
    ]


def main() -> int:
    warnings.simplefilter("ignore")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    directory = Path(sys.argv[1]).absolute()
    harmful = spoken = silent = 0
    for workload in workloads(directory):
        for size in workload.sizes:
            workload.measure(size)
        for size in workload.sizes:
            suggestions = list(workload.advice(size))
            silent += not suggestions
            for rule, suggested in suggestions:
                now, then = workload.measure(size), workload.measure(suggested)
                gain = now / then
                spoken += 1
                harmful += gain < HARMFUL
                print(
                    f"{workload.heading:<24} {rule:<11} {size:>8,} -> {suggested:>8,}  {now:6.2f} s -> {then:6.2f} s  "
                    f"{gain:.2f}x{'  HARMFUL' if gain < HARMFUL else ''}",
                    flush=True,
                )
    print(f"{spoken} suggestions, {harmful} harmful; silent for {silent} sizes.")
    return int(harmful > 0)


if __name__ == "__main__":
    sys.exit(main())
