"""The documentation names what exists, and everything that exists is named."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from daskscope.cli.main import COMMANDS, command_name

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted(
    path
    for path in (
        *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
        *ROOT.glob("docs/**/*.md"),
    )
    if path.exists()
)
#: Where a path in a text may start from: the repository, the page, the package.
BASES = (Path(), Path("src/daskscope"), Path("docs"))
PATH = re.compile(r"[\w.-]+(/[\w.*-]+)*/?")
SUFFIXES = (".py", ".md", ".toml", ".yaml", ".yml", ".ts")
FOLDERS = ("src", "tests", "docs", "scripts", "benchmarks", "examples", "deploy", "web")


def test_the_page_of_tables_is_fresh() -> None:
    checked = subprocess.run(
        [sys.executable, ROOT / "scripts" / "gen-docs", "--check"], capture_output=True, text=True, check=False
    )

    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("command", [command_name(module) for module in COMMANDS])
def test_every_command_has_a_page_of_its_name(command: str) -> None:
    page = ROOT / "docs" / f"{command}.md"

    assert page.exists()
    assert page.read_text().startswith(f"# daskscope {command}\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose(page))
    relative = [target for target in targets if not re.match(r"[a-z]+:", target)]

    assert [target for target in relative if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_a_page_names_exists(page: Path) -> None:
    named = [name for name in re.findall(r"`([^`\n]+)`", prose(page)) if is_path(name)]

    assert [name for name in named if not exists(name, page)] == []


def prose(page: Path) -> str:
    """The page without its code blocks, which show what a user's files look like."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def is_path(text: str) -> bool:
    if not PATH.fullmatch(text):
        return False
    return text.endswith(SUFFIXES) or (text.split("/")[0] in FOLDERS and "/" in text)


def exists(name: str, page: Path) -> bool:
    bases = [*(ROOT / base for base in BASES), page.parent]
    return any(any(base.glob(name.rstrip("/"))) for base in bases)
