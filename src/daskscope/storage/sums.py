"""Sums that stay within 64 bits, whatever a recorder claims: a statement must not fail for one hostile batch."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from daskscope.analysis.rollup import LARGEST


def saturated(column: Any, mine: Any) -> Any:
    """A column plus what is added to it, cut at the largest number that is kept."""
    if isinstance(column.type, sa.Float):
        return column + mine
    return sa.case((column > LARGEST - mine, LARGEST), else_=column + mine)


def summed(value: Any) -> Any:
    """The sum over some rows, 0 over none, cut at the largest number that is kept.

    Added up as floats, which are exact up to that number (2⁵³). SQLite's sum of integers fails with "integer overflow" when 1,024
    rows hold the largest; PostgreSQL adds up to a numeric, but then cannot put it into 64 bits.
    """
    return _cut(sa.func.coalesce(sa.func.sum(sa.cast(value, sa.Float)), 0.0))


def greatest_of(value: Any) -> Any:
    """The greatest of some floats as a whole number, cut in the same way."""
    return _cut(sa.func.max(value))


def _cut(value: Any) -> Any:
    return sa.cast(sa.case((value > LARGEST, float(LARGEST)), else_=value), sa.BigInteger)
