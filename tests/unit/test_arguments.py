"""Messages keep their meaning and lose the arguments they quote."""

from __future__ import annotations

import functools

import pytest

from daskscope.collector.aliases import Aliases
from daskscope.collector.privacy import without_arguments


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


CHUNK = (
    "Failed processing file: WorkItem(dataset='ttbar', filename='/data/a.root', treename='Events', entrystart=0, "
    "entrystop=500, fileuuid=b'\\x01)', usermeta={'owner': 'secret'}) (kept)"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CHUNK, "Failed processing file: WorkItem(dataset='ttbar', entrystart=0, entrystop=500, …) (kept)"),
        ("Failed FileMeta(ttbar:/data/a.root:Events)", "Failed FileMeta(ttbar:…)"),
        ("WorkItem(dataset='ttbar', other='secret')", "WorkItem(…)"),
        ("FileMeta(secret)", "FileMeta(…)"),
    ],
)
def test_a_chunk_of_coffea_keeps_its_dataset_and_range(text: str, expected: str) -> None:
    assert without_arguments(text) == expected


def test_a_dataset_is_an_alias_if_keys_are_not_recorded() -> None:
    aliases = Aliases(keys=False)
    text = without_arguments(CHUNK, aliases)
    assert text == (
        f"Failed processing file: WorkItem(dataset='{aliases.key('ttbar')}', entrystart=0, entrystop=500, …) (kept)"
    )
    # An agent does it first, the recorder again.
    assert without_arguments(text, aliases) == text


def test_a_real_partial_is_cut() -> None:
    text = without_arguments(f"callback {functools.partial(print, 'secret', end=')')} failed")
    assert text == "callback functools.partial(…) failed"


@pytest.mark.parametrize(
    "piece",
    [
        "partial(",
        "<Task ",
        "'",
        "WorkItem('",
        "WorkItem(dataset='",
        "FileMeta(a",
        "Could not serialize object of type x",
        ")>",
    ],
)
def test_cutting_is_linear(piece: str) -> None:
    # Quadratic work over a million characters would exceed the test's time limit by far.
    assert without_arguments("WorkItem(" + piece * (1_000_000 // len(piece))) is not None
