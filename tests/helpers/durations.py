"""Measure how long the tests of each file take, so that the next run starts the longest files first."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "durations.json"
#: The order of shorter files does not matter.
MIN_S = 5


def read_durations() -> dict[str, int]:
    """Return the seconds of each file that takes long, by its path in the repository."""
    found: dict[str, int] = json.loads(FILE.read_text())
    return found


class DurationWriter:
    """Adds up the tests of each file, and writes the sums at the end. Files that did not run keep their figures."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid.partition("::")[0]] += report.duration

    def pytest_sessionfinish(self) -> None:
        measured = {**read_durations(), **{name: round(value) for name, value in self.seconds.items()}}
        kept = {name: value for name, value in measured.items() if value >= MIN_S and (self.root / name).exists()}
        longest_first = sorted(kept.items(), key=lambda item: (-item[1], item[0]))
        FILE.write_text(json.dumps(dict(longest_first), indent=1) + "\n")
