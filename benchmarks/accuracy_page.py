"""Write ``docs/accuracy.md``, section by section: each benchmark has its own."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "accuracy.md"
#: Headings of the sections, in the order of the page.
PROGRAMS, STATEMENTS = "Findings and predictions", "Statements"


def write_section(heading: str, text: str, page: Path = PAGE) -> None:
    """Replace the text of a section."""
    sections = _sections(page.read_text(encoding="utf-8"))
    sections[heading] = text
    page.write_text("\n".join(_join(sections)), encoding="utf-8")


def machine() -> str:
    """Return the versions and the size of this machine, as part of a sentence."""
    return f"Python {platform.python_version()}, distributed {version('distributed')}, {os.cpu_count()} shared cores"


def _sections(text: str) -> dict[str, str]:
    """Return the text of each section by its heading; the text before the first one has none."""
    sections, heading = {"": ""}, ""
    for line in text.splitlines():
        if line.startswith("## "):
            heading = line[3:]
            sections[heading] = ""
        else:
            sections[heading] += f"{line}\n"
    return sections


def _join(sections: dict[str, str]) -> list[str]:
    lines = [sections[""].strip()]
    for heading in (PROGRAMS, STATEMENTS):
        if text := sections.get(heading, "").strip():
            lines += ["", f"## {heading}", "", text]
    return [*lines, ""]
