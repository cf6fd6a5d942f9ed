"""Names and numbers that stand in paths."""

from __future__ import annotations

from daskscope.analysis.rollup import clean_text
from daskscope.server.failure import bad_request

MOST_NAME = 200


def is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 18


def check_cluster(name: str) -> None:
    """Refuse a cluster that could not be named in a path: a slash, even an escaped one, would name something else."""
    plain = name and clean_text(name, MOST_NAME) == name and name.isprintable()
    if not plain or "/" in name or "\\" in name or name in (".", ".."):
        raise bad_request("A batch names no cluster a server could list.")
