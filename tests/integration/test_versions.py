"""The cluster and its workers have the versions of the packages that users import."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

import daskscope
from daskscope import Recording
from daskscope.collector import versions
from daskscope.collector.versions import MAX_DIRECTORIES, PACKAGES, find_versions, installed, known


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


def test_packages_are_found_as_pip_finds_them_without_importing_them() -> None:
    assert subprocess.check_output([sys.executable, "-c", FIND], text=True).split("\n") == [repr(truth()), "False", ""]


FIND = """
import sys
from daskscope.collector.versions import PACKAGES, installed
found = installed()
print({name: found[name] for name in PACKAGES if name in found})
print("pyarrow" in sys.modules)
"""


def distributions(directory: Path, *names: str) -> str:
    for name in names:
        (directory / name).mkdir(parents=True)
    return str(directory)


def test_the_first_directory_of_a_package_counts_and_site_directories_come_first(tmp_path: Path) -> None:
    own = distributions(tmp_path / "own", "numpy-1.0.dist-info", "scipy-1.5.egg-info", "torch")
    site = distributions(tmp_path / "site-packages", "numpy-2.0.dist-info", "scikit_learn-1.1-py3.11.egg-info")
    assert find_versions(["", own, site, str(tmp_path / "missing")], time.monotonic) == {
        "numpy": "2.0",
        "scikit-learn": "1.1",
        "scipy": "1.5",
    }


def test_the_search_ends_after_its_time_and_its_number_of_directories(tmp_path: Path) -> None:
    site = distributions(tmp_path / "site-packages", "numpy-2.0.dist-info")
    seconds = iter(range(0, 1_000, 100))
    assert len(find_versions([distributions(tmp_path, "a", "b"), site], lambda: next(seconds))) <= 1
    assert next(seconds) == 200
    many = [distributions(tmp_path / f"worker-{n}") for n in range(MAX_DIRECTORIES)]
    late = distributions(tmp_path / "late", "numpy-2.0.dist-info")
    assert find_versions([*many, late], time.monotonic) == {}


def test_a_process_looks_once_however_many_agents_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([{"numpy": "1"}, {"numpy": "2"}])
    monkeypatch.setattr(versions, "_found", None)
    monkeypatch.setattr(versions, "find_versions", lambda *_: next(answers))
    assert [installed() for _ in range(3)] == [{"numpy": "1"}] * 3


def test_other_names_and_values_from_a_worker_are_ignored() -> None:
    assert known({"numpy": "2" * 500, "secret": "1", "scipy": 5}) == {"numpy": "2" * 100}
    assert known(["numpy"]) == known(None) == {}
