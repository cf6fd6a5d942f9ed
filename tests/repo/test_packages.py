"""A package is built from a bare clone with Python alone, and has everything that its extras promise."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PAGES = ("daskscope/report/viewer.html", "daskscope/server/static/app.html")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a copy of the sources, without anything that was built."""
    listed = subprocess.check_output(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, text=True
    )
    clone = tmp_path / "clone"
    for name in filter(lambda name: (ROOT / name).is_file(), listed.splitlines()):
        if not name.startswith(("tests/", "docs/", "benchmarks/")):
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, clone / name)
    assert not any((clone / "src" / page).exists() for page in PAGES)
    return clone


def test_a_wheel_of_a_bare_clone_has_the_web_pages(clone: Path, tmp_path: Path) -> None:
    # pip builds in an environment of its own: neither .venv nor its Node is used.
    path = os.pathsep.join(part for part in os.environ["PATH"].split(os.pathsep) if ".venv" not in part)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(clone)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path})
    assert done.returncode == 0, done.stderr
    [wheel] = tmp_path.glob("daskscope-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        sizes = {name: archive.getinfo(name).file_size for name in archive.namelist()}
    assert all(sizes.get(page, 0) > 100 for page in PAGES)
    assert not [name for name in sizes if not name.startswith("daskscope")]


def test_a_build_without_npm_says_what_to_do(clone: Path) -> None:
    environment = {**os.environ, "PATH": str(clone)}
    done = subprocess.run(
        [sys.executable, "web/build.py"], cwd=clone, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("The web pages cannot be built: there is no npm. Run scripts/install")


def test_the_server_has_what_its_pages_need() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    # The page Explore asks questions in SQL.
    assert [one for one in extras["server"] if one.startswith("duckdb")] == [
        one for one in extras["sql"] if one.startswith("duckdb")
    ]
