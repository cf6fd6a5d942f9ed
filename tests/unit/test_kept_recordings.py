"""Which rules speak about which recordings of real clusters: each about its own, and about no twin without a reason.

``scripts/bench insights --keep tests/data/insights`` makes the recordings again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from benchmarks.insight_reasons import NOT_PROVOKED, REASONS
from benchmarks.kept_recordings import MAX_BYTES

from daskscope.analysis.summary import extent
from daskscope.insights.facts import Facts
from daskscope.insights.rules import RULES, findings
from daskscope.wire.file import read_recording

KEPT = Path(__file__).parent.parent / "data" / "insights"
NAMES = [f"{rule.id}{end}" for rule in RULES if rule.id not in NOT_PROVOKED for end in ("", ".twin")]
MAX_TOTAL = 3_000_000


def spoken(name: str) -> set[str]:
    """Return the rules that speak about a kept recording."""
    recording = read_recording(KEPT / f"{name}.daskscope")
    return {finding.rule for finding in findings(Facts.of(recording, *extent(recording)))}


def test_every_rule_speaks_about_its_own_workload_and_about_no_twin() -> None:
    """The confusion matrix: every rule with every recording."""
    own = {name: set() if name.endswith(".twin") else {name} for name in NAMES}
    expected = {name: own[name] | REASONS.get(name, {}).keys() for name in NAMES}
    assert {name: spoken(name) for name in NAMES} == expected


def test_every_kept_recording_belongs_to_a_rule() -> None:
    assert {path.name for path in KEPT.iterdir()} == {f"{name}.daskscope" for name in NAMES}


@pytest.mark.parametrize("table", [REASONS, {"rules": NOT_PROVOKED}], ids=["findings", "rules"])
def test_everything_besides_the_diagonal_has_a_reason(table: Mapping[str, Mapping[str, str]]) -> None:
    ids = {rule.id for rule in RULES}
    assert table.keys() <= {*NAMES, "rules"}
    assert {rule for reasons in table.values() for rule in reasons} <= ids
    assert all(reason for reasons in table.values() for reason in reasons.values())


def test_kept_recordings_are_small_and_name_no_machine() -> None:
    sizes = {path.name: path.stat().st_size for path in KEPT.iterdir()}
    assert {name: size for name, size in sizes.items() if size > MAX_BYTES} == {}
    assert sum(sizes.values()) <= MAX_TOTAL
    for name in NAMES:
        recording = read_recording(KEPT / f"{name}.daskscope")
        assert {*recording["clusters"]["user"], *recording["clusters"]["host"], *recording["clusters"]["platform"]} == {
            ""
        }
        files = {frame.partition("\t")[0] for stack in recording["profiles"]["stack"].tolist() for frame in stack}
        assert {file for file in files if not file.startswith(("/packages/", "/python/", "/daskscope/", "<"))} == set()
