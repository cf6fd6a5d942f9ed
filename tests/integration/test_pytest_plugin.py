"""``pytest --daskscope`` in a pytest of its own, with a real cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.helpers.pytest_project import Project

from daskscope.report.source import content_kind, read_source

BENCHMARKS = """
import os
import pytest

def work(number):
    total = 0
    for step in range(int(os.environ["STEPS"])):
        total += step & 1
    return total

@pytest.mark.daskscope(repeats=5)
def test_marked(client):
    assert len(client.gather(client.map(work, range(5), pure=False))) == 5

def test_fixture(client, daskscope_record):
    found = daskscope_record(lambda: client.submit(work, 1, pure=False).result(), repeats=2, warmup=0)
    assert found == int(os.environ["STEPS"]) // 2

def test_plain(client):
    assert client.submit(work, 1, pure=False).result() >= 0
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


# Three runs of pytest with a cluster each: 40 s on two busy cores.
@pytest.mark.timeout(300)
def test_a_benchmark_is_recorded_kept_compared_and_fails_if_it_is_slower(project: Project) -> None:
    project.write("test_bench.py", BENCHMARKS)
    missing = project.run("--daskscope=out", "--daskscope-compare", "main", "--daskscope-save", "main")
    assert missing.returncode == 0, missing.stdout
    assert "test_bench.py::test_marked: no baseline main yet; --daskscope-save main keeps one" in missing.stdout
    assert "test_bench.py::test_marked: 5 repeats kept as baseline main" in missing.stdout
    assert "test_bench.py::test_fixture: 2 repeats kept as baseline main" in missing.stdout
    assert "test_plain:" not in missing.stdout
    out = project.directory / "out"
    baselines = sorted((out / "baselines" / "main").iterdir())
    kept = {data["test"]: len(data["runs"]) for data in (json.loads(path.read_text()) for path in baselines)}
    assert kept == {"test_bench.py::test_marked": 5, "test_bench.py::test_fixture": 2}
    assert all(path.stat().st_size < 50_000 for path in baselines)
    assert str(project.directory) not in baselines[0].read_text()

    options = ("--daskscope=out", "--daskscope-compare", "main", "--daskscope-fail-over")
    same = project.run(*options, "100%")
    assert same.returncode == 0, same.stdout
    assert "test_bench.py::test_fixture: Cannot tell noise from change: " in same.stdout
    assert not (out / "reports").exists()

    slower = project.run(*options, "100%", steps=400_000)
    assert slower.returncode == 1, slower.stdout
    assert "Slower than baseline main: " in slower.stdout
    assert "FAILED test_bench.py::test_marked" in slower.stdout
    assert "1 failed, 2 passed" in slower.stdout
    (page,) = (out / "reports").glob("*.html")
    (text,) = (out / "reports").glob("*.md")
    assert f"Report: {page}" in slower.stdout
    assert content_kind(page) == "report"
    assert "| `work` | 5 |" in text.read_text()


def test_a_failing_test_fails_as_it_is_and_leaves_a_report(project: Project) -> None:
    project.write(
        "test_bench.py",
        """
import pytest

def broken(number):
    raise ValueError("no such number")

@pytest.mark.daskscope(repeats=1)
def test_broken(client):
    client.submit(broken, 1).result()
""",
    )
    found = project.run("--daskscope=out")
    assert found.returncode == 1
    assert "ValueError: no such number" in found.stdout
    (page,) = (project.directory / "out" / "reports").iterdir()
    assert read_source(page)["exceptions"]["message"].tolist() == ["no such number"]


def test_without_a_client_the_test_says_what_to_do(project: Project) -> None:
    project.write("test_bench.py", "import pytest\n\n@pytest.mark.daskscope\ndef test_alone():\n    pass\n")
    found = project.run("--daskscope=out")
    assert found.returncode == 1
    assert "No Dask client to record." in found.stdout
    assert "daskscope_record(function, client=client)" in found.stdout


def test_without_the_option_nothing_is_imported_and_tests_run_once(project: Project) -> None:
    project.write(
        "test_bench.py",
        """
import sys
import pytest

calls = []

@pytest.mark.daskscope(repeats=5)
def test_marked():
    calls.append(1)

def test_fixture(daskscope_record):
    assert daskscope_record(lambda a, b: a + b, 1, b=2, repeats=5) == 3
    assert calls == [1]
    heavy = {"daskscope", "distributed", "dask", "numpy", "tornado"}
    assert heavy & set(sys.modules) == set()
""",
    )
    (project.directory / "conftest.py").unlink()
    found = project.run()
    assert found.returncode == 0, found.stdout
    assert [path.name for path in project.directory.iterdir() if "scope" in path.name] == []


def test_two_benchmarks_of_one_test_have_their_own_baselines(project: Project) -> None:
    project.write(
        "test_bench.py",
        """
def test_two(client, daskscope_record):
    for number in range(2):
        daskscope_record(lambda: client.submit(abs, number, pure=False).result(), repeats=1, warmup=0)
""",
    )
    assert project.run("--daskscope=out", "--daskscope-save", "main").returncode == 0
    kept = sorted(path.stem for path in (project.directory / "out").rglob("*.json"))
    assert len(kept) == 2
    assert kept[1] == f"{kept[0]}-2"


def test_a_damaged_baseline_is_named(project: Project) -> None:
    project.write(
        "test_bench.py",
        """
import pytest

@pytest.mark.daskscope(repeats=1, warmup=0)
def test_quick(client):
    client.submit(abs, 1, pure=False).result()
""",
    )
    assert project.run("--daskscope=out", "--daskscope-save", "main").returncode == 0
    (path,) = (project.directory / "out" / "baselines" / "main").iterdir()
    path.write_text('{"runs": [{"format": 99}]}')
    found = project.run("--daskscope=out", "--daskscope-compare", "main")
    assert found.returncode == 1
    assert "cannot be read (format 99). Keep a new one with --daskscope-save main." in found.stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--daskscope-save", "main"], "--daskscope-save needs --daskscope."),
        (["--daskscope=out", "--daskscope-fail-over", "20%"], "--daskscope-fail-over needs --daskscope-compare NAME."),
        (
            ["--daskscope=out", "--daskscope-compare", "a", "--daskscope-fail-over", "much"],
            "is not a percentage such as 20%.",
        ),
        (["--daskscope=out", "--daskscope-save", "../x"], "cannot name a baseline"),
        (["--daskscope", "test_bench.py"], "Write --daskscope=test_bench.py, or put --daskscope after the paths"),
    ],
)
def test_wrong_options_are_refused(arguments: list[str], problem: str, project: Project) -> None:
    project.write("test_bench.py", "def test_nothing():\n    pass\n")
    found = project.run(*arguments)
    assert found.returncode == 4
    assert problem in found.stderr
