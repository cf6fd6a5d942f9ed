"""Parse Python sources in a process whose other threads may parse, too."""

from __future__ import annotations

import ast


def syntax_tree(source: str, feature_version: tuple[int, int] | None = None) -> ast.Module:
    """Return the syntax tree, as ``ast.parse`` does.

    CPython 3.11 keeps the depth of the tree in one place for all threads, so that it fails if another one parses meanwhile
    (gh-106905).
    """
    for _ in range(100):
        try:
            return ast.parse(source, feature_version=feature_version)
        except SystemError as error:
            if "recursion depth mismatch" not in str(error):
                raise
    raise AssertionError("another thread parsed a hundred times")
