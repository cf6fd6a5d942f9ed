"""Fakes and factories for tests, ours and those of users.

Nothing in the package imports this one. What it makes goes through the real wire, so a test never sees a recording that
could not have been written.
"""

from daskscope.testing.clock import FakeClock
from daskscope.testing.factories import make_columns, make_frames, make_recording

__all__ = ["FakeClock", "make_columns", "make_frames", "make_recording"]
