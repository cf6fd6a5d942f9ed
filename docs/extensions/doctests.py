"""A griffe extension for the site: examples in docstrings (``>>>``) become code blocks."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?:^[ ]*(?:>>>|\.\.\.).*\n?)+", re.MULTILINE)


class Doctests(griffe.Extension):
    """Replace the examples in every docstring with a fenced code block, without prompts and doctest options."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(_as_block, obj.docstring.value)


def _as_block(example: re.Match[str]) -> str:
    lines = [re.sub(r"^ *(?:>>>|\.\.\.) ?", "", line) for line in example[0].splitlines()]
    code = "\n".join(re.sub(r" *# doctest:.*", "", line) for line in lines)
    return f"```python\n{code}\n```\n"
