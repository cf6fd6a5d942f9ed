"""Files stay short enough to read in one go."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SOURCE_LIMIT = 500
TEST_LIMIT = 600


def too_long(paths: list[Path], limit: int) -> dict[str, int]:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in paths if path.is_file()}
    return {name: length for name, length in lengths.items() if length > limit}


def test_no_source_file_is_too_long() -> None:
    sources = [*ROOT.glob("src/**/*.py"), *ROOT.glob("benchmarks/**/*.py"), *ROOT.glob("examples/**/*.py")]
    scripts = [path for path in ROOT.glob("scripts/*") if path.is_file()]

    assert too_long(sources + scripts, SOURCE_LIMIT) == {}


def test_no_test_file_is_too_long() -> None:
    assert too_long([*ROOT.glob("tests/**/*.py")], TEST_LIMIT) == {}
