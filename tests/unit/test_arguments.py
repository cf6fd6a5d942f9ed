"""Messages keep their meaning and lose the arguments they quote."""

from __future__ import annotations

import functools

import pytest

from daskscope.collector.arguments import without_arguments


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no call (at all)", "no call (at all)"),
        ("run WorkItem(key='x', args=('secret', (1, 2))) twice", "run WorkItem(…) twice"),
        ("_WorkItem(')', \"(\", f(1)) (kept)", "_WorkItem(…) (kept)"),
        (
            "in functools.partial(<function f at 0x1>, 'it\\'s') and partial(g, 2)",
            "in functools.partial(…) and partial(…)",
        ),
        ("cut off: WorkItem(args=('secret', ", "cut off: WorkItem(…"),
        ("<Task 'inc-1' inc(secret)> failed\nnext", "<Task …> failed\nnext"),
        ("<Task ('x', 1) inc('>', secret", "<Task …"),
        ("<Future finished exception=ValueError('secret')>", "<Future …>"),
        (
            "TypeError: ('Could not serialize object of type Frame', 'secret')\nnext",
            "TypeError: ('Could not serialize object of type Frame…\nnext",
        ),
    ],
)
def test_quoted_arguments_are_cut(text: str, expected: str) -> None:
    assert without_arguments(text) == expected


def test_a_real_partial_is_cut() -> None:
    text = without_arguments(f"callback {functools.partial(print, 'secret', end=')')} failed")
    assert text == "callback functools.partial(…) failed"


@pytest.mark.parametrize(
    "piece", ["partial(", "<Task ", "'", "WorkItem('", "Could not serialize object of type x", ")>"]
)
def test_cutting_is_linear(piece: str) -> None:
    # Quadratic work over a million characters would exceed the test's time limit by far.
    assert without_arguments("WorkItem(" + piece * (1_000_000 // len(piece))) is not None
