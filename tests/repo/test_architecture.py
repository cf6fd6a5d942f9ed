"""The table of rooms in ARCHITECTURE.md names every module, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "src" / "daskscope"
MAX_LINES = 150
#: A folder with more modules is a heap. Commands and routes are lists: one module per command, one per resource.
MAX_MODULES = 20
LISTS = {"cli"}


def rooms() -> dict[str, list[str]]:
    """Return the modules of every package, by its path below the root package."""
    folders = [path.parent for path in PACKAGE.rglob("__init__.py") if "migrations" not in path.parts]
    return {
        "daskscope" if folder == PACKAGE else str(folder.relative_to(PACKAGE)): sorted(
            path.stem for path in folder.glob("*.py") if path.stem != "__init__"
        )
        for folder in folders
    }


def test_the_table_of_rooms_is_the_tree() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    listed = dict(re.findall(r"^\| `([\w/]+)` \| ([\w ]+) \|", text, re.MULTILINE))

    assert {room: modules.split() for room, modules in listed.items()} == rooms()


def test_no_room_is_a_heap() -> None:
    found = {room: len(modules) for room, modules in rooms().items() if room not in LISTS}

    assert {room: count for room, count in found.items() if count > MAX_MODULES} == {}


def test_the_architecture_is_short() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text().splitlines()) <= MAX_LINES
