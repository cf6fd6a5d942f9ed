"""The documentation site builds without a warning and loads nothing from the network."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ASSET = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=[\"']?(?:https?:)?//[^\"' >]+")


@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="mkdocs is missing: scripts/install docs")
def test_the_site_builds_strictly_and_works_offline(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert built.returncode == 0, built.stdout + built.stderr
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > 35
    # The canonical address of the project is a link to follow, not an asset to load.
    assert {match for page in pages for match in ASSET.findall(page.read_text()) if "canonical" not in match} == set()
