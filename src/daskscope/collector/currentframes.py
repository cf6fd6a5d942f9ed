"""``sys._current_frames`` without the deadlock of CPython 3.11.0 to 3.11.8."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType

CurrentFrames = Callable[[], dict[int, FrameType]]


def unguarded() -> dict[int, FrameType]:
    """The frame each thread executes at this moment."""
    return sys._current_frames()


def guarded() -> dict[int, FrameType]:
    """The same, with the garbage collector off for the length of the call.

    There the interpreter allocates while it holds the lock over its list of threads; a collection that starts inside can
    never end (cpython issues 106883 and 116969). CPython 3.11.9 does the same inside the call. If the program itself
    switches the collector off within these few microseconds, it is on again afterwards.
    """
    if not gc.isenabled():
        return sys._current_frames()
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        gc.enable()


def needs_guard(version: tuple[int, int, int]) -> bool:
    return (3, 11, 0) <= version < (3, 11, 9)


def current_frames() -> CurrentFrames | None:
    """How to look at all threads on this interpreter, or None where it has no such function."""
    if not hasattr(sys, "_current_frames"):
        return None
    return guarded if needs_guard(sys.version_info[:3]) else unguarded
