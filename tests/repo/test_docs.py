"""The documentation names only what exists, and everything that exists is documented."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from daskscope.cli.main import COMMANDS, command_name
from daskscope.server.http.passwords import IPV6_BITS, MAX_ATTEMPTS, MAX_PER_USER
from daskscope.storage.people import users
from daskscope.storage.people.tokens import LINK_US

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted(
    path
    for path in (
        *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
        *ROOT.glob("docs/**/*.md"),
    )
    # A page that redirects from an old name has the relative links of its target.
    if path.exists() and not path.is_symlink()
)
#: A path in a text is relative to the repository, the page or the package.
BASES = (Path(), Path("src/daskscope"), Path("docs"))
PATH = re.compile(r"[\w.-]+(/[\w.*-]+)*/?")
SUFFIXES = (".py", ".md", ".toml", ".yaml", ".yml", ".ts")
FOLDERS = ("src", "tests", "docs", "scripts", "benchmarks", "examples", "deploy", "web")


def test_the_generated_pages_are_up_to_date() -> None:
    checked = subprocess.run(
        [sys.executable, ROOT / "scripts" / "gen-docs", "--check"], capture_output=True, text=True, check=False
    )

    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("command", [command_name(name) for name in COMMANDS])
def test_every_command_has_a_page_with_its_name(command: str) -> None:
    page = ROOT / "docs" / "reference" / "cli" / f"{command}.md"

    assert page.exists()
    assert page.read_text().startswith(f"# daskscope {command}\n")


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    pages = [str(page.relative_to(ROOT / "docs")) for page in PAGES if page.is_relative_to(ROOT / "docs")]

    assert [page for page in pages if not re.search(rf"[ :]{re.escape(page)}$", navigation, re.MULTILINE)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_resolves(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose(page))
    relative = [target for target in targets if not re.match(r"[a-z]+:", target)]

    assert [target for target in relative if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    named = [name for name in re.findall(r"`([^`\n]+)`", prose(page)) if is_path(name)]

    assert [name for name in named if not exists(name, page)] == []


def prose(page: Path) -> str:
    """Return the page without its code blocks, which show users' files."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def is_path(text: str) -> bool:
    if not PATH.fullmatch(text):
        return False
    return text.endswith(SUFFIXES) or (text.split("/")[0] in FOLDERS and "/" in text)


def exists(name: str, page: Path) -> bool:
    bases = [*(ROOT / base for base in BASES), page.parent]
    return any(any(base.glob(name.rstrip("/"))) for base in bases)


def test_the_installation_page_lists_every_extra() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    section = re.search(r"^\[project\.optional-dependencies\]\n(.*?)^\[", project, re.MULTILINE | re.DOTALL)
    assert section is not None
    extras = re.findall(r"^([a-z0-9-]+) = \[", section[1], re.MULTILINE)
    listed = re.findall(
        r"^\| `daskscope\[([a-z0-9-]+)\]` \|", (ROOT / "docs/installation.md").read_text(), re.MULTILINE
    )

    assert sorted(listed) == sorted(extras)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_uses_commands_that_distributed_removed(page: Path) -> None:
    assert re.findall(r"\bdask-(?:scheduler|worker|ssh)\b", page.read_text()) == []


def test_the_documented_sign_in_limits_are_those_of_the_code() -> None:
    text = " ".join((ROOT / "docs/operations/deploy.md").read_text(encoding="utf-8").split())
    minutes = users.LOCK_US // 60_000_000
    assert (
        f"{MAX_ATTEMPTS} wrong passwords from one address, or {MAX_PER_USER} for one user from any address, "
        f"within {minutes} minutes lock it out until the {minutes} minutes are over" in text
    )
    assert f"is locked out after {MAX_ATTEMPTS} wrong passwords" in text
    assert f"count by their /{IPV6_BITS} network" in text
    assert f"works once, within {LINK_US // 60_000_000} minutes" in text
