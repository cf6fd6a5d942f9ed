"""Factories for tests, of daskscope and of its users.

No other package imports this one. Recordings are encoded and decoded by the real wire format, so that a test never sees one
that could not have been written.
"""

from daskscope.testing.factories import make_columns, make_frames, make_recording

__all__ = ["make_columns", "make_frames", "make_recording"]
