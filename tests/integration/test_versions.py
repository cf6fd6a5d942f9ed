"""The cluster and its workers have the versions of the packages that users import."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import daskscope
from daskscope import Recording
from daskscope.collector.versions import PACKAGES, installed, known


def truth() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def test_the_versions_of_installed_packages_are_recorded(
    client: Any, tmp_path: Path, opened: Callable[[Path], Recording]
) -> None:
    with daskscope.record(tmp_path / "run.daskscope", client):
        client.submit(sum, [1, 2]).result()

    recording = opened(tmp_path / "run.daskscope")
    rows = [*recording["clusters"]["versions"], *recording["workers"]["versions"]]
    assert len(rows) == 3
    for row in map(json.loads, rows):
        assert {name: row.get(name) for name in truth()} == truth()
        assert row["distributed"] == version("distributed")
    assert {"pyarrow", "duckdb"} <= truth().keys()


def test_packages_are_not_imported() -> None:
    before = set(sys.modules)
    assert installed(["pip", "no-such-package"]).keys() <= {"pip"}
    assert not {"pip"} & (set(sys.modules) - before)


def test_other_names_and_values_from_a_worker_are_ignored() -> None:
    assert known({"numpy": "2" * 500, "secret": "1", "scipy": 5}) == {"numpy": "2" * 100}
    assert known(["numpy"]) == known(None) == {}
