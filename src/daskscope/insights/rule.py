"""A rule: a check with an ID and its documentation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from daskscope.analysis.facts import Facts, Finding


@dataclass(frozen=True)
class Rule:
    """One rule. ``check`` yields findings, and nothing if it is unsure."""

    id: str
    title: str
    #: Why it matters.
    why: str
    #: When the rule speaks, with the source of each number.
    when: str
    check: Callable[[Facts], Iterator[Finding]]
