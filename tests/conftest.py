"""What holds for every test."""

from __future__ import annotations

import os

# The collector's guard must not hide our own bugs from us; processes started by a test inherit it.
os.environ.setdefault("DASKSCOPE_STRICT", "1")
