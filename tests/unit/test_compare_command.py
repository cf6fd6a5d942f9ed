"""``daskscope compare`` and ``daskscope.compare()`` on recording files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.helpers.compared_runs import write_runs

import daskscope
from daskscope.analysis.compare.flame import DifferentialFlame, largest_changes
from daskscope.cli.main import main
from daskscope.errors import DaskscopeError


@pytest.fixture
def repeats(tmp_path: Path) -> tuple[list[str], list[str]]:
    return write_runs(tmp_path, 5), write_runs(tmp_path, 5, 1.3, first=100)


def test_a_proven_slowdown_beyond_the_limit_exits_with_1(
    repeats: tuple[list[str], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = repeats
    assert main(["compare", "--before", *before, "--after", *after, "--fail-over", "10%"]) == 1
    printed = capsys.readouterr()
    assert "% slower: " in printed.out.partition("\n")[0]
    assert "Slower tasks: score (+30 % time per task)" in printed.out
    assert "daskscope: score is slower by 30 %.\n" in printed.err
    assert "2026.8  2026.9" in printed.out
    assert "-factor = 1.0\n+factor = 1.3\n" in printed.out


@pytest.mark.parametrize("limit", ["50%", "40"])
def test_a_slowdown_within_the_limit_exits_with_0(
    limit: str, repeats: tuple[list[str], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "--before", *repeats[0], "--after", *repeats[1], "--fail-over", limit]) == 0
    assert capsys.readouterr().err == ""


def test_a_speed_up_and_identical_code_exit_with_0(
    tmp_path: Path, repeats: tuple[list[str], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = repeats
    same = write_runs(tmp_path, 5, first=200)
    assert main(["compare", "--before", *after, "--after", *before, "--fail-over", "0%"]) == 0
    assert "% faster: " in capsys.readouterr().out.partition("\n")[0]
    assert main(["compare", "--before", *before, "--after", *same, "--fail-over", "0%"]) == 0
    assert capsys.readouterr().out.startswith("No difference shown: ")


def test_one_run_each_cannot_fail_and_says_so(
    repeats: tuple[list[str], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", repeats[0][0], repeats[1][0], "--fail-over", "10%"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("Cannot tell noise from change: ")
    assert printed.err == "daskscope: too few repeats to prove a slowdown, so --fail-over cannot fail.\n"


def test_json_has_every_number(repeats: tuple[list[str], list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    before, after = repeats
    assert main(["compare", "--before", *before, "--after", *after, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["before"], found["after"]) == (before, after)
    score = next(prefix for prefix in found["prefixes"] if prefix["prefix"] == "score")
    assert (score["verdict"], score["count"]["before"], score["count"]["ratio"]) == ("slower", 10.0, 0.0)
    assert score["time"]["ratio"] == pytest.approx(0.3, abs=0.02)


def test_markdown_and_the_page_are_written(
    tmp_path: Path, repeats: tuple[list[str], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert main(["compare", *(side[0] for side in repeats), "--markdown", "--html", str(page)]) == 0
    assert capsys.readouterr().out.startswith("**Cannot tell noise from change: ")
    assert 'id="daskscope-comparison"' in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "Give two runs"),
        (["{0}"], "Give two runs"),
        (["{0}", "{0}", "--before", "{0}"], "Give two runs, or --before and --after"),
        (["{0}", "{0}", "--computation", "9"], "has no computation 9. It has 1"),
        (["{0}", "{0}", "--computation", "1", "1", "1"], "one value for both sides"),
        (["{0}", "{0}", "--time", "100-200"], "has no data from 100 to 200 s"),
        (["{0}", "{0}", "--html", "/nowhere/x.html"], "cannot be written"),
        (["missing.daskscope", "{0}"], "missing.daskscope"),
    ],
)
def test_a_wrong_request_says_what_to_do(
    arguments: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = write_runs(tmp_path, 1)
    assert main(["compare", *(text.format(path) for text in arguments)]) != 0
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--fail-over", "much"], ["--fail-over", "-1%"], ["--time", "20-10"]])
def test_wrong_values_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["compare", "a", "b", *arguments])
    assert stopped.value.code == 2


def test_compare_accepts_recordings_paths_and_lists(repeats: tuple[list[str], list[str]]) -> None:
    before, after = repeats
    found = daskscope.compare([daskscope.open_recording(before[0]), *map(Path, before[1:])], after)
    assert "<Comparison of 5 and 5 runs: " in repr(found) and "% slower: " in repr(found)
    assert [change.name for change in found.slowdowns(0.25)] == ["score", "score"]
    assert "% slower: " in found.to_markdown().partition("\n")[0]


def test_a_computation_and_a_stretch_of_time_are_compared(repeats: tuple[list[str], list[str]]) -> None:
    before, after = (paths[0] for paths in repeats)
    one = daskscope.compare(before, after, computation=-1)
    assert one.changes.wall == daskscope.compare(before, after, computation="c-1").changes.wall
    early = daskscope.compare(before, after, time=(0, 0.07))
    assert early.changes.wall.before == early.changes.wall.after == 70_000
    assert [prefix.prefix for prefix in early.changes.prefixes] == ["load"]


def test_a_recording_compared_with_itself_shows_no_difference(repeats: tuple[list[str], list[str]]) -> None:
    found = daskscope.compare(repeats[0], repeats[0])
    assert (found.is_shown, found.notes, found.changes.versions, found.changes.code) == (False, (), (), "")
    assert found.flame.before == found.flame.after


def test_nothing_to_compare_is_an_error(repeats: tuple[list[str], list[str]]) -> None:
    with pytest.raises(DaskscopeError, match="nothing to compare"):
        daskscope.compare(repeats[0], [])


def test_the_flame_graph_has_both_sides_in_one_tree(repeats: tuple[list[str], list[str]]) -> None:
    flame: DifferentialFlame = daskscope.compare(*repeats).flame
    assert [frame[1] for frame in flame.frames] == ["main", "clean", "load", "score", "store"]
    assert (flame.nodes, flame.parents) == ([0, 1, 2, 3, 4], [0, 1, 1, 1, 1])
    frame, seconds_before, seconds_after = largest_changes(flame, 1)[0]
    assert frame == ("/home/ann/job.py", "score", 0, "user")
    # 10 tasks of 5 ms, and of 6.5 ms.
    assert [seconds_before, seconds_after] == pytest.approx([0.05, 0.065], rel=0.05)


def test_one_slow_run_does_not_change_the_flame_graph_of_the_others(tmp_path: Path) -> None:
    usual = write_runs(tmp_path, 5)
    (slow,) = write_runs(tmp_path, 1, score=20.0, first=300)
    flame = daskscope.compare(usual, [*write_runs(tmp_path, 4, first=400), slow]).flame
    assert sum(flame.before) == pytest.approx(0.2, rel=0.05)
    assert sum(flame.after) == pytest.approx(0.2, rel=0.05)
