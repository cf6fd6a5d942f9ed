"""Responses about baselines of benchmarks. Part of the contract in ``contract.py``."""

from __future__ import annotations

from typing import TypedDict


class Baseline(TypedDict):
    """The baseline of one test."""

    name: str
    test: str
    repeats: int
    #: Bytes as stored: compressed and encrypted.
    size: int
    created: str | None
    changed: str | None
    #: Who kept it last.
    user: str


class BaselineRuns(Baseline):
    """A baseline with the measurements of each repeat, as they were kept."""

    runs: list[dict[str, object]]


class BaselineList(TypedDict):
    """A page of an account's baselines."""

    items: list[Baseline]
    next: str | None
